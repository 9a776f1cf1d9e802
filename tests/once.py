"""Folders that a test run makes once, whatever the number of its worker processes."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """Return a folder that `make` has filled. Do not change the folder.

    The first worker process that needs the folder makes it. Other worker processes wait.
    """
    root = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:  # a worker's folder is below the run's folder
        root = root.parent
    folder, made = root / name, root / f".{name}.made"
    with FileLock(f"{folder}.lock"):
        if not made.exists():
            folder.mkdir()
            make(folder)
            made.touch()
    return folder
