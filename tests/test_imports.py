"""Imports run only downwards: pipeline → beam_jobs → models."""

import ast
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
def test_imports_run_downwards(path):
    package = path.relative_to(ROOT).parts[0]
    assert imported(path) & OURS <= MAY_IMPORT[package]


def test_models_know_nothing_of_beam():
    for path in (ROOT / "models").rglob("*.py"):
        assert "apache_beam" not in imported(path), path
