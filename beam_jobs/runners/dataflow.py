"""Submit jobs to Dataflow, or attach to a job that another launcher submitted.

A job is named after its stage and the run's folder. Dataflow refuses a second active job with the
same name. A label contains a digest of the job's work.
"""

import re
import time
from collections.abc import Sequence
from typing import Any

import apache_beam as beam
from apache_beam.options.pipeline_options import (
    GoogleCloudOptions,
    PipelineOptions,
    SetupOptions,
    StandardOptions,
    WorkerOptions,
)
from apache_beam.runners.runner import PipelineResult

from paraloom.beam_jobs.engine.options import DATAFLOW, check_visible, runner_of
from paraloom.beam_jobs.runners.local.worker import hide_options
from paraloom.beam_jobs.runners.remote_jobs import RemoteJob, User, user_error
from paraloom.models.errors import UserError, one_line, reading

_LABEL = "paraloom-work"
_POLL = 5.0  # seconds
_AT_WORK = ("JOB_STATE_QUEUED", "JOB_STATE_PENDING", "JOB_STATE_RUNNING")


def prepare(options: PipelineOptions, output: str) -> None:
    """Check a Dataflow job's options, and keep them out of logs. Do nothing for other runners."""
    if options.view_as(StandardOptions).runner != DATAFLOW:
        return
    import google.cloud.dataflow  # noqa: F401  (if missing, an error names the extra)

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

    By default, Dataflow starts one process per core, and each process would load the model. The
    added arguments give one thread per GPU (one thread if there is no GPU), and one more thread
    that reads and writes. The user may override `--number_of_worker_harness_threads`. For other
    runners, arguments are added only if there is an accelerator.
    """
    if accelerator is None and runner_of(arguments) != DATAFLOW:
        return [*arguments]
    found = re.search(r"\bcount:(\d+)", accelerator or "")
    threads = f"--number_of_worker_harness_threads={int(found[1]) + 1 if found else 2}"
    return [threads, *arguments, "--experiments=no_use_multiple_sdk_containers"]


def label(options: PipelineOptions, work: str) -> None:
    """Add a label with `work`, the digest of the job's work, to the options."""
    cloud = options.view_as(GoogleCloudOptions)
    cloud.labels = [*(cloud.labels or ()), f"{_LABEL}={work}"]


def submit(pipeline: beam.Pipeline, options: PipelineOptions, user: User) -> PipelineResult:
    """Submit a job, or attach to the active job that does the same work.

    A job without a label serves only the launcher that submitted it. If the new job has no label,
    an active job that has the same name and no label is therefore cancelled first, unless the user
    chose the name.
    """
    from apache_beam.runners.dataflow.internal.apiclient import DataflowJobAlreadyExistsError
    from google.api_core.exceptions import Conflict

    cloud = options.view_as(GoogleCloudOptions)
    places = cloud.staging_location, cloud.temp_location  # Beam changes both
    with reading(f"Dataflow job {cloud.job_name}"):
        if found := _find(options, user):
            return found
        try:
            result = pipeline.run()
        except (Conflict, DataflowJobAlreadyExistsError):  # another launcher was faster
            if found := _find(options, user):
                return found
            raise
        finally:
            cloud.staging_location, cloud.temp_location = places
    user.tell(_job(result.job_id(), cloud), "submitted to Dataflow")
    return result


def wait(result: PipelineResult, options: PipelineOptions) -> None:
    """Wait until a job ends; raise a UserError if it failed or was cancelled."""
    from apache_beam.runners.dataflow.dataflow_runner import DataflowRuntimeException

    job = _job(result.job_id(), options.view_as(GoogleCloudOptions))
    what = f"Dataflow job {job.name} ({job.address})"
    try:
        result.wait_until_finish()
    except DataflowRuntimeException as error:
        if result.state == "CANCELLED":
            raise UserError(f"{what}: was cancelled; the same command resumes") from error
        errors = _errors(result, job.id)
        if found := user_error("\n".join(errors)):
            raise found from error
        traces = [text for text in errors if "Traceback" in text]
        last = (traces or errors or ["no error message"])[-1].strip()
        raise UserError(f"{what}: {one_line(last.splitlines()[-1] if traces else last)}") from error


def _find(options: PipelineOptions, user: User) -> PipelineResult | None:
    """Find the active job that has the name and the label of the new job.

    If neither the new job nor the active job with its name has a label, cancel the active job, or
    raise a UserError if the user chose the name. Raise a UserError if the labels differ. Wait while
    a job with this name is being cancelled.
    """
    from apache_beam.runners.dataflow.dataflow_metrics import DataflowMetrics
    from apache_beam.runners.dataflow.dataflow_runner import DataflowPipelineResult, DataflowRunner
    from apache_beam.runners.dataflow.internal.apiclient import DataflowApplicationClient
    from google.cloud.dataflow import ListJobsRequest

    cloud = options.view_as(GoogleCloudOptions)
    client = DataflowApplicationClient(options)
    request = ListJobsRequest(
        project_id=cloud.project, location=cloud.region, filter=ListJobsRequest.Filter.ACTIVE
    )
    request.name = cloud.job_name
    wanted = {label.partition("=")[::2] for label in cloud.labels or ()}
    while True:
        active = (job for job in client._jobs_client.list_jobs(request) if job.name == request.name)
        if not (found := next(active, None)):
            return None
        job, at_work = _job(found.id, cloud), found.current_state.name in _AT_WORK
        if at_work and _LABEL not in dict(wanted):
            if _LABEL in found.labels or not job.name.startswith("paraloom-"):
                raise UserError(f"--job_name {job.name}: a job of that name is running")
            client.modify_job_state(found.id, "JOB_STATE_CANCELLED")
        elif at_work and (_LABEL, found.labels.get(_LABEL)) not in wanted:
            raise UserError(
                f"Dataflow job {job.name} runs this stage with another configuration or "
                f"input: wait for its end, or cancel it at {job.address}"
            )
        elif at_work:
            user.tell(job, "found running on Dataflow")
            runner = DataflowRunner()
            runner.dataflow_client = client
            result = DataflowPipelineResult(found, runner, options)
            result.metric_results = DataflowMetrics(client, result)
            return result
        time.sleep(_POLL)  # the job is being cancelled


def _job(id: str, cloud: Any) -> RemoteJob:
    page = f"https://console.cloud.google.com/dataflow/jobs/{cloud.region}/{id}"
    return RemoteJob(name=cloud.job_name, id=id, address=f"{page}?project={cloud.project}")


def _errors(result: PipelineResult, id: str) -> list[str]:
    messages: list[str] = []
    page = None
    while True:
        found, page = result._runner.dataflow_client.list_messages(
            id, page_token=page, minimum_importance="JOB_MESSAGE_ERROR"
        )
        messages += [message.message_text for message in found]
        if not page:
            return messages
