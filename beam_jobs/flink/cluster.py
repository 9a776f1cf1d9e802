"""A standalone Flink cluster on loopback: its processes, their logs, and how to end just those.

    <folder>/cluster.json     addresses and slots
    <folder>/pids/<name>      process id and start time, so that no stranger's process is ended
    <folder>/logs/<name>.log
    <folder>/conf/            what Flink reads

Every process leads a group of its own, in which its children are: a worker pool's workers too.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil
import yaml
from apache_beam.options.pipeline_options import FlinkRunnerOptions

from beam_jobs.flink import install
from beam_jobs.launch import CORES, cores, parse_options
from models.errors import UserError
from models.files import atomic_file

TASK_MANAGERS = 2
PATIENCE = 60.0
"""Seconds in which a cluster has to be up."""

_OPEN = (
    "lang lang.reflect text time util util.concurrent util.concurrent.atomic io net nio security"
)
_JAVA_OPTIONS = [
    *(f"--add-opens=java.base/java.{name}=ALL-UNNAMED" for name in _OPEN.split()),
    "--add-opens=java.base/java.util.concurrent.locks=ALL-UNNAMED",
    "--add-opens=java.base/java.security=ALL-UNNAMED",
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
    "--add-exports=java.base/sun.net.util=ALL-UNNAMED",
    "--add-exports=java.security.jgss/sun.security.krb5=ALL-UNNAMED",
]
"""What Flink needs of Java's internals (its own default `env.java.opts.all`)."""

_LOG4J = """\
rootLogger.level = INFO
rootLogger.appenderRef.console.ref = console
appender.console.type = CONSOLE
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss,SSS} %-5p %c{1} - %m%n
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Where a cluster listens, and how much it does at once.

    Attributes:
        rest: Flink's REST address, which is also its web page and `--flink_master`.
        slots: of each of the TaskManagers.
    """

    rest: int = 8081
    rpc: int = 6123
    job_server: int = 8099
    artifacts: int = 8098
    workers: int = 50000
    slots: int = 1

    def arguments(self, given: Sequence[str] = ()) -> list[str]:
        """Beam options for a job on this cluster: on all its slots, or as many as `given` says."""
        slots = self.slots * TASK_MANAGERS
        asked = parse_options(given).view_as(FlinkRunnerOptions).parallelism
        slots = asked if asked > 0 else slots
        return [
            "--runner=FlinkRunner",
            f"--flink_master=localhost:{self.rest}",
            f"--flink_version={install.flink_version()}",
            f"--job_endpoint=localhost:{self.job_server}",
            "--environment_type=EXTERNAL",
            f"--environment_config=localhost:{self.workers}",
            # Kept between the passes of a job; without it each starts its workers anew.
            "--environment_cache_millis=10000",
            f"--parallelism={slots}",
            f"--sdk_worker_parallelism={-(-slots // TASK_MANAGERS)}",  # one for each slot
        ]


def default_folder() -> Path:
    """`.flink` in the working directory, or what PARALOOM_FLINK names."""
    return Path(os.environ.get("PARALOOM_FLINK") or ".flink")


def read(folder: Path) -> Cluster:
    """The cluster that was started in `folder`.

    Raises:
        UserError: there is none.
    """
    try:
        return Cluster(**json.loads((folder / "cluster.json").read_text()))
    except (OSError, ValueError, TypeError) as error:
        raise UserError(f"{folder}: no Flink cluster; `make flink-up` starts one") from error


def up(folder: Path, *, slots: int | None = None, free_ports: bool = False) -> Cluster:
    """Start what is not running yet, and wait until all of it works together.

    Args:
        slots: of each TaskManager; None shares this machine's cores among them.
        free_ports: take ports that are free instead of the usual ones.

    Raises:
        UserError: it does not come up; what was started is ended again.
    """
    folder = folder.resolve()
    running = [name for name in _names() if _process(folder, name)]
    if running:
        cluster = read(folder)
        if slots not in (None, cluster.slots):
            raise UserError(f"{folder}: a cluster with {cluster.slots} slots a TaskManager runs")
    else:
        cluster = _laid_out(slots or max(1, cores() // TASK_MANAGERS), free_ports)
        try:
            _prepare(folder, cluster)
        except OSError as error:
            raise UserError(f"{folder}: cannot be written ({error.strerror})") from error
    commands = _commands(folder, cluster)
    try:
        for name, command in commands.items():
            if name not in running:
                _start(folder, name, command, cluster)
        _wait(folder, cluster)
    except BaseException:
        down(folder)
        raise
    return cluster


def down(folder: Path) -> list[str]:
    """End the processes that `up` started in `folder`, and those only; give their names."""
    folder = folder.resolve()
    found = {name: process for name in _names() if (process := _process(folder, name))}
    for process in found.values():
        _signal(process, signal.SIGTERM)
    psutil.wait_procs(list(found.values()), timeout=GRACE)
    for name, process in found.items():
        _signal(process, signal.SIGKILL)  # what is left of the group, a pool's workers among them
        _pid_file(folder, name).unlink(missing_ok=True)
    (folder / "cluster.json").unlink(missing_ok=True)
    return list(found)


def overview(master: str, *, timeout: float = 5.0) -> dict[str, Any]:
    """What Flink's REST address tells of the cluster; OSError or ValueError if it does not."""
    return get(master, "overview", timeout=timeout)


def get(master: str, path: str, *, timeout: float = 5.0) -> dict[str, Any]:
    """A JSON answer of Flink's REST address; OSError or ValueError if there is none."""
    address = master if "://" in master else f"http://{master}"
    local = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with local.open(f"{address.rstrip('/')}/{path}", timeout=timeout) as answer:
        found = json.load(answer)
    if not isinstance(found, dict):
        raise ValueError(f"{path}: not an object")
    return found


def reachable(address: str, *, timeout: float = 2.0) -> bool:
    """Whether something listens at `host:port`."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout):
            return True
    except (OSError, ValueError, OverflowError):
        return False


def _names() -> list[str]:
    return ["jobmanager", *_task_managers(), "job-server", "workers"]


def _task_managers() -> list[str]:
    return [f"taskmanager-{i}" for i in range(1, TASK_MANAGERS + 1)]


def _laid_out(slots: int, free_ports: bool) -> Cluster:
    if free_ports:
        rest, rpc, job_server, artifacts, workers = _free_ports(5)
        return Cluster(
            rest=rest,
            rpc=rpc,
            job_server=job_server,
            artifacts=artifacts,
            workers=workers,
            slots=slots,
        )
    cluster = Cluster(slots=slots)
    for name, port in asdict(cluster).items():
        if name != "slots" and reachable(f"localhost:{port}"):
            raise UserError(
                f"port {port} is taken by another program: end it, or give --free-ports"
            )
    return cluster


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("localhost", 0))
        return [each.getsockname()[1] for each in sockets]


def _prepare(folder: Path, cluster: Cluster) -> None:
    for name in ("conf", "logs", "pids", "tmp"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for log in (folder / "logs").glob("*.log"):
        log.unlink()
    (folder / "conf" / "log4j.properties").write_text(_LOG4J)
    (folder / "conf" / "config.yaml").write_text(yaml.safe_dump(_flink_config(folder, cluster)))
    with atomic_file(folder / "cluster.json") as path:
        path.write_text(json.dumps(asdict(cluster)))


def _flink_config(folder: Path, cluster: Cluster) -> Mapping[str, Any]:
    return {
        "jobmanager.rpc.address": "localhost",
        "jobmanager.rpc.port": cluster.rpc,
        "jobmanager.bind-host": "localhost",
        "jobmanager.memory.process.size": "1g",
        "taskmanager.host": "localhost",
        "taskmanager.bind-host": "localhost",
        "taskmanager.memory.process.size": "1536m",
        # A job's passes over the corpus are many exchanges, all of them small.
        "taskmanager.memory.network.min": "256m",
        "taskmanager.memory.network.max": "256m",
        "taskmanager.network.sort-shuffle.min-buffers": 32,
        "taskmanager.numberOfTaskSlots": cluster.slots,
        "rest.address": "localhost",
        "rest.bind-address": "localhost",
        "rest.port": cluster.rest,
        "io.tmp.dirs": str(folder / "tmp"),
        "cluster.evenly-spread-out-slots": True,
        "classloader.resolve-order": "parent-first",  # all classes are in the class path
        "pekko.framesize": "104857600b",  # a job names all its shards
        # A TaskManager that died is missed soon; its shards go to the others, or to its successor.
        "heartbeat.interval": 3000,
        "heartbeat.timeout": 30000,
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": 3,
        "restart-strategy.fixed-delay.delay": "2 s",
    }


def _commands(folder: Path, cluster: Cluster) -> dict[str, list[str]]:
    place = install.installed()
    conf = str(folder / "conf")
    log = f"-Dlog4j.configurationFile=file:{conf}/log4j.properties"
    java = [install.java(), *_JAVA_OPTIONS, log]
    classes = ["-cp", f"{install.jars(place)}/*"]
    memory, settings = _memory(place, conf)
    runtime = "org.apache.flink.runtime"
    session = f"{runtime}.entrypoint.StandaloneSessionClusterEntrypoint"
    runner = f"{runtime}.taskexecutor.TaskManagerRunner"
    task_manager = [*java, *memory, *classes, runner, "--configDir", conf, *settings]
    job_server = {
        "flink-master": f"localhost:{cluster.rest}",
        "job-host": "localhost",
        "job-port": cluster.job_server,
        "artifact-port": cluster.artifacts,
        "expansion-port": 0,
        "artifacts-dir": folder / "tmp" / "artifacts",
    }
    return {
        "jobmanager": [*java, "-Xmx768m", *classes, session, "--configDir", conf],
        **dict.fromkeys(_task_managers(), task_manager),
        "job-server": [
            *[*java, "-Xmx768m", *classes, "org.apache.beam.runners.flink.FlinkJobServerDriver"],
            *(f"--{name}={value}" for name, value in job_server.items()),
        ],
        "workers": [
            *[sys.executable, "-m", "beam_jobs.flink.pool", f"--service_port={cluster.workers}"]
        ],
    }


def _memory(place: Path, conf: str) -> tuple[list[str], list[str]]:
    """Of a TaskManager: what Java, and what Flink is told of its memory."""
    utility = "org.apache.flink.runtime.util.bash.BashJavaUtils"
    classes = f"{place}/bash-java-utils.jar:{install.jars(place)}/*"
    command = [install.java(), "-cp", classes, utility, "GET_TM_RESOURCE_PARAMS"]
    done = subprocess.run([*command, "--configDir", conf], capture_output=True, text=True)
    mark = "BASH_JAVA_UTILS_EXEC_RESULT:"
    found = [line.split(mark, 1)[1].split() for line in done.stdout.splitlines() if mark in line]
    if done.returncode or len(found) != 2:
        raise RuntimeError(f"{utility}: {done.stderr}")
    return found[0], found[1]


def _start(folder: Path, name: str, command: list[str], cluster: Cluster) -> None:
    share = max(1, cores() // (cluster.slots * TASK_MANAGERS))
    with (folder / "logs" / f"{name}.log").open("a") as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**os.environ, CORES: str(share)},
            start_new_session=True,
        )
    started = psutil.Process(process.pid).create_time()
    with atomic_file(_pid_file(folder, name)) as path:
        path.write_text(f"{process.pid} {started}")


def _wait(folder: Path, cluster: Cluster) -> None:
    def task_managers() -> bool:
        try:
            return overview(f"localhost:{cluster.rest}").get("taskmanagers") == TASK_MANAGERS
        except (OSError, ValueError):
            return False

    checks: dict[str, Callable[[], bool]] = {
        "jobmanager": lambda: reachable(f"localhost:{cluster.rest}"),
        "job-server": lambda: reachable(f"localhost:{cluster.job_server}"),
        "workers": lambda: reachable(f"localhost:{cluster.workers}"),
        _task_managers()[-1]: task_managers,
    }
    deadline = time.monotonic() + PATIENCE
    for name, check in checks.items():
        while not check():
            for other in _names():
                if not _process(folder, other):
                    raise UserError(f"Flink's {other} ended at once: {_last(folder, other)}")
            if time.monotonic() > deadline:
                raise UserError(
                    f"Flink's {name} is not up after {PATIENCE:.0f} seconds: {_last(folder, name)}"
                )
            time.sleep(0.2)


def _last(folder: Path, name: str) -> str:
    """The last thing that a log says went wrong, and where it stands."""
    log = folder / "logs" / f"{name}.log"
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines()]
    wrong = [line for line in lines if "Error" in line or "Exception" in line or "ERROR" in line]
    said = (wrong or lines or ["it says nothing"])[-1]
    return f"{said[:200]} ({log})"


def _pid_file(folder: Path, name: str) -> Path:
    return folder / "pids" / name


def _process(folder: Path, name: str) -> psutil.Process | None:
    """The process of that name, if it is there and has not ended."""
    try:
        pid, started = _pid_file(folder, name).read_text().split()
        process = psutil.Process(int(pid))
        same = process.create_time() == float(started)
        alive = same and process.status() != psutil.STATUS_ZOMBIE
        return process if alive else None
    except (OSError, ValueError, psutil.Error):
        return None


def _signal(process: psutil.Process, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
