"""Where the tests find real data, and what they do when it is not there."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("PARALOOM_DATA", ROOT.parent / "shared" / "data"))


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of real corpora (multi30k, sts, sick, ppdb); tests that need it are skipped without."""
    if not (DATA / "multi30k").is_dir():
        pytest.skip(f"no real data in {DATA}: set PARALOOM_DATA")
    return DATA


@pytest.fixture(scope="session")
def nmt_model(data: Path) -> Path:
    """A trained fairseq model, Czech to English."""
    folder = data.parent / "nmt" / "multi30k-cs-en"
    if not folder.is_dir():
        pytest.skip(f"no fairseq model in {folder}")
    return folder
