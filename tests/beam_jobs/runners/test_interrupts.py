"""Ctrl-C ends a process that Beam does not let end."""

import signal
import subprocess
import sys
import time

import pytest

from paraloom.beam_jobs.runners.local.interrupts import ends_when_interrupted

STUCK = """
import signal, sys, time
from paraloom.beam_jobs.runners.local import interrupts
signal.signal(signal.SIGINT, signal.default_int_handler)  # the tests may run in the background
interrupts._PATIENCE = 0.5
with interrupts.ends_when_interrupted(sys.stdout):
    while True:
        try:
            print("waits", flush=True)
            time.sleep(60)
        except KeyboardInterrupt:
            pass
"""


def test_a_block_that_goes_on_is_ended() -> None:
    command = [sys.executable, "-c", STUCK]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "waits\n"
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert said == "waits\nparaloom: interrupted; the same command resumes the work\n"


def test_a_block_that_ends_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paraloom.beam_jobs.runners.local.interrupts._PATIENCE", 0.1)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt), ends_when_interrupted(sys.stdout):
            signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        time.sleep(0.3)  # in which nothing ends the process
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_background_job_ignores_it() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with ends_when_interrupted(sys.stdout):
            signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
