import subprocess
import sys
import time
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parents[3]

LAUNCHER = """
import os
from paraloom.beam_jobs.runners.local import worker
from paraloom.beam_jobs.runners.local.fork_server import fork_server
told = worker.environment("w", "{}", "localhost:1", "localhost:1")
fork_server.start(worker.__name__, [str(os.getpid())], told).wait()
"""


def start() -> tuple[subprocess.Popen[bytes], psutil.Process]:
    """A launcher and the worker that it started, which waits for a runner that never comes."""
    launcher = subprocess.Popen(
        [sys.executable, "-c", LAUNCHER], stderr=subprocess.DEVNULL, cwd=ROOT
    )
    while len(family := psutil.Process(launcher.pid).children(recursive=True)) < 2:
        assert launcher.poll() is None
        time.sleep(0.05)
    return launcher, family[-1]


def test_a_worker_ends_with_its_launcher() -> None:
    launcher, worker = start()
    time.sleep(0.5)
    assert worker.status() != psutil.STATUS_ZOMBIE
    launcher.kill()
    launcher.wait()
    assert gone(worker)


def gone(process: psutil.Process) -> bool:
    for _ in range(1200):
        if not process.is_running() or process.status() == psutil.STATUS_ZOMBIE:
            return True
        time.sleep(0.05)
    return False
