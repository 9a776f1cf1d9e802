"""Imports run only downwards: papers → pipeline → beam_jobs → models. Modules stay small."""

import ast
import re
import subprocess
import sys
from collections import Counter
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1] / "paraloom"
MAY_IMPORT = {
    "models": {"models"},
    "beam_jobs": {"models", "beam_jobs"},
    "pipeline": {"models", "beam_jobs", "pipeline"},
    "papers": {"models", "beam_jobs", "pipeline", "papers"},
}
OURS = {*MAY_IMPORT, "paraloom", "tests", "benchmarks"}
FILES = sorted(path for package in MAY_IMPORT for path in (ROOT / package).rglob("*.py"))


@cache
def named(path: Path) -> set[str]:
    """Return the dotted names that a file imports, also within functions."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names |= {f"{node.module}.{name.name}" for name in node.names}
    return names


def imported(path: Path) -> set[str]:
    """Return the top-level packages that a file imports. Our folders count as packages."""
    return {name.removeprefix("paraloom.").split(".")[0] for name in named(path)}


def module_of(path: Path) -> str:
    """Return the dotted name of a file's module."""
    return ".".join(path.relative_to(ROOT.parent).with_suffix("").parts).removesuffix(".__init__")


@pytest.mark.parametrize("package", ["models", "beam_jobs", "pipeline", "benchmarks.papers"])
def test_the_names_without_paraloom_are_gone(package: str) -> None:
    """Otherwise, a checkout would have a second copy of every class."""
    command = [sys.executable, "-c", f"import {package}"]
    done = subprocess.run(command, cwd=ROOT.parent, capture_output=True, text=True)
    name = package.rpartition(".")[2]
    assert re.search(rf"ImportError: {package} is (now )?called paraloom.{name}\n$", done.stderr)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_run_downwards(path: Path) -> None:
    """In addition, `models` does not import Beam."""
    package = path.relative_to(ROOT).parts[0]
    assert imported(path) & OURS <= MAY_IMPORT[package]
    assert package != "models" or "apache_beam" not in imported(path)


def test_only_the_command_line_names_the_papers() -> None:
    """The name occurs once, in the table of commands."""
    for path in FILES:
        found = path.read_text("utf-8").count('"paraloom.papers')
        allowed = {"cli.py": 1}.get(path.name, 0) if path.parent == ROOT / "pipeline" else 0
        assert found == allowed or path.is_relative_to(ROOT / "papers"), path


def test_modules_are_short_and_folders_small() -> None:
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in FILES}
    assert {path: length for path, length in lengths.items() if length > 400} == {}
    folders = Counter(path.parent for path in FILES)
    assert {folder: modules for folder, modules in folders.items() if modules > 14} == {}


def test_no_two_classes_have_one_name() -> None:
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in FILES]
    classes = (node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    names = Counter(node.name for node in classes)
    assert len(names) > 300 and [name for name in names if names[name] > 1] == []


def test_imports_form_no_circle() -> None:
    """Imports within functions count, too."""
    assert {"pipeline", "beam_jobs", "models"} <= imported(ROOT / "pipeline" / "run" / "make.py")
    modules = {module_of(path): path for path in FILES}
    names = set(modules)
    graph: dict[str, set[str]] = {}
    for module, path in modules.items():
        read = graph.setdefault(module, set())
        for name in named(path):
            read |= {name if name in names else name.rpartition(".")[0]} & names
        read.discard(module)
    TopologicalSorter(graph).prepare()  # raises a CycleError that names the circle
