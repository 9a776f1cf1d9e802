"""Checks of the Flink cluster before and while a job runs, with one-line errors.

Without them, a wrong address or a missing TaskManager is reported after minutes, as a Java
traceback.
"""

import os
import re
import subprocess
import tempfile
import time
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import grpc
from apache_beam.options.pipeline_options import (
    FlinkRunnerOptions,
    GoogleCloudOptions,
    PipelineOptions,
    PortableOptions,
)
from apache_beam.utils.subprocess_server import JavaJarServer, pick_port

from paraloom.beam_jobs.runners.flink import install
from paraloom.beam_jobs.runners.flink.java_loopback import write_patch
from paraloom.beam_jobs.runners.flink.reach import get, reachable, request
from paraloom.beam_jobs.runners.flink.worker import FolderOptions
from paraloom.beam_jobs.runners.loopback import is_loopback
from paraloom.models.errors import UserError

PATIENCE = 30.0
"""Seconds to wait until a job server is up."""

_HINT = "`make flink-up` starts a cluster on this machine"
_OVER = ("FINISHED", "FAILED", "CANCELED")


@contextmanager
def ready(options: PipelineOptions) -> Iterator[None]:
    """Check that cluster, job server and workers are available for a job in the block.

    A running job of the same name is cancelled: it belongs to a run that was killed.
    """
    flink = options.view_as(FlinkRunnerOptions)
    portable = options.view_as(PortableOptions)
    if flink.flink_master in ("[auto]", "[local]"):
        raise UserError(f"--flink_master is missing, such as localhost:8081; {_HINT}")
    _check_cluster(flink.flink_master, _expected_version(flink), flink.parallelism)
    if portable.environment_type == "EXTERNAL" and is_loopback(flink.flink_master):
        workers = str(portable.environment_config)
        if is_loopback(workers) and not reachable(workers):
            raise UserError(f"no worker pool at {workers} (--environment_config); {_HINT}")
    options.view_as(FolderOptions).working_directory = str(Path.cwd())
    cancel(flink.flink_master, options.view_as(GoogleCloudOptions).job_name)
    with ExitStack() as stack:
        if portable.job_endpoint:
            if not reachable(endpoint := portable.job_endpoint, timeout=10):
                raise UserError(f"no job server at {endpoint} (--job_endpoint); {_HINT}")
        elif flink.flink_job_server_jar:
            server = _job_server(flink.flink_job_server_jar, flink.flink_master)
            portable.job_endpoint = stack.enter_context(server)
        else:
            raise UserError(
                "--job_endpoint is missing, the address of a running Beam job server, "
                "or --flink_job_server_jar, to start one"
            )
        with _loss_errors(flink.flink_master, portable.job_endpoint):
            yield


@contextmanager
def _loss_errors(master: str, endpoint: str) -> Iterator[None]:
    """Turn the loss of the job server or of the TaskManagers into a UserError."""
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


def _check_cluster(master: str, expected: str | None, parallelism: int) -> None:
    try:
        version = str(get(master, "config")["flink-version"])
        there = get(master, "overview")
        slots = int(there["slots-total"])
    except (OSError, ValueError, KeyError) as error:
        reason = getattr(error, "reason", None) or error
        why = getattr(reason, "strerror", None) or reason
        raise UserError(f"no Flink at {master} (--flink_master): {why}; {_HINT}") from error
    if expected and install.flink_version(version) != expected:
        raise UserError(
            f"Flink at {master} is {version}, but the job server is for Flink {expected}: "
            "both must be of one version (--flink_version, --flink_job_server_jar)"
        )
    if not slots:
        raise UserError(f"Flink at {master} has no TaskManager; {_HINT}")
    if parallelism > slots:
        raise UserError(
            f"Flink at {master} has {slots} slots, but --parallelism asks for {parallelism}"
        )


def _expected_version(flink: Any) -> str | None:
    """The Flink version that the job server was built for, if known."""
    if flink.flink_job_server_jar:
        jar = str(flink.flink_job_server_jar).rsplit("/", 1)[-1]
        named = re.search(r"flink-(\d+\.\d+)-job-server", jar)
        return named[1] if named else None
    given = flink.get_all_options(drop_default=True).get("flink_version")
    return str(given) if given else None


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


def _java(jar: str, folder: Path) -> list[str]:
    """The command that runs a job server's jar, whose servers then listen on loopback."""
    try:
        with zipfile.ZipFile(jar) as found:
            manifest = found.read("META-INF/MANIFEST.MF").decode()
        patch = write_patch(folder, Path(jar))
    except (OSError, KeyError, ValueError, zipfile.BadZipFile):
        return [install.java(), "-jar", jar]  # Java says what is wrong with it
    main = re.search(r"^Main-Class: *(\S+)", manifest, re.MULTILINE)
    if main is None:
        return [install.java(), "-jar", jar]
    return [install.java(), "-cp", f"{patch}:{jar}", main[1]]


@contextmanager
def _job_server(jar: str, master: str) -> Iterator[str]:
    """Start a job server for the duration of the block; its address."""
    try:
        jar = JavaJarServer.local_jar(jar) if "://" in jar else jar
    except (OSError, RuntimeError) as error:
        raise UserError(f"{jar}: cannot be fetched ({str(error).splitlines()[0]})") from error
    if not Path(jar).is_file():
        raise UserError(f"{jar}: no such file (--flink_job_server_jar)")
    (port,) = pick_port(None)
    endpoint = f"localhost:{port}"
    with tempfile.TemporaryDirectory(prefix="paraloom-job-server-") as folder:
        log = Path(folder, "log")
        ports = [f"--job-port={port}", "--artifact-port=0", "--expansion-port=0"]
        server = [*_java(jar, Path(folder)), f"--flink-master={master}", *ports]
        with log.open("w") as stream:
            process = subprocess.Popen(
                [*server, f"--artifacts-dir={folder}"], stdout=stream, stderr=stream
            )
        try:
            deadline = time.monotonic() + PATIENCE
            while not reachable(endpoint):
                ended = process.poll() is not None
                if ended or time.monotonic() > deadline:
                    how = "ended at once" if ended else f"is not up after {PATIENCE:.0f} seconds"
                    said = log.read_text(errors="replace").strip() or "it says nothing"
                    raise UserError(f"the job server {jar} {how}: {said.splitlines()[0][:200]}")
                time.sleep(0.1)
            yield endpoint
        finally:
            with suppress(OSError):
                os.write(2, log.read_bytes())  # to the log of the stage
            process.terminate()
            process.wait()
