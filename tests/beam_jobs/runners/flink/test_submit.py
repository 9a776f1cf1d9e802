"""What is missing on Flink's side is one line with exit code 2, at once, by the real command."""

import http.server
import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from paraloom.beam_jobs.runners.flink import submit
from paraloom.pipeline.cli import main
from tests.run_helpers import Capsys

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
    config = {
        "run": str(tmp_path / "run"),
        "input": {"format": "tsv", "paths": [str(tmp_path / "text.tsv")]},
        "score": {"scorers": ["trigram_overlap"]},
        "select": {"by": "trigram_overlap"},
    }
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(config))

    def run(*options: str) -> str:
        started = time.monotonic()
        given = ["--runner", "FlinkRunner", *options]
        assert main(["ingest", "--config", str(tmp_path / "config.yaml"), "--", *given]) == 2
        assert time.monotonic() - started < 60
        said: list[str] = [
            line for line in capsys.readouterr().err.splitlines() if "paraloom:" in line
        ]
        assert len(said) == 1
        return said[0]

    return run


def test_a_wrong_address(fails: Callable[..., str], flink: Flink) -> None:
    assert "--flink_master is missing" in fails()
    for master in (NOWHERE, "no.such.host.invalid:8081", "x"):
        assert f"no Flink at {master} (--flink_master)" in fails("--flink_master", master)
    flink.answers["/config"] = {"hello": "world"}
    assert f"no Flink at {flink.address}" in fails("--flink_master", flink.address)


def test_another_cluster_than_asked_for(fails: Callable[..., str], flink: Flink) -> None:
    master = ["--flink_master", flink.address]
    said = fails(*master, "--flink_version", "1.20")
    assert (
        f"Flink at {flink.address} is 1.19.3, but --flink_version of the job server is 1.20" in said
    )
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
