"""A stand-in for Dataflow on loopback: its REST interface as Beam's client and Paraloom speak it.

    --runner DataflowRunner --dataflow_endpoint http://localhost:PORT …

What it accepts, it executes (`execute`), and what it is asked, it writes down. Its refusals have
Google's wordings, from its pages and from what users reported.
"""

import json
import re
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from paraloom.beam_jobs.runners import dataflow as runner

ACTIVE = ("PENDING", "RUNNING", "CANCELLING")
PROJECT, REGION = "tests", "europe-west4"
ACCOUNT = "123456789-compute@developer.gserviceaccount.com"
IMAGE = f"{REGION}-docker.pkg.dev/{PROJECT}/paraloom/cpu:0"
ACT_AS = f"(1f2e): Current user cannot act as service account {ACCOUNT}."
"""Why a request for a job is refused."""

FAILURES = {
    "image": [
        f'Failed to pull image "{IMAGE}": rpc error: code = NotFound desc = failed to pull',
        "Workflow failed. Causes: The Dataflow job appears to be stuck because no worker activity "
        "has been seen in the last 1h.",
    ],
    "code": [
        'Traceback (most recent call last):\n  File "apache_beam/runners/common.py", line 1498, in '
        'process\n  File "/usr/local/lib/python3.11/site-packages/mine.py", line 3, in score\n'
        "ZeroDivisionError: division by zero [while running 'Score']\n",
        "Workflow failed. Causes: S02:Score failed., The job failed because a work item has failed "
        "4 times.",
    ],
    "user": [
        'Traceback (most recent call last):\n  File "apache_beam/runners/common.py", line 1498, in '
        "process\nmodels.errors.UserError: gs://paraloom/run/score: the disk is full [while "
        "running 'Score']\n",
        "Workflow failed. Causes: S02:Score failed.",
    ],
}
"""Messages of jobs that failed, by their causes."""


@dataclass
class Job:
    """A job; `body` is as the client sent it."""

    id: str
    body: dict[str, Any]
    state: str = "PENDING"
    messages: list[tuple[float, str]] = field(default_factory=list)
    counters: dict[str, int] = field(default_factory=dict)
    cancelled: threading.Event = field(default_factory=threading.Event)
    asked_for: threading.Event = field(default_factory=threading.Event)
    created: float = field(default_factory=time.time)

    @property
    def name(self) -> str:
        return str(self.body["name"])

    @property
    def pipeline(self) -> str:
        """The path of the staged pipeline."""
        return str(self.options["pipelineUrl"])

    @property
    def options(self) -> dict[str, Any]:
        """Beam's options, as the job has them."""
        return dict(self.body["environment"]["sdkPipelineOptions"]["options"])

    def say(self, *texts: str) -> None:
        """Add messages of errors."""
        self.messages += [(time.time(), text) for text in texts]

    @property
    def json(self) -> dict[str, Any]:
        """The job as lists and answers have it."""
        names = ("name", "type", "labels", "clientRequestId")
        shown = {name: self.body[name] for name in names if name in self.body}
        state, created = f"JOB_STATE_{self.state}", _time(self.created)
        return shown | {"id": self.id, "currentState": state, "createTime": created}


Execute = Callable[[Job], None]
"""Does what a job says, and fills in its counters; raises if it fails."""


class Dataflow:
    """The running stand-in.

    Attributes:
        jobs: all jobs that it accepted, in order.
        log: what it was asked: methods, and of jobs their names.
        refuse: "act as" and names of `FAILURES` for the next requests for a job, in order.
        execute: see `Execute`.
    """

    def __init__(self, execute: Execute, log: Path | None) -> None:
        self.execute, self._file = execute, log
        self.jobs: list[Job] = []
        self.log: list[str] = []
        self.refuse: list[str] = []
        self.lock = threading.RLock()
        self.address = ""

    @property
    def options(self) -> list[str]:
        """Beam's options that lead here."""
        return [
            "--runner=DataflowRunner",
            f"--dataflow_endpoint={self.address}",
            f"--project={PROJECT}",
            f"--region={REGION}",
            f"--sdk_container_image={IMAGE}",
        ]

    def note(self, line: str) -> None:
        self.log.append(line)
        if self._file:
            with self._file.open("a") as stream:
                stream.write(f"{_time(time.time())} {line}\n")

    def create(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Accept a job, or refuse it."""
        name = body["name"]
        cause = self.refuse.pop(0) if self.refuse else ""
        if cause == "act as":
            return 403, _error(403, ACT_AS)
        if any(job.name == name and job.state in ACTIVE for job in self.jobs):
            return 409, _error(
                409,
                f"(9e8f): The workflow could not be created. Causes: (7d6c): There is already an "
                f"active job named {name}. If you want to  submit a second job, try again by "
                "setting a different name.",
            )
        job = Job(f"2026-11-23_00_00_{len(self.jobs):02}-{100 + len(self.jobs)}", body)
        self.jobs.append(job)
        threading.Thread(target=self._run, args=(job, cause), daemon=True).start()
        return 200, job.json

    def _run(self, job: Job, cause: str) -> None:
        try:
            if cause:  # a job fails minutes after it was accepted
                job.asked_for.wait()
                job.say(*FAILURES[cause])
                raise RuntimeError(cause)
            job.state = "RUNNING"
            self.execute(job)
            job.state = "CANCELLED" if job.cancelled.is_set() else "DONE"
        except BaseException:
            if not cause and not job.cancelled.is_set():
                job.say(traceback.format_exc())
            job.state = "CANCELLED" if job.cancelled.is_set() else "FAILED"

    def answer(self, method: str, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """The status and the content of an answer."""
        url = urlsplit(path)
        query = {name: values[-1] for name, values in parse_qs(url.query).items()}
        root = f"/v1b3/projects/{PROJECT}/locations/{REGION}/jobs"
        asked = re.fullmatch(rf"{root}(?:/([^/]+)(/messages|/metrics)?)?", url.path)
        job = next((job for job in self.jobs if asked and job.id == asked[1]), None)
        what = (asked and asked[2]) or ""
        self.note(f"{method}{what} {job.name if job else body.get('name') or query.get('name')}")
        if not asked or bool(asked[1]) != bool(job):
            return 404, _error(404, f"{path}: not found")
        if job is None:
            return self.create(body) if method == "POST" else (200, self._list(query))
        if what == "/messages":
            return 200, {"jobMessages": list(_messages(job, query))}
        if what == "/metrics":
            return 200, {"metrics": list(_metrics(job))}
        job.asked_for.set()
        if method == "PUT" and job.state in ACTIVE:
            assert body["requestedState"] in (5, "JOB_STATE_CANCELLED"), body
            job.state = "CANCELLING"
            job.cancelled.set()
        return 200, job.json

    def _list(self, query: dict[str, str]) -> dict[str, Any]:
        found = [job for job in self.jobs if query.get("name") in (None, job.name)]
        if query.get("filter") in ("3", "ACTIVE"):
            found = [job for job in found if job.state in ACTIVE]
        return {"jobs": [job.json for job in found]}


@contextmanager
def dataflow(execute: Execute = lambda job: None, log: Path | None = None) -> Iterator[Dataflow]:
    """The stand-in, running; `log` is a file for what it is asked."""
    double = Dataflow(execute, log)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def answer(self) -> None:
            size = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(size) or b"{}")
            with double.lock:
                status, values = double.answer(self.command, self.path, body)
            content = json.dumps(values).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PUT = answer  # noqa: N815

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    double.address = f"http://localhost:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield double
    finally:
        for job in double.jobs:
            job.cancelled.set()
        server.shutdown()
        server.server_close()


def hurry(patch: pytest.MonkeyPatch) -> None:
    """Commands of this process look often how a job is."""
    from apache_beam.runners.dataflow import dataflow_runner

    fast = SimpleNamespace(time=time.time, sleep=lambda seconds: time.sleep(seconds / 250))
    patch.setattr(dataflow_runner, "time", fast)
    patch.setattr(runner, "_POLL", 0.05)


def _error(status: int, message: str) -> dict[str, Any]:
    return {"error": {"code": status, "message": message}}


def _time(seconds: float) -> str:
    whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
    return f"{whole}.{round(seconds % 1 * 999):03}Z"


def _messages(job: Job, query: dict[str, str]) -> Iterator[dict[str, str]]:
    for number, (seconds, text) in enumerate(job.messages):
        if _time(seconds) >= query.get("startTime", ""):
            message = {"id": str(number), "time": _time(seconds), "messageText": text}
            yield message | {"messageImportance": "JOB_MESSAGE_ERROR"}


def _metrics(job: Job) -> Iterator[dict[str, Any]]:
    for name, count in job.counters.items():
        for tentative in ({}, {"tentative": "true"}):
            context = {"step": "s1", "namespace": "paraloom", **tentative}
            yield {"name": {"origin": "user", "name": name, "context": context}, "scalar": count}
