import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path

import psutil

from beam_jobs.worker import Lossy

ROOT = Path(__file__).resolve().parents[2]

LAUNCHER = """
import subprocess, sys
from beam_jobs.worker import command
{before}
worker = subprocess.Popen(command(), shell=True)
print(worker.pid, flush=True)
worker.wait()
"""


def start(before=""):
    """A launcher and the worker that it started, which waits for a runner that never comes."""
    launcher = subprocess.Popen(
        [sys.executable, "-c", LAUNCHER.format(before=before)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=ROOT,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "CONTROL_API_SERVICE_DESCRIPTOR": 'url: "localhost:1"',
            "LOGGING_API_SERVICE_DESCRIPTOR": 'url: "localhost:1"',
            "PIPELINE_OPTIONS": "{}",
        },
        text=True,
    )
    return launcher, psutil.Process(int(launcher.stdout.readline()))


def test_a_worker_ends_with_its_launcher():
    launcher, worker = start()
    time.sleep(0.5)
    assert worker.status() != psutil.STATUS_ZOMBIE
    launcher.kill()
    launcher.wait()
    assert gone(worker)


def test_a_path_with_a_space(tmp_path):
    folder = tmp_path / "my projects"
    folder.mkdir()
    python = folder / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    launcher, worker = start(before=f"sys.executable = {str(python)!r}")
    time.sleep(0.5)
    assert worker.status() != psutil.STATUS_ZOMBIE
    launcher.kill()
    launcher.wait()
    assert gone(worker)


def test_a_log_that_cannot_be_written_stops_nothing():
    with open("/dev/full", "w", buffering=1) as full:  # noqa: PTH123
        stream = Lossy(full)
        print("lost", file=stream)
        stream.flush()
        assert stream.fileno() == full.fileno()
        with contextlib.suppress(OSError):
            full.close()


def gone(process):
    for _ in range(200):
        if not process.is_running() or process.status() == psutil.STATUS_ZOMBIE:
            return True
        time.sleep(0.05)
    return False
