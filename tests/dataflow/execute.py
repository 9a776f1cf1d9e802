"""What the stand-in executes jobs with: this process, workers of it, or the worker image.

    python -m tests.dataflow.execute PIPELINE OPTIONS COUNTERS PYTHON BOOT

runs a staged pipeline on workers that the boot program starts, as a machine of Dataflow would.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.portability.api import beam_runner_api_pb2
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.transforms.environments import ExternalEnvironment
from apache_beam.utils.subprocess_server import pick_port

from paraloom.beam_jobs.runners.flink.submit import reachable
from paraloom.beam_jobs.runners.loopback import loopback_servers
from tests.dataflow.double import Job
from tests.dataflow.image import Image
from tests.run_helpers import ROOT

# Beam's pool, which otherwise listens on all interfaces.
_POOL = """
from apache_beam.runners.worker.worker_pool_main import main
from paraloom.beam_jobs.runners.loopback import loopback_servers
with loopback_servers():
    main()
"""


def run(path: str, options: dict[str, Any], urn: str, payload: bytes) -> dict[str, int]:
    """Run a staged pipeline with another environment for its steps; its counters."""
    whole = {n: int(v) if isinstance(v, float) and v == int(v) else v for n, v in options.items()}
    own = {"runner": "FnApiRunner", "direct_num_workers": 1, "direct_running_mode": "in_memory"}
    given = PipelineOptions.from_dictionary({**whole, **own})
    FileSystems.set_options(given)
    with FileSystems.open(path) as file:
        pipeline = beam_runner_api_pb2.Pipeline.FromString(file.read())
    for environment in pipeline.components.environments.values():
        environment.urn, environment.payload = urn, payload
        if urn != ExternalEnvironment(None).to_runner_api_parameter(None)[0]:
            del environment.dependencies[:]
    with loopback_servers():
        result = FnApiRunner().run_via_runner_api(pipeline, given)
        result.wait_until_finish()
    found = result.metrics().query()["counters"]
    return {c.key.metric.name: c.result for c in found if c.key.metric.namespace == "paraloom"}


def in_this_process(job: Job) -> None:
    """Execute a job in the process of the stand-in."""
    job.counters = run(job.pipeline, job.options, "beam:env:embedded_python:v1", b"")


@contextlib.contextmanager
def in_workers(machine: Path) -> Iterator[Callable[[Job], None]]:
    """Execute jobs on worker processes of this environment; `machine` is their folder.

    That is short: nothing is installed, and a worker is forked from one that has imported all.
    """
    command = [sys.executable, "-m", "paraloom.beam_jobs.runners.flink.pool"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(machine)}
    with _pool(command, machine, environment) as (urn, payload):

        def execute(job: Job) -> None:
            job.counters = run(job.pipeline, job.options, urn, payload)

        yield execute


def in_image(image: Image, machine: Path) -> Callable[[Job], None]:
    """Execute jobs with the image's boot program; `machine` is the folder of what workers keep."""

    def execute(job: Job) -> None:
        with tempfile.TemporaryDirectory() as folder:
            counters = Path(folder, "counters.json")
            job_options = json.dumps(job.options)
            command = [job.pipeline, job_options, str(counters), str(machine), str(image.python)]
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.dataflow.execute", *command, str(image.entry_point)],
                cwd=ROOT,
                env={**os.environ, "IMAGE": json.dumps(image.environment)},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                text=True,
            )
            said = ""
            while process.poll() is None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    said, _ = process.communicate(timeout=0.2)
                if job.cancelled.is_set():
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(process.pid, signal.SIGKILL)
            if process.returncode:
                raise RuntimeError(said[-20_000:])
            job.counters = json.loads(counters.read_text())

    return execute


@contextlib.contextmanager
def _pool(
    command: list[str], machine: Path, environment: dict[str, str]
) -> Iterator[tuple[str, bytes]]:
    """The environment of a pool of workers in the folder `machine`, which ends after the block."""
    (port,) = pick_port(None)
    pool = subprocess.Popen([*command, f"--service_port={port}"], cwd=machine, env=environment)
    try:
        while not reachable(f"localhost:{port}"):
            assert pool.poll() is None, "the pool has ended"
        urn, payload = ExternalEnvironment(f"localhost:{port}").to_runner_api_parameter(None)
        yield urn, payload.SerializeToString()
    finally:
        pool.terminate()
        pool.wait()


def main(pipeline: str, options: str, counters: str, machine: str, python: str, boot: str) -> None:
    """Start a pool whose workers are started by `boot`, and run the pipeline there."""
    store = {n: os.environ[n] for n in os.environ if n.startswith(("GOOGLE_", "STORAGE_"))}
    environment = {**json.loads(os.environ["IMAGE"]), **store, "XDG_CACHE_HOME": machine}
    command = [python, "-c", _POOL, f"--container_executable={boot}"]
    with _pool(command, Path(machine), environment) as (urn, payload):
        found = run(pipeline, json.loads(options), urn, payload)
    Path(counters).write_text(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
