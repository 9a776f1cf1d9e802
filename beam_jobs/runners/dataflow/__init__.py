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

from paraloom.beam_jobs.engine.options import DATAFLOW, check_visible, runner_of
from paraloom.beam_jobs.runners.local.worker import hide_options
from paraloom.models.errors import UserError


def prepare(options: PipelineOptions, output: str) -> None:
    """Check that a Dataflow job has all that its workers need; other runners are ignored."""
    if options.view_as(StandardOptions).runner != DATAFLOW:
        return
    import google.cloud.dataflow  # noqa: F401  (the error boundary names the missing extra)

    cloud = options.view_as(GoogleCloudOptions)
    for name in ("project", "region", "temp_location"):
        if not getattr(cloud, name):
            raise UserError(f"{DATAFLOW}: --{name} is missing")
    if not options.view_as(WorkerOptions).sdk_container_image:
        raise UserError(
            f"{DATAFLOW}: workers need this package: --sdk_container_image IMAGE, made from docker/"
        )
    check_visible("run", output)
    options.view_as(SetupOptions).save_main_session = False
    hide_options()


def one_process(arguments: Sequence[str], accelerator: str | None) -> list[str]:
    """Add arguments for one worker process per machine, so that it holds each model once.

    By default Dataflow starts one process per core with 12 threads: each would load the model and
    use all cores, and so many shards would be in memory. Each GPU, or all cores together, need one
    shard to decode, and another to read or write meanwhile. The user's
    `--number_of_worker_harness_threads` takes precedence.
    """
    if accelerator is None and runner_of(arguments) != DATAFLOW:
        return [*arguments]
    found = re.search(r"\bcount:(\d+)", accelerator or "")
    threads = f"--number_of_worker_harness_threads={int(found[1]) + 1 if found else 2}"
    return [threads, *arguments, "--experiments=no_use_multiple_sdk_containers"]
