"""A Flink cluster of its own for a script, and its processes to be killed."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.faults.ground import Ground
from tests.flink import cluster


@contextmanager
def flink(ground: Ground) -> Iterator[Path]:
    """Let the runs of the block, but for the undisturbed one, go to a cluster with two slots."""
    ground.undisturbed()
    folder = ground.folder / "flink"
    os.environ["PYTHONPATH"] = ground.env["PYTHONPATH"]  # of the workers
    found = cluster.up(folder, slots=1, free_ports=True)
    ground.say(f"a Flink cluster is up: 2 TaskManagers, 2 slots, {ground.folder}/flink/logs")
    before, ground.beam = ground.beam, tuple(found.arguments())
    try:
        yield folder
    finally:
        ground.beam = before
        ground.say(f"ended: {', '.join(cluster.down(folder))}")


def kill(folder: Path, name: str) -> None:
    """Kill a process of the cluster and its children, as the kernel does, and see it gone."""
    pid = int((folder / "pids" / name).read_text().split()[0])
    os.killpg(pid, signal.SIGKILL)
    while cluster.process(folder, name):
        time.sleep(0.05)


def restart(folder: Path) -> None:
    """Start again what is missing, as a supervisor would."""
    cluster.up(folder)


def lose(
    ground: Ground, folder: Path, name: str, what: str
) -> tuple[subprocess.Popen[str], dict[str, Any]]:
    """Begin the run, kill a process of the cluster in the middle, and start it again.

    Returns:
        the command, which is still at work, and the shards that were finished before.
    """
    ground.configure("run")
    command = ground.start("run")
    ground.until(lambda: ground.in_the_middle("run", 2), command)
    kill(folder, name)
    before = ground.finished("run")
    ground.say(f"killed {what} after {len(before)} shards")
    restart(folder)
    ground.say("it is up again")
    return command, before
