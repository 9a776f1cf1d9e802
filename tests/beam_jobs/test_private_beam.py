"""What is used of Beam's inside, and what to do when a Beam no longer has it.

For a new Beam: raise the pin in pyproject.toml, `make lock UPGRADE=--upgrade`, run all tests.
"""

import ast
import tomllib
from importlib.metadata import version
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]
BEAM = "apache_beam"
PUBLIC = (
    "",
    "io.filesystem",
    "io.filesystems",
    "metrics",
    "metrics.metric",
    "ml.inference.base",
    "options.pipeline_options",
    "runners.runner",
    "transforms.window",
    "typehints",
    "utils.shared",
    "utils.windowed_value",
)
"""Modules whose documentation does not call them internal."""

PRIVATE = {
    "io.aws.clients.s3": "boto3's client with Beam's options",
    "io.gcp.gcsio": "google.cloud.storage.Client is the same",
    "runners.dataflow.dataflow_metrics": "leave out the counters of a job that was found",
    "runners.dataflow.dataflow_runner": "poll google.cloud.dataflow's JobsV1Beta3Client.get_job",
    "runners.dataflow.internal.apiclient": "the clients of google.cloud.dataflow do the same",
    "portability": "find the new name of SUBPROCESS_SDK, under which workers are registered",
    "portability.api": "a protocol of all SDKs: find the new modules",
    "portability.api.org.apache.beam.model.pipeline.v1.endpoints_pb2": "as above",
    "runners.job.utils": "google.protobuf.json_format.ParseDict does the same",
    "runners.portability.fn_api_runner": "Beam means to replace it by Prism: runners/test_local_*",
    "runners.portability.fn_api_runner.fn_runner": "workers need the options of object stores",
    # `_futures_by_id` has what waits for a worker; `grpc.server` is to listen on loopback.
    "runners.portability.fn_api_runner.worker_handlers": "start Beam's own workers (slower, and a "
    "killed worker is waited for forever)",
    "runners.worker.sdk_worker_main": "what all workers run: Beam's boot program calls it, too",
    "transforms.environments": "runners/local/runner.py names its workers with it",
    "typehints.row_type": "a NamedTuple made at run time does the same",
    "typehints.schemas": "RowTypeConstraint.from_user_type does the same",
}
"""By module: what to do without it."""


def imported() -> set[str]:
    """Modules of Beam that the code imports, or imports names from."""
    found = set()
    for room in ("models", "beam_jobs", "pipeline", "benchmarks/papers"):
        for path in (ROOT / room).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(BEAM):
                    found.add(str(node.module))
                elif isinstance(node, ast.Import):
                    found |= {name.name for name in node.names if name.name.startswith(BEAM)}
    return {name.removeprefix(BEAM).removeprefix(".") for name in found}


def test_all_that_is_imported_of_beams_inside_is_listed() -> None:
    assert imported() - {*PUBLIC} == PRIVATE.keys()


def test_the_pinned_version_is_the_tested_one() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (pin,) = (Requirement(r) for r in project["dependencies"] if r.startswith("apache-beam"))
    assert str(pin.specifier) == "~=2.77.0"
    assert pin.specifier.contains(version("apache-beam"))
    for lock in ("requirements.lock", "requirements-dev.lock"):
        lines = (ROOT / lock).read_text().splitlines()
        assert f"apache-beam=={version('apache-beam')}" in lines
