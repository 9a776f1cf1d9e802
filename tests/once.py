"""What a test run makes once, whatever the number of its worker processes."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """The folder that `make` fills, in the first worker process that asks for it; do not change it.

    The other worker processes of pytest-xdist wait until it is made.
    """
    root = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:  # each worker has a folder of its own below the run's
        root = root.parent
    folder, made = root / name, root / f".{name}.made"
    with FileLock(f"{folder}.lock"):
        if not made.exists():
            folder.mkdir()
            make(folder)
            made.touch()
    return folder
