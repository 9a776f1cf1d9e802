"""Jobs on a stand-in for Dataflow: submitted once, found again, refused in one line."""

import re
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from apache_beam.options.pipeline_options import PipelineOptions

from paraloom.beam_jobs.engine.launch import Result, launch
from paraloom.beam_jobs.runners import dataflow
from paraloom.beam_jobs.runners.remote_jobs import RemoteJob, User, listening
from paraloom.models.errors import UserError
from paraloom.pipeline.commands.boundary import in_a_line
from tests.beam_jobs.runners.copying import job, write
from tests.dataflow.double import Dataflow, Job
from tests.dataflow.execute import in_this_process
from tests.google_store import BUCKET
from tests.run_helpers import Capsys, Patch


@pytest.fixture
def waiting(service: Dataflow) -> threading.Event:
    """Jobs do not begin before it is set."""
    event = threading.Event()

    def execute(job: Job) -> None:
        while not event.wait(0.02):
            if job.cancelled.is_set():
                return
        if "environment" in job.body:
            in_this_process(job)

    service.execute = execute
    return event


def later(action: Callable[[], object], condition: Callable[[], object]) -> None:
    """Do something as soon as a condition holds."""

    def wait() -> None:
        while not condition():
            time.sleep(0.01)
        action()

    threading.Thread(target=wait, daemon=True).start()


def created(service: Dataflow) -> int:
    """How often a job was asked for."""
    return sum(line.startswith("POST ") for line in service.log)


def test_a_launcher_that_dies_and_the_same_command_again(
    service: Dataflow,
    arguments: list[str],
    waiting: threading.Event,
    tmp_path: Path,
    monkeypatch: Patch,
    capfd: Capsys,
) -> None:
    """The second command waits for the job of the first, and has its counters."""
    folder, told = f"{BUCKET}/{tmp_path.name}", list[RemoteJob]()
    work = write(folder, 2)

    def copy() -> Result:
        return launch(**job(work, f"{folder}/copy"), arguments=[*arguments, "--on_interrupt=leave"])

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt), listening(told.append):
        patch.setattr(dataflow, "wait", interrupt)
        copy()
    (made,) = service.jobs
    page = f"https://console.cloud.google.com/dataflow/jobs/europe-west4/{made.id}?project=tests"
    assert told == [RemoteJob(name=made.name, id=made.id, address=page)]
    assert f"{made.name}: submitted to Dataflow, {page}\n" in capfd.readouterr().err

    later(waiting.set, made.asked_for.is_set)
    with listening(told.append):
        result = copy()
    assert told[1] == told[0]
    assert result.metrics == {"rows": 6}
    assert [receipt.rows_out for receipt in result.receipts] == [3, 3]
    assert f"{made.name}: found running on Dataflow, {page}\n" in capfd.readouterr().err
    assert created(service) == 1


class Pipeline:
    """A pipeline that is submitted without Beam."""

    def __init__(self, service: Dataflow, options: PipelineOptions) -> None:
        self.service, self.options = service, options

    def run(self) -> Any:
        from google.api_core import exceptions

        self.service.note("POST x")
        labels = {"paraloom-work": "w"}
        status, values = self.service.create({"name": "x", "labels": labels})
        if status != 200:
            said = values["error"]["message"]
            raise exceptions.from_http_status(status, said)  # type: ignore[no-untyped-call]
        return SimpleNamespace(job_id=lambda: values["id"])


@pytest.fixture
def options(arguments: list[str]) -> PipelineOptions:
    """The options of a job `x` that does the work `w`."""
    options = PipelineOptions([*arguments, "--job_name=x"])
    dataflow.label(options, "w")
    return options


def submit(service: Dataflow, options: PipelineOptions) -> Any:
    return dataflow.submit(Pipeline(service, options), options, User(options))


def begin(service: Dataflow, work: str = "w") -> Job:
    """A job of another launcher, at work."""
    service.create({"name": "x", "labels": {"paraloom-work": work}})
    return service.jobs[-1]


def test_a_job_that_does_other_work_is_named_and_left_alone(
    service: Dataflow, waiting: threading.Event, options: PipelineOptions
) -> None:
    job = begin(service, "other")
    with pytest.raises(UserError, match=r"job x .* another configuration or input: .* https://con"):
        submit(service, options)
    assert (len(service.jobs), job.cancelled.is_set()) == (1, False)


def test_of_two_launchers_at_once_one_submits(
    service: Dataflow, waiting: threading.Event, options: PipelineOptions, monkeypatch: Patch
) -> None:
    """The second sees no job, asks for one, and is refused (409): it waits for the first's."""
    job, find, looks = begin(service), dataflow._find, iter([True, False])
    monkeypatch.setattr(dataflow, "_find", lambda *given: None if next(looks) else find(*given))
    assert submit(service, options).job_id() == job.id
    assert (created(service), len(service.jobs)) == (1, 1)


def test_a_job_that_is_being_cancelled_ends_before_the_next(
    service: Dataflow, waiting: threading.Event, options: PipelineOptions
) -> None:
    job = begin(service)
    job.state = "CANCELLING"
    later(job.cancelled.set, lambda: service.log.count("GET x") > 2)
    assert submit(service, options).job_id() == service.jobs[1].id
    assert job.state == "CANCELLED"


def test_a_job_whose_result_only_its_launcher_reads_is_cancelled_first(
    service: Dataflow, waiting: threading.Event, arguments: list[str]
) -> None:
    service.create({"name": "paraloom-idf-1"})
    submit(service, PipelineOptions([*arguments, "--job_name=paraloom-idf-1"]))
    assert service.jobs[0].state == "CANCELLED"
    assert [line for line in service.log if line[:3] != "GET"] == ["PUT paraloom-idf-1", "POST x"]


@pytest.mark.parametrize(
    "other", [{"name": "x"}, {"name": "paraloom-idf-1", "labels": {"paraloom-work": "w"}}]
)
def test_other_jobs_of_a_name_that_the_user_gave_are_left_alone(
    service: Dataflow, waiting: threading.Event, arguments: list[str], other: dict[str, Any]
) -> None:
    service.create(other)
    with pytest.raises(UserError, match=f"--job_name {other['name']}: a job of that name"):
        submit(service, PipelineOptions([*arguments, f"--job_name={other['name']}"]))
    assert service.jobs[0].state != "CANCELLED"


def test_a_refusal_is_one_line(service: Dataflow, options: PipelineOptions) -> None:
    service.refuse = ["act as"]
    with pytest.raises(Exception, match="Current user cannot act as") as raised:
        submit(service, options)
    assert "Dataflow job x: Forbidden: 403" in in_a_line(raised.value)


PAGE = r"Dataflow job x \(https://con\S+\): "


@pytest.mark.parametrize(
    ("cause", "message"),
    [
        ("image", rf"{PAGE}.*The Dataflow job appears to be stuck because no worker activity .*"),
        ("code", rf"{PAGE}.*ZeroDivisionError: division by zero \[while running 'Score'\].*"),
        ("user", "gs://paraloom/run/score: the disk is full"),
    ],
)
def test_a_failure_or_an_error_of_the_users_in_a_worker_is_one_line(
    service: Dataflow, options: PipelineOptions, cause: str, message: str
) -> None:
    service.refuse = [cause]
    begin(service)
    with pytest.raises(UserError) as raised:
        dataflow.wait(submit(service, options), options)
    assert re.fullmatch(message, str(raised.value))


def test_a_cancelled_job_is_one_line(
    service: Dataflow, waiting: threading.Event, options: PipelineOptions
) -> None:
    job = begin(service)
    later(job.cancelled.set, job.asked_for.is_set)
    with pytest.raises(UserError, match="was cancelled; the same command resumes"):
        dataflow.wait(submit(service, options), options)
