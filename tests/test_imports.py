"""Imports run only downwards: pipeline → beam_jobs → models. Modules and folders stay small."""

import ast
from collections import Counter
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
MAY_IMPORT = {
    "models": {"models"},
    "beam_jobs": {"models", "beam_jobs"},
    "pipeline": {"models", "beam_jobs", "pipeline"},
}
OURS = {*MAY_IMPORT, "tests", "benchmarks"}
FILES = sorted(path for package in MAY_IMPORT for path in (ROOT / package).rglob("*.py"))


def imported(path: Path) -> set[str]:
    """The top-level packages that a file imports, wherever in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {name.name.split(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found.add(str(node.module).split(".")[0])
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_run_downwards(path: Path) -> None:
    package = path.relative_to(ROOT).parts[0]
    assert imported(path) & OURS <= MAY_IMPORT[package]


def test_models_know_nothing_of_beam() -> None:
    for path in (ROOT / "models").rglob("*.py"):
        assert "apache_beam" not in imported(path), path


def test_modules_are_short() -> None:
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in FILES}
    assert {path: length for path, length in lengths.items() if length > 400} == {}


def test_folders_are_small() -> None:
    folders = Counter(path.parent for path in FILES)
    assert {folder: modules for folder, modules in folders.items() if modules > 14} == {}


def test_imports_form_no_circle() -> None:
    """Not even by imports within functions."""
    names = {
        path.relative_to(ROOT)
        .with_suffix("")
        .as_posix()
        .replace("/", ".")
        .removesuffix(".__init__")
        for path in FILES
    }
    graph: dict[str, set[str]] = {}
    for path in FILES:
        module = path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".")
        read = graph.setdefault(module.removesuffix(".__init__"), set())
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                read |= {alias.name for alias in node.names} & names
            elif isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    full = f"{node.module}.{alias.name}"
                    read |= {full if full in names else str(node.module)} & names
        read.discard(module.removesuffix(".__init__"))
    TopologicalSorter(graph).prepare()  # raises a CycleError that names the circle
