"""What is used of Beam's inside, where, and what to do when a Beam no longer has it.

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
    "io.aws.clients.s3": "storage/clients.py has its client of boto3, made with Beam's options",
    "io.gcp.gcsio": "storage/clients.py has Google's client from it: google.cloud.storage.Client "
    "is the same",
    "runners.dataflow.dataflow_metrics": "runners/dataflow/jobs.py gives a job that it found its "
    "counters: leave them out",
    "runners.dataflow.dataflow_runner": "runners/dataflow/jobs.py waits with it for a job that "
    "another launcher submitted: poll google.cloud.dataflow's JobsV1Beta3Client.get_job; and it "
    "shows what the runner logs",
    "runners.dataflow.internal.apiclient": "runners/dataflow/ lists, cancels and reads messages "
    "of jobs with it: the clients of google.cloud.dataflow do the same",
    "portability": "runners/local/runner.py registers its workers under SUBPROCESS_SDK of it: "
    "find the new name",
    "portability.api": "messages between a runner and its workers, a protocol of all SDKs: find "
    "the new modules",
    "portability.api.org.apache.beam.model.pipeline.v1.endpoints_pb2": "runners/local/worker.py "
    "gives a worker its addresses with it: as above",
    "runners.job.utils": "runners/local/runner.py: google.protobuf.json_format.ParseDict does the "
    "same",
    "runners.portability.fn_api_runner": "the local runner; Beam means to replace it by Prism: "
    "tests/beam_jobs/runners/test_local_*",
    "runners.portability.fn_api_runner.fn_runner": "runners/local/runner.py passes the options of "
    "object stores to workers with it",
    "runners.portability.fn_api_runner.worker_handlers": "runners/local/runner.py starts workers "
    "with the fork server, answers what waits in `_futures_by_id` when one dies, and lets "
    "`grpc.server` listen on loopback; without it: start Beam's own (slower, and a killed worker "
    "is waited for forever)",
    "runners.worker.sdk_worker_main": "what our workers, local ones and Flink's, run, with the "
    "variables that runners/local/worker.py sets: Beam's boot program calls it, too",
    "transforms.environments": "runners/local/runner.py names its workers with it",
    "typehints.row_type": "pairs.py makes the types of rows with it: a NamedTuple made at run time "
    "does the same",
    "typehints.schemas": "pairs.py reads the types of rows with it: "
    "RowTypeConstraint.from_user_type does the same",
}
"""By module: who uses it, and what to do without it."""


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
