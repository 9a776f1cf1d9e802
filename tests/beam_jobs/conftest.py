"""Where files are: on disk and in object stores."""

from pathlib import Path

import pytest


@pytest.fixture(params=["local", "bucket", "google_bucket"])
def place(request: pytest.FixtureRequest, empty_cache: None, tmp_path: Path) -> str:
    """A folder on disk, and in each kind of object store."""
    return str(tmp_path if request.param == "local" else request.getfixturevalue(request.param))
