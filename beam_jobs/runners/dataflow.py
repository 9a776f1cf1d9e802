"""Dataflow: what a job needs before it is submitted, and one process for each GPU."""

from __future__ import annotations

from collections.abc import Sequence

from apache_beam.options.pipeline_options import (
    GoogleCloudOptions,
    PipelineOptions,
    SetupOptions,
    StandardOptions,
    WorkerOptions,
)

from models.errors import UserError

RUNNER = "DataflowRunner"


_SEEN = "gs://"  # by Dataflow's workers


def prepare(options: PipelineOptions, output: str) -> None:
    """See that a job for Dataflow has all that its workers need; other runners' pass as they are.

    Workers import the package: by default Dataflow would give them a pickled main session, too.

    Raises:
        UserError: names what is missing.
    """
    if options.view_as(StandardOptions).runner != RUNNER:
        return
    try:
        import apache_beam.runners.dataflow.internal.apiclient  # noqa: F401
    except ImportError as error:
        raise UserError(
            f"{RUNNER} needs Google's client libraries: pip install 'paraloom[gcp]'"
        ) from error
    cloud = options.view_as(GoogleCloudOptions)
    for name in ("project", "region", "temp_location"):
        if not getattr(cloud, name):
            raise UserError(f"{RUNNER}: --{name} is missing")
    image = options.view_as(WorkerOptions).sdk_container_image
    setup = options.view_as(SetupOptions)
    if not (image or setup.setup_file):
        raise UserError(
            f"{RUNNER}: workers need this package: --sdk_container_image IMAGE, made from docker/, "
            "or --setup_file ./setup.py"
        )
    if not output.startswith(_SEEN):
        raise UserError(f"{output}: workers of Dataflow do not see it; let `run` be on {_SEEN}")
    setup.save_main_session = False


def one_process(arguments: Sequence[str]) -> list[str]:
    """Beam's arguments with one worker process a machine: one model on its GPU.

    By default Dataflow starts a process for every core.
    """
    return [*arguments, "--experiments=no_use_multiple_sdk_containers"]
