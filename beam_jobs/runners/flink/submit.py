"""Report faults of the Flink cluster in one line, before and while a job runs.

Without these checks, Flink reports a wrong address only after minutes, in a Java traceback.
"""

import json
import re
import socket
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path
from typing import Any

import grpc
from apache_beam.options.pipeline_options import (
    FlinkRunnerOptions,
    GoogleCloudOptions,
    PipelineOptions,
    PortableOptions,
)

from paraloom.beam_jobs.runners.flink.worker import FolderOptions
from paraloom.models.errors import UserError

PATIENCE = 30.0  # seconds to wait until a cancelled job ends

_HINT = "docs/clusters.md has the options for a cluster"
_OVER = ("FINISHED", "FAILED", "CANCELED")
_LOST = re.compile(r"NoResourceAvailable|no longer reachable|TaskManager .* lost")


@contextmanager
def ready(options: PipelineOptions) -> Iterator[None]:
    """Check that the cluster and the job server are available for the job in the block.

    A running job with this job's name was left by an earlier launcher and is cancelled. If the job
    server or the TaskManagers are lost during the job, this is also reported in one line.
    """
    flink = options.view_as(FlinkRunnerOptions)
    master, endpoint = flink.flink_master, options.view_as(PortableOptions).job_endpoint
    if master in ("[auto]", "[local]"):
        raise UserError(f"--flink_master is missing (for instance localhost:8081); {_HINT}")
    _check_cluster(master, flink)
    if not endpoint or not reachable(endpoint, timeout=10):
        raise UserError(f"no job server at {endpoint or '?'} (--job_endpoint); {_HINT}")
    options.view_as(FolderOptions).working_directory = str(Path.cwd())
    cancel(master, options.view_as(GoogleCloudOptions).job_name)
    again = "the same command resumes from here"
    try:
        yield
    except grpc.RpcError as error:
        raise UserError(f"the job server at {endpoint} was lost; {again}") from error
    except RuntimeError as error:
        if not _LOST.search(str(error)):
            raise
        raise UserError(f"Flink at {master} lost its TaskManagers; {again}") from error


def _check_cluster(master: str, flink: Any) -> None:
    try:
        version = str(get(master, "config")["flink-version"])
        slots = int(get(master, "overview")["slots-total"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"no Flink at {master} (--flink_master): {error}; {_HINT}") from error
    expected = flink.get_all_options(drop_default=True).get("flink_version")
    if expected and not version.startswith(f"{expected}."):
        raise UserError(
            f"Flink at {master} has version {version}, but --flink_version is {expected}"
        )
    if not slots or flink.parallelism > slots:
        asks = max(flink.parallelism, 1)
        raise UserError(f"Flink at {master} has {slots} slots, but --parallelism asks for {asks}")


def cancel(master: str, name: str | None) -> None:
    """Cancel all jobs with this name, and wait until they have ended."""
    deadline = time.monotonic() + PATIENCE
    while name:
        jobs = get(master, "jobs/overview")["jobs"]
        alive = [job["jid"] for job in jobs if job["name"] == name and job["state"] not in _OVER]
        if not alive:
            return
        if time.monotonic() > deadline:
            raise UserError(f"Flink at {master} did not cancel job {name} ({alive[0]})")
        for job in alive:
            _request(master, f"jobs/{job}?mode=cancel", "PATCH")
        time.sleep(1)


def get(master: str, path: str) -> Any:
    """Request JSON from Flink's REST interface; raise OSError or ValueError on failure."""
    return json.loads(_request(master, path))


def _request(master: str, path: str, method: str = "GET") -> bytes:
    address = master if "://" in master else f"http://{master}"
    local = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    asked = urllib.request.Request(f"{address.rstrip('/')}/{path}", method=method)
    try:
        with local.open(asked, timeout=5) as answer:
            return bytes(answer.read())
    except HTTPException as error:  # the address is invalid, or a gRPC server answered
        raise OSError(f"no answer over HTTP ({type(error).__name__})") from error


def reachable(address: str, *, timeout: float = 2.0) -> bool:
    """Whether a server listens at `host:port`."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout):
            return True
    except (OSError, ValueError, OverflowError):
        return False
