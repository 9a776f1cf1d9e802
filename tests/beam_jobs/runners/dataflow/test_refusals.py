"""What the service says, in Google's wordings, as one line that says what to do."""

import pytest

from paraloom.beam_jobs.io.storage import MissingError
from paraloom.beam_jobs.runners.dataflow.refusals import ExhaustedError, refusal
from paraloom.models.errors import UserError
from tests.dataflow.double import ACCOUNT, FAILURES, IMAGE, REFUSALS

NOT_ACT = f"Current user cannot act as service account {ACCOUNT}."
LINES = {
    "act as": f"job: {NOT_ACT} Causes: {NOT_ACT}; you need the role roles/iam.serviceAccountUser",
    "permission": "'dataflow.jobs.create' denied on project: 'tests'; docs/clusters.md has the",
    "no quota": "Quota 'NVIDIA_L4_GPUS' exceeded. Limit: 0.0 in region europe-west4.; ask for",
    "image": f'job: Failed to pull image "{IMAGE}": rpc error',
    "memory": "job: Out of memory: Killed process 1473 (python) total-vm:9471248kB, anon-rss:73400",
    "lost": "job: The worker lost contact with the service.; workers died, often for want",
    "code": "job: ZeroDivisionError: division by zero (in 'Score')",
    "user": "gs://paraloom/run/score: the disk is full",
    "stock-out": "does not have enough resources available to fulfill the request. Try a different",
    "quota": "Quota 'CPUS' exceeded. Limit: 24.0 in region europe-west4.",
    "requests": "job: Quota exceeded for quota metric 'Create requests' and limit",
}


@pytest.mark.parametrize("cause", LINES)
def test_each_is_one_line(cause: str) -> None:
    said = [REFUSALS[cause][1]] if cause in REFUSALS else FAILURES[cause]
    error = refusal("job", [" ".join(text.split(" ")) for text in said])
    line = " ".join(str(error).split())
    assert LINES[cause] in line
    assert isinstance(error, ExhaustedError) == (cause in ("stock-out", "quota", "requests"))
    assert "\n" not in str(error) and "Traceback" not in str(error)
    assert not any(number in str(error) for number in ("(1f2e)", "(3d4c)"))


def test_all_causes_are_known() -> None:
    assert LINES.keys() == REFUSALS.keys() | FAILURES.keys()


def test_remedies() -> None:
    remedies = {
        "image": "is --sdk_container_image in the registry",
        "memory": "--machine_type",
        "lost": "--machine_type",
    }
    for cause, words in remedies.items():
        assert words in str(refusal("job", FAILURES[cause]))
    assert "permission" not in str(refusal("job", FAILURES["memory"])).split("; ")[-2]


def test_errors_of_workers_keep_their_kind() -> None:
    said = ["Traceback …\nbeam_jobs.io.storage.MissingError: gs://a/b [while running 'Score']"]
    assert type(refusal("job", said)) is MissingError


def test_a_service_that_says_nothing() -> None:
    error = refusal("job", [])
    assert (type(error), str(error)) == (UserError, "job: it says nothing")
    assert len(str(refusal("job", ["word " * 1000]))) < 500
