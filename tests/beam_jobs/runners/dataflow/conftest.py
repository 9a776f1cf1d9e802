"""A Dataflow on loopback that executes jobs in this process."""

import time
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from paraloom.beam_jobs.runners.dataflow import jobs
from paraloom.beam_jobs.runners.launch import connect
from tests.dataflow.double import Dataflow, dataflow
from tests.dataflow.execute import in_this_process
from tests.google_store import BUCKET


@pytest.fixture(scope="session")
def libraries() -> None:
    """Google's client libraries."""
    pytest.importorskip("google.cloud.dataflow_v1beta3", reason="needs paraloom[dataflow]")


@pytest.fixture
def service(libraries: None, gs: list[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Dataflow]:
    """The stand-in; nobody waits for long."""
    from apache_beam.runners.dataflow import dataflow_runner

    fast = SimpleNamespace(time=time.time, sleep=lambda seconds: time.sleep(seconds / 250))
    monkeypatch.setattr(dataflow_runner, "time", fast)
    monkeypatch.setattr(jobs, "_POLL", 0.05)
    with dataflow(in_this_process) as double:
        yield double


@pytest.fixture
def arguments(service: Dataflow) -> list[str]:
    """Beam's options that lead to the stand-in."""
    options = [*service.options, f"--temp_location={BUCKET}/tmp"]
    connect(options)
    return options
