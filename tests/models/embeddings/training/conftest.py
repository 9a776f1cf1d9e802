import pytest

from paraloom.models.embeddings.training.data import PairSource
from tests.run_helpers import Patch


@pytest.fixture(autouse=True)
def in_this_process(monkeypatch: Patch) -> None:
    """Pools are tokenised where they are needed: a process of its own takes seconds to start."""
    monkeypatch.setattr(PairSource, "ahead", False)
