"""The workers of a pool: each started for whom it is asked for, none ended for another."""

import time
from pathlib import Path

import psutil
from apache_beam.portability.api import beam_fn_api_pb2
from apache_beam.portability.api.org.apache.beam.model.pipeline.v1.endpoints_pb2 import (
    ApiServiceDescriptor,
)

from paraloom.beam_jobs.runners.flink import pool as pools
from paraloom.beam_jobs.runners.flink import worker
from tests.run_helpers import Patch

STAND_IN = """
import os, time
from pathlib import Path

def main(arguments):
    path = Path(__file__).with_name(str(os.getpid()))
    path.with_suffix(".new").write_text(" ".join(arguments))
    path.with_suffix(".new").rename(path)
    time.sleep(60)
"""
ENDS = ("logging", "artifact", "provision", "control")


def request(worker: str) -> beam_fn_api_pb2.StartWorkerRequest:
    urls = {f"{end}_endpoint": ApiServiceDescriptor(url=f"localhost:{end}") for end in ENDS}
    return beam_fn_api_pb2.StartWorkerRequest(worker_id=worker, **urls)


def test_two_task_managers_use_the_same_number(monkeypatch: Patch, tmp_path: Path) -> None:
    """Neither worker takes the other's place, and ending one by its number ends neither."""
    (tmp_path / "stand_in.py").write_text(STAND_IN)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(worker, "__name__", "stand_in")
    pool = pools.WorkerPool()
    for _ in range(2):
        assert not pool.StartWorker(request("1-1"), None).error
    workers: list[psutil.Process] = []
    while len(workers) < 2:
        time.sleep(0.05)
        workers = [psutil.Process(int(path.name)) for path in tmp_path.glob("[0-9]*[0-9]")]
    assert not pool.StopWorker(beam_fn_api_pb2.StopWorkerRequest(worker_id="1-1"), None).error
    ends = [f"--{end}_endpoint=localhost:{end}" for end in ENDS]
    for process in workers:
        assert process.status() == psutil.STATUS_SLEEPING
        assert (tmp_path / str(process.pid)).read_text().split() == ["--id=1-1", *ends]
        process.kill()
