"""The examples in docstrings give what they show."""

import doctest
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
MODULES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for room in ("models", "beam_jobs", "pipeline", "papers")
    for path in (ROOT / "paraloom" / room).rglob("*.py")
    if ">>> " in path.read_text("utf-8") and path.name != "library.py"  # in test_library.py
)
assert len(MODULES) > 10


@pytest.mark.parametrize("module", MODULES)
def test_examples(
    module: str, nmt_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They run in a folder that has the translation model `models/cs-en`."""
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "cs-en").symlink_to(nmt_model)
    monkeypatch.chdir(tmp_path)
    found = doctest.testmod(import_module(module), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert found.failed == 0
