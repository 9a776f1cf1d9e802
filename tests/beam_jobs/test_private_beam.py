"""What is used of Beam's inside, where, and what to do when a Beam no longer has it.

For a new Beam: raise the pin in pyproject.toml, `make lock UPGRADE=--upgrade`, run this test.
"""

import ast
import importlib
import inspect
import tomllib
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
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
    "typehints",
    "utils.shared",
)
"""Modules whose documentation does not call them internal."""

PRIVATE: dict[str, tuple[dict[str, tuple[str, ...]], str]] = {
    "io.aws.clients.s3.boto3_client": (
        {"Client": ("client",)},
        "io/clients.py has its client of boto3, made with Beam's options for S3",
    ),
    "io.gcp.gcsio": (
        {"create_storage_client": ()},
        "io/clients.py has Google's client from it: google.cloud.storage.Client is the same",
    ),
    "runners.dataflow.dataflow_metrics": (
        {"DataflowMetrics": ()},
        "runners/dataflow/jobs.py gives a job that it found its counters: leave them out",
    ),
    "runners.dataflow.dataflow_runner": (
        {
            "DataflowPipelineResult": ("wait_until_finish", "job_id", "metric_results"),
            "DataflowRunner": ("dataflow_client",),
            "DataflowRuntimeException": (),
        },
        "runners/dataflow/jobs.py waits with it for a job that another launcher submitted: poll "
        "google.cloud.dataflow's JobsV1Beta3Client.get_job; and it shows what the runner logs",
    ),
    "portability": (
        {"python_urns": ("SUBPROCESS_SDK",)},
        "runners/local/runner.py registers its workers under this name: find the new one",
    ),
    "portability.api": (
        {
            "beam_fn_api_pb2": ("InstructionResponse", "StartWorkerResponse"),
            "beam_fn_api_pb2_grpc": ("BeamFnExternalWorkerPoolServicer",),
            "beam_provision_api_pb2": ("ProvisionInfo", "GetProvisionInfoRequest"),
            "beam_provision_api_pb2_grpc": ("ProvisionServiceStub",),
        },
        "messages between a runner and its workers, a protocol of all SDKs: find the new module",
    ),
    "portability.api.org.apache.beam.model.pipeline.v1.endpoints_pb2": (
        {"ApiServiceDescriptor": ()},
        "runners/local/worker.py gives a worker its addresses with it: as above",
    ),
    "runners.job.utils": (
        {"dict_to_struct": ()},
        "runners/local/runner.py: google.protobuf.json_format.ParseDict does the same",
    ),
    "runners.portability.fn_api_runner": (
        {"FnApiRunner": ("run_pipeline",)},
        "the local runner. Beam means to replace it by Prism: tests/beam_jobs/runners/test_local_*",
    ),
    "runners.portability.fn_api_runner.fn_runner": (
        {"ExtendedProvisionInfo": ("provision_info",)},
        "runners/local/runner.py passes the options of object stores to workers with it",
    ),
    "runners.portability.fn_api_runner.worker_handlers": (
        {
            "SubprocessSdkWorkerHandler": ("start_worker", "close", "host_from_worker"),
            "WorkerHandler": ("register_environment", "logging_api_service_descriptor"),
        },
        "runners/local/runner.py starts workers with the fork server and fails when one dies; "
        "without it: start Beam's own (slower, and a killed worker is waited for forever)",
    ),
    "runners.worker.sdk_worker_main": (
        {"main": ()},
        "what our workers, local ones and Flink's, run: Beam's boot program calls it, too",
    ),
    "runners.dataflow.internal.apiclient": (
        {
            "DataflowApplicationClient": ("modify_job_state", "list_messages", "_jobs_client"),
            "DataflowJobAlreadyExistsError": (),
        },
        "runners/dataflow/ lists, cancels and reads messages of jobs with it: the clients of "
        "google.cloud.dataflow do the same",
    ),
    "transforms.environments": (
        {"SubprocessSDKEnvironment": ("from_command_string",)},
        "runners/local/runner.py names its workers with it",
    ),
    "typehints.row_type": (
        {"RowTypeConstraint": ("from_fields",)},
        "pairs.py makes the types of rows with it: a NamedTuple made at run time does the same",
    ),
    "typehints.schemas": (
        {"named_fields_from_element_type": ()},
        "pairs.py reads the types of rows with it: RowTypeConstraint.from_user_type does the same",
    ),
}
"""By module: what is used of it and its attributes; who uses it, and what to do without it."""


def imported() -> set[tuple[str, str]]:
    """Modules of Beam and the names that the code imports from them."""
    found = set()
    for room in ("models", "beam_jobs", "pipeline", "benchmarks/papers"):
        for path in (ROOT / room).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(BEAM):
                    module = str(node.module)[len(BEAM) + 1 :]
                    found |= {(module, name.name) for name in node.names}
                elif isinstance(node, ast.Import):
                    of = [name.name for name in node.names if name.name.startswith(BEAM)]
                    found |= {(name[len(BEAM) + 1 :], "") for name in of}
    return found


def test_all_that_is_imported_of_beams_inside_is_listed() -> None:
    listed = {(module, name) for module, (names, _) in PRIVATE.items() for name in names}
    modules = {(f"{module}.{name}".lstrip("."), "") for module, name in listed}
    for module, name in imported():
        if module in PUBLIC:
            continue
        inner = (f"{module}.{name}", "") in {(key, "") for key in PRIVATE}
        known = (module, name) in listed | modules or inner or (not name and module in PRIVATE)
        assert known, f"{BEAM}.{module}: {name} is not in PRIVATE"


@pytest.mark.parametrize("module", PRIVATE)
def test_it_is_there(module: str) -> None:
    names, remedy = PRIVATE[module]
    try:
        inside = importlib.import_module(f"{BEAM}.{module}")
        for name, attributes in names.items():
            # Modules of messages are imported by their names only.
            found: Any = getattr(inside, name, None) or importlib.import_module(
                f"{BEAM}.{module}.{name}"
            )
            for attribute in attributes:
                if not hasattr(found, attribute):
                    assert attribute in inspect.getsource(found), (name, attribute)
    except (ImportError, AttributeError, AssertionError) as error:
        pytest.fail(f"{error}; {remedy}")


def test_a_connection_knows_what_it_waits_for() -> None:
    """`_futures_by_id`: runners/local/runner.py answers these when a worker died."""
    from apache_beam.runners.portability.fn_api_runner import worker_handlers

    source = inspect.getsource(worker_handlers.ControlConnection)
    assert "self._futures_by_id[" in source
    assert "self.control_conn" in inspect.getsource(worker_handlers.GrpcWorkerHandler)


def test_beams_servers_are_made_by_the_function_that_is_replaced() -> None:
    """`grpc.server`: runners/loopback.py lets it listen on loopback. Elsewhere Beam's would listen
    on all interfaces: replace what makes them."""
    from apache_beam.runners.portability.fn_api_runner import worker_handlers

    source = inspect.getsource(worker_handlers)
    assert "grpc.server(" in source
    assert ".add_insecure_port(" in source


def test_workers_read_these_variables() -> None:
    """runners/local/worker.py and the pool of Flink's set them."""
    source = inspect.getsource(importlib.import_module(f"{BEAM}.runners.worker.sdk_worker_main"))
    for name in (
        "WORKER_ID",
        "PIPELINE_OPTIONS",
        "CONTROL_API_SERVICE_DESCRIPTOR",
        "LOGGING_API_SERVICE_DESCRIPTOR",
    ):
        assert name in source


def test_rows_become_arrow_tables() -> None:
    """pairs.py: Beam finds the converter by the annotation `pa.Table` of `process_batch`."""
    import pyarrow as pa
    from apache_beam.typehints.batch import BatchConverter
    from apache_beam.typehints.row_type import RowTypeConstraint

    rows = RowTypeConstraint.from_fields([("id", str)])
    converter = BatchConverter.from_typehints(element_type=rows, batch_type=pa.Table)
    table = converter.produce_batch([rows.user_type("a")])
    assert table.to_pydict() == {"id": ["a"]}


def test_the_pinned_version_is_the_tested_one() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (pin,) = (Requirement(r) for r in project["dependencies"] if r.startswith("apache-beam"))
    assert str(pin.specifier) == "~=2.77.0"
    assert pin.specifier.contains(version("apache-beam"))
    for lock in ("requirements.lock", "requirements-dev.lock"):
        lines = (ROOT / lock).read_text().splitlines()
        assert f"apache-beam=={version('apache-beam')}" in lines
