"""What is missing on Flink's side is one line, at once; workers are started for whom asks."""

import http.server
import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml
from apache_beam.portability.api import beam_fn_api_pb2
from apache_beam.portability.api.org.apache.beam.model.pipeline.v1.endpoints_pb2 import (
    ApiServiceDescriptor,
)

from paraloom.beam_jobs.runners.flink import pool as pools
from paraloom.beam_jobs.runners.flink import submit, worker
from paraloom.pipeline.cli import main
from tests.run_helpers import Capsys, Patch, small_config

NOWHERE = "localhost:1"


class Flink:
    """Flink's REST address, as far as a job is looked at before it is submitted."""

    def __init__(self) -> None:
        self.answers: dict[str, dict[str, Any]] = {
            "/config": {"flink-version": "1.19.3"},
            "/overview": {"taskmanagers": 2, "slots-total": 4},
            "/jobs/overview": {"jobs": []},
        }
        self.cancelled: list[str] = []
        flink = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200)
                self.end_headers()
                self.wfile.write(json.dumps(flink.answers[self.path]).encode())

            def do_PATCH(self) -> None:
                flink.cancelled.append(self.path)
                for job in flink.answers["/jobs/overview"]["jobs"]:
                    if job["jid"] in self.path:
                        job["state"] = "CANCELED"
                self.send_response(202)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("localhost", 0), Handler)
        self.address = f"localhost:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def flink() -> Iterator[Flink]:
    found = Flink()
    yield found
    found.server.shutdown()
    found.server.server_close()


@pytest.fixture
def fails(tmp_path: Path, capsys: Capsys) -> Callable[..., str]:
    """Run the command with Beam options; give its one line."""
    (tmp_path / "text.tsv").write_text("Pes štěká.\tA dog barks.\n")
    config = small_config(tmp_path / "run", tmp_path / "text.tsv")
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(config))

    def run(*options: str) -> str:
        given = ["--runner", "FlinkRunner", *options]
        assert main(["ingest", "--config", str(tmp_path / "config.yaml"), "--", *given]) == 2
        (said,) = (line for line in capsys.readouterr().err.splitlines() if "paraloom:" in line)
        return str(said)

    return run


def test_a_wrong_address(fails: Callable[..., str], flink: Flink) -> None:
    assert "--flink_master is missing" in fails()
    for master in (NOWHERE, "no.such.host.invalid:8081", "x", "localhost:x"):
        assert f"no Flink at {master} (--flink_master)" in fails("--flink_master", master)
    flink.answers["/config"] = {"hello": "world"}
    assert f"no Flink at {flink.address}" in fails("--flink_master", flink.address)


def test_another_cluster_than_asked_for(fails: Callable[..., str], flink: Flink) -> None:
    master = ["--flink_master", flink.address]
    version = "has version 1.19.3, but --flink_version is 1.20"
    assert f"{flink.address} {version}" in fails(*master, "--flink_version", "1.20")
    assert "has 4 slots, but --parallelism asks for 5" in fails(*master, "--parallelism", "5")
    flink.answers["/overview"] = {"taskmanagers": 0, "slots-total": 0}
    assert "has 0 slots" in fails(*master)


def test_no_job_server(fails: Callable[..., str], flink: Flink) -> None:
    master = ["--flink_master", flink.address]
    assert "no job server at ? (--job_endpoint)" in fails(*master)
    assert f"no job server at {NOWHERE}" in fails(*master, "--job_endpoint", NOWHERE)


def test_jobs_of_the_same_name_are_cancelled(flink: Flink) -> None:
    jobs = [
        {"jid": "a", "name": "ours", "state": "RUNNING"},
        {"jid": "b", "name": "another's", "state": "RUNNING"},
        {"jid": "c", "name": "ours", "state": "FINISHED"},
    ]
    flink.answers["/jobs/overview"]["jobs"] = jobs
    submit.cancel(flink.address, "ours")
    assert flink.cancelled == ["/jobs/a?mode=cancel"]


STAND_IN = """
import os, time
from pathlib import Path

def main(arguments):
    path = Path(__file__).with_name(str(os.getpid()))
    path.with_suffix(".new").write_text(" ".join(arguments))
    path.with_suffix(".new").rename(path)
    time.sleep(60)
"""
ENDS = ("provision", "control", "logging")


def request(number: str) -> beam_fn_api_pb2.StartWorkerRequest:
    urls = {f"{end}_endpoint": ApiServiceDescriptor(url=f"localhost:{end}") for end in ENDS}
    return beam_fn_api_pb2.StartWorkerRequest(worker_id=number, **urls)


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
    ends = [f"localhost:{end}" for end in ENDS]
    for process in workers:
        while process.status() == psutil.STATUS_RUNNING:  # it has just written its file
            time.sleep(0.05)
        assert process.status() == psutil.STATUS_SLEEPING
        assert (tmp_path / str(process.pid)).read_text().split() == ["1-1", *ends]
        process.kill()
