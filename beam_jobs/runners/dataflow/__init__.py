"""Dataflow: checks before a job is submitted, and one worker process per machine."""

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
    """Check that a Dataflow job has all that its workers need; do nothing for other runners."""
    if options.view_as(StandardOptions).runner != DATAFLOW:
        return
    import google.cloud.dataflow  # noqa: F401  (if it fails, the command names the extra)

    cloud = options.view_as(GoogleCloudOptions)
    for name in ("project", "region", "temp_location"):
        if not getattr(cloud, name):
            raise UserError(f"{DATAFLOW}: --{name} is missing")
    if not options.view_as(WorkerOptions).sdk_container_image:
        raise UserError(
            f"{DATAFLOW}: --sdk_container_image is missing; build an image with docker/Dockerfile"
        )
    check_visible("run", output)
    options.view_as(SetupOptions).save_main_session = False
    hide_options()


def one_process(arguments: Sequence[str], accelerator: str | None) -> list[str]:
    """Add arguments for one worker process per machine, so that each model is loaded once.

    By default Dataflow starts one process per core, each with 12 threads. Every process would load
    the model and use all cores. The arguments give one thread per GPU (one in all without GPUs),
    and one thread that reads or writes. The user's `--number_of_worker_harness_threads` takes
    precedence.
    """
    if accelerator is None and runner_of(arguments) != DATAFLOW:
        return [*arguments]
    found = re.search(r"\bcount:(\d+)", accelerator or "")
    threads = f"--number_of_worker_harness_threads={int(found[1]) + 1 if found else 2}"
    return [threads, *arguments, "--experiments=no_use_multiple_sdk_containers"]
