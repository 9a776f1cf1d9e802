"""Checks of the Flink cluster before and while a job runs, with one-line errors.

Without them, a wrong address or a missing TaskManager is reported after minutes, as a Java
traceback.
"""

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
from apache_beam.options.pipeline_options import (
    FlinkRunnerOptions,
    GoogleCloudOptions,
    PipelineOptions,
    PortableOptions,
)

from paraloom.beam_jobs.runners.flink import install
from paraloom.beam_jobs.runners.flink.reach import get, reachable, request
from paraloom.beam_jobs.runners.flink.worker import FolderOptions
from paraloom.beam_jobs.runners.loopback import is_loopback
from paraloom.models.errors import UserError

PATIENCE = 30.0
"""Seconds to wait until a job has ended."""

_HINT = "`make flink-up` starts a cluster on this machine"
_OVER = ("FINISHED", "FAILED", "CANCELED")


@contextmanager
def ready(options: PipelineOptions) -> Iterator[None]:
    """Check that cluster, job server and workers are available for a job in the block.

    A running job of the same name is cancelled: it belongs to a run that was killed. The loss of
    the job server or of the TaskManagers while the job runs is one line, too.
    """
    flink = options.view_as(FlinkRunnerOptions)
    portable = options.view_as(PortableOptions)
    master, endpoint = flink.flink_master, portable.job_endpoint
    if master in ("[auto]", "[local]"):
        raise UserError(f"--flink_master is missing, such as localhost:8081; {_HINT}")
    _check_cluster(master, flink)
    if portable.environment_type == "EXTERNAL" and is_loopback(master):
        workers = str(portable.environment_config)
        if is_loopback(workers) and not reachable(workers):
            raise UserError(f"no worker pool at {workers} (--environment_config); {_HINT}")
    if not endpoint or not reachable(endpoint, timeout=10):
        raise UserError(f"no job server at {endpoint or '?'} (--job_endpoint); {_HINT}")
    options.view_as(FolderOptions).working_directory = str(Path.cwd())
    cancel(master, options.view_as(GoogleCloudOptions).job_name)
    again = "the same command goes on from here"
    try:
        yield
    except grpc.RpcError as error:
        raise UserError(f"the job server at {endpoint} was lost; {again}") from error
    except RuntimeError as error:
        if not re.search(
            r"NoResourceAvailable|no longer reachable|TaskManager .* lost", str(error)
        ):
            raise
        raise UserError(f"Flink at {master} lost its TaskManagers; {again}") from error


def _check_cluster(master: str, flink: Any) -> None:
    try:
        version = str(get(master, "config")["flink-version"])
        slots = int(get(master, "overview")["slots-total"])
    except (OSError, ValueError, KeyError) as error:
        reason = getattr(error, "reason", None) or error
        why = getattr(reason, "strerror", None) or reason
        raise UserError(f"no Flink at {master} (--flink_master): {why}; {_HINT}") from error
    expected = flink.get_all_options(drop_default=True).get("flink_version")
    if expected and install.flink_version(version) != expected:
        raise UserError(
            f"Flink at {master} is {version}, but --flink_version of the job server is {expected}"
        )
    if flink.parallelism > slots or not slots:
        asks = f", but --parallelism asks for {flink.parallelism}" if slots else f"; {_HINT}"
        raise UserError(f"Flink at {master} has {slots} slots{asks}")


def cancel(master: str, name: str | None) -> None:
    """Cancel the jobs of that name, and wait until they have ended."""
    deadline = time.monotonic() + PATIENCE
    while name:
        jobs = get(master, "jobs/overview")["jobs"]
        alive = [job["jid"] for job in jobs if job["name"] == name and job["state"] not in _OVER]
        if not alive:
            return
        if time.monotonic() > deadline:
            raise UserError(f"Flink at {master} still runs {name} ({alive[0]}) and cannot end it")
        for job in alive:
            request(master, f"jobs/{job}?mode=cancel", "PATCH")
        time.sleep(1)
