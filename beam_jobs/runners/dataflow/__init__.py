"""Dataflow: checks before a job is submitted, and one worker process per GPU."""

import re
from collections.abc import Sequence

from apache_beam.options.pipeline_options import (
    GoogleCloudOptions,
    PipelineOptions,
    SetupOptions,
    StandardOptions,
    WorkerOptions,
)

from paraloom.beam_jobs.runners.local.worker import hide_options
from paraloom.models.errors import UserError

RUNNER = "DataflowRunner"

_VISIBLE = "gs://"  # to Dataflow's workers


def prepare(options: PipelineOptions, output: str) -> None:
    """Check that a Dataflow job has everything that its workers need; ignores other runners.

    Workers import the package; the main session, which Dataflow pickles by default, is not needed.
    """
    if options.view_as(StandardOptions).runner != RUNNER:
        return
    import google.cloud.dataflow  # noqa: F401  (the boundary names the extra that has it)

    cloud = options.view_as(GoogleCloudOptions)
    for name in ("project", "region", "temp_location"):
        if not getattr(cloud, name):
            raise UserError(f"{RUNNER}: --{name} is missing")
    if not options.view_as(WorkerOptions).sdk_container_image:
        raise UserError(
            f"{RUNNER}: workers need this package: --sdk_container_image IMAGE, made from docker/"
        )
    check_visible("run", output)
    options.view_as(SetupOptions).save_main_session = False
    hide_options()


def check_visible(key: str, path: str) -> None:
    """Check that Dataflow's workers see a path of the configuration."""
    if not path.startswith(_VISIBLE):
        raise UserError(f"{key}: {path}: workers of Dataflow do not see it; it must be on gs://")


def one_process(arguments: Sequence[str], accelerator: str) -> list[str]:
    """Beam's arguments with one worker process per machine, so that its GPU holds one model.

    By default Dataflow starts a process for every core, with 12 threads: as many shards would be in
    memory. Each GPU needs one, and while they decode, one is read or written; the user's
    `--number_of_worker_harness_threads` takes precedence.
    """
    gpus = int(found[1]) if (found := re.search(r"\bcount:(\d+)", accelerator)) else 1
    threads = f"--number_of_worker_harness_threads={gpus + 1}"
    return [threads, *arguments, "--experiments=no_use_multiple_sdk_containers"]
