"""A standalone Flink cluster on the loopback interface: its processes and their logs.

    <folder>/cluster.json     addresses and slots
    <folder>/pids/<name>      process id and start time, which identify the process
    <folder>/logs/<name>.log
    <folder>/conf/            Flink's configuration

Every process leads a process group with its children, such as the workers of the pool.
"""

import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, fields
from pathlib import Path

import psutil

from paraloom.beam_jobs.runners.flink.programs import (
    NAMES,
    TASK_MANAGERS,
    Cluster,
    commands,
    write_configuration,
)
from paraloom.beam_jobs.runners.flink.reach import get, reachable
from paraloom.models.cpu import CORES, cores
from paraloom.models.errors import UserError
from paraloom.models.files import atomic_file

PATIENCE = 60.0
"""Seconds to wait until a cluster is up."""

GRACE = 10.0
"""Seconds between SIGTERM and SIGKILL."""


def default_folder() -> Path:
    """`PARALOOM_FLINK`, or `.flink` in the working directory."""
    return Path(os.environ.get("PARALOOM_FLINK") or ".flink")


def read(folder: Path) -> Cluster:
    """The cluster that was started in `folder`."""
    try:
        return Cluster(**json.loads((folder / "cluster.json").read_text()))
    except (OSError, ValueError, TypeError) as error:
        raise UserError(f"{folder}: no Flink cluster; `make flink-up` starts one") from error


def up(folder: Path, *, slots: int | None = None, free_ports: bool = False) -> Cluster:
    """Start the processes that are not running, and wait until the cluster is ready.

    If the cluster does not start, its processes are stopped again.

    Args:
        slots: slots of each TaskManager; None divides the cores of this machine among them.
    """
    folder = folder.resolve()
    running = [name for name in NAMES if process(folder, name)]
    if running:
        cluster = read(folder)
        if slots not in (None, cluster.slots):
            raise UserError(f"{folder}: a cluster with {cluster.slots} slots a TaskManager runs")
    else:
        cluster = _laid_out(slots or max(1, cores() // TASK_MANAGERS), free_ports)
        _prepare(folder, cluster)
    programs = commands(folder, cluster)
    try:
        for name, command in programs.items():
            if name not in running:
                _start(folder, name, command, cluster)
        _wait(folder, cluster)
    except BaseException:
        down(folder)
        raise
    return cluster


def down(folder: Path) -> list[str]:
    """Stop only the processes that `up` started in `folder`; return their names."""
    folder = folder.resolve()
    found = {name: there for name in NAMES if (there := process(folder, name))}
    for number in (signal.SIGTERM, signal.SIGKILL):  # the second ends the rest of the groups
        for each in found.values():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(each.pid, number)
        psutil.wait_procs(list(found.values()), timeout=GRACE)
    for name in found:
        (folder / "pids" / name).unlink(missing_ok=True)
    (folder / "cluster.json").unlink(missing_ok=True)
    return list(found)


def _laid_out(slots: int, free_ports: bool) -> Cluster:
    if free_ports:
        names = [field.name for field in fields(Cluster) if field.name != "slots"]
        return Cluster(**dict(zip(names, _free_ports(), strict=False)), slots=slots)
    cluster = Cluster(slots=slots)
    for name, port in asdict(cluster).items():
        if name != "slots" and reachable(f"localhost:{port}"):
            raise UserError(
                f"port {port} is taken by another program: end it, or give --free-ports"
            )
    return cluster


def _free_ports() -> Iterator[int]:
    """Ports below those that systems give to connections, which would take them before Flink."""
    for port in random.SystemRandom().sample(range(10_000, 32_768), k=1_000):
        with contextlib.suppress(OSError), socket.socket() as each:
            each.bind(("", port))
            yield port


def _prepare(folder: Path, cluster: Cluster) -> None:
    for name in ("logs", "pids", "tmp"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for log in (folder / "logs").glob("*.log"):
        log.unlink()
    write_configuration(folder, cluster)
    with atomic_file(folder / "cluster.json") as path:
        path.write_text(json.dumps(asdict(cluster)))


def _start(folder: Path, name: str, command: list[str], cluster: Cluster) -> None:
    share = max(1, cores() // (cluster.slots * TASK_MANAGERS))
    with (folder / "logs" / f"{name}.log").open("a") as log:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**os.environ, CORES: str(share)},
            start_new_session=True,
        )
    started = psutil.Process(child.pid).create_time()
    with atomic_file(folder / "pids" / name) as path:
        path.write_text(f"{child.pid} {started}")


def _wait(folder: Path, cluster: Cluster) -> None:
    def task_managers() -> bool:
        try:
            return get(f"localhost:{cluster.rest}", "overview").get("taskmanagers") == TASK_MANAGERS
        except (OSError, ValueError):
            return False

    checks: dict[str, Callable[[], bool]] = {
        "jobmanager": lambda: reachable(f"localhost:{cluster.rest}"),
        "job-server": lambda: reachable(f"localhost:{cluster.job_server}"),
        "workers": lambda: reachable(f"localhost:{cluster.workers}"),
        NAMES[TASK_MANAGERS]: task_managers,
    }
    deadline = time.monotonic() + PATIENCE
    for name, check in checks.items():
        while not check():
            _all_alive(folder)
            if time.monotonic() > deadline:
                raise UserError(
                    f"Flink's {name} is not up after {PATIENCE:.0f} seconds: {_last(folder, name)}"
                )
            time.sleep(0.2)
    _all_alive(folder)  # the JobManager counts a TaskManager until it misses its heartbeat


def _all_alive(folder: Path) -> None:
    for name in NAMES:
        if not process(folder, name):
            raise UserError(f"Flink's {name} ended at once: {_last(folder, name)}")


def _last(folder: Path, name: str) -> str:
    """The last error in a log, or its last line, and the path of the log."""
    log = folder / "logs" / f"{name}.log"
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines()]
    wrong = [line for line in lines if "Error" in line or "Exception" in line or "ERROR" in line]
    said = (wrong or lines or ["it says nothing"])[-1]
    return f"{said[:200]} ({log})"


def process(folder: Path, name: str) -> psutil.Process | None:
    """The process of that name, if it is running."""
    try:
        pid, started = (folder / "pids" / name).read_text().split()
        found = psutil.Process(int(pid))
        same = found.create_time() == float(started)
        return found if same and found.status() != psutil.STATUS_ZOMBIE else None
    except (OSError, ValueError, psutil.Error):
        return None
