"""A Dataflow on loopback that executes jobs in this process."""

from collections.abc import Iterator

import pytest

from paraloom.beam_jobs.engine.options import connect
from tests.dataflow.double import Dataflow, dataflow, hurry
from tests.dataflow.execute import in_this_process
from tests.google_store import BUCKET


@pytest.fixture(scope="session")
def libraries() -> None:
    """Google's client libraries."""
    pytest.importorskip("google.cloud.dataflow_v1beta3", reason="needs paraloom[dataflow]")


@pytest.fixture
def service(libraries: None, gs: list[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Dataflow]:
    """The stand-in; nobody waits for long."""
    hurry(monkeypatch)
    with dataflow(in_this_process) as double:
        yield double


@pytest.fixture
def arguments(service: Dataflow) -> list[str]:
    """Beam's options that lead to the stand-in."""
    options = [*service.options, f"--temp_location={BUCKET}/tmp"]
    connect(options)
    return options
