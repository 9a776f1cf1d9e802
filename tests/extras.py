"""Skips the tests of a module where the libraries of an extra are missing."""

from importlib.util import find_spec

import pytest


def needs(*libraries: str) -> pytest.MarkDecorator:
    """A mark for `pytestmark`. Unlike `pytest.importorskip` it imports nothing."""
    missing = [name for name in libraries if find_spec(name) is None]
    return pytest.mark.skipif(bool(missing), reason=f"not installed: {', '.join(missing)}")
