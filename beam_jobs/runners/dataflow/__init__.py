"""Dataflow: checks before a job, its submission or finding, and what the service's errors mean."""

from beam_jobs.runners.dataflow.checks import RUNNER, check_visible, one_process, prepare
from beam_jobs.runners.dataflow.jobs import label, patiently, submit, wait

__all__ = [
    "RUNNER",
    "check_visible",
    "label",
    "one_process",
    "patiently",
    "prepare",
    "submit",
    "wait",
]
