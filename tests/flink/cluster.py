"""A standalone Flink cluster on the loopback interface: its processes and their logs.

    <folder>/cluster.json     addresses and slots
    <folder>/pids/<name>      process id and start, which identify the process
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
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import psutil
import yaml

from paraloom.beam_jobs.runners.flink.submit import get, reachable
from paraloom.models.cpu import CORES, cores
from tests.flink import install
from tests.flink.java_loopback import write_patch

TASK_MANAGERS = 2
_TASK_MANAGERS = [f"taskmanager-{i}" for i in range(1, TASK_MANAGERS + 1)]
NAMES = ("jobmanager", *_TASK_MANAGERS, "job-server", "workers")
"""The names of the processes."""

IDLE_MILLIS = 5_000
"""Milliseconds that idle workers are reused; otherwise every pass of a job starts new ones."""

PATIENCE = 60.0
"""Seconds to wait until a cluster is up."""

GRACE = 10.0
"""Seconds between SIGTERM and SIGKILL."""

DATA = Path(__file__).parent  # has the programs' configuration as files


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """The ports of a cluster, and its parallelism."""

    rest: int = 8081  # Flink's REST address, which is also its web page and `--flink_master`
    rpc: int = 6123
    job_server: int = 8099
    artifacts: int = 8098
    workers: int = 50000
    slots: int = 1  # of each TaskManager

    def arguments(self, parallelism: int | None = None) -> list[str]:
        """Beam options for a job on this cluster, by default on all slots."""
        slots = parallelism or self.slots * TASK_MANAGERS
        return [
            "--runner=FlinkRunner",
            f"--flink_master=localhost:{self.rest}",
            f"--flink_version={install.MINOR}",
            f"--job_endpoint=localhost:{self.job_server}",
            "--environment_type=EXTERNAL",
            f"--environment_config=localhost:{self.workers}",
            f"--environment_cache_millis={IDLE_MILLIS}",
            f"--parallelism={slots}",
            f"--sdk_worker_parallelism={-(-slots // TASK_MANAGERS)}",  # one for each slot
        ]


def read(folder: Path) -> Cluster:
    """The cluster that was started in `folder`."""
    return Cluster(**json.loads((folder / "cluster.json").read_text()))


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
    else:
        slots = slots or max(1, cores() // TASK_MANAGERS)
        names = [field.name for field in fields(Cluster) if field.name != "slots"]
        ports = dict(zip(names, _free_ports(), strict=False)) if free_ports else {}
        cluster = Cluster(**ports, slots=slots)
        _prepare(folder, cluster)
    try:
        for name, command in commands(folder, cluster).items():
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


def process(folder: Path, name: str) -> psutil.Process | None:
    """The process of that name, if it is running."""
    try:
        pid, started = (folder / "pids" / name).read_text().split()
        found = psutil.Process(int(pid))
        same = _started(found) == float(started)
        return found if same and found.status() != psutil.STATUS_ZOMBIE else None
    except (OSError, ValueError, psutil.Error):
        return None


def _started(process: psutil.Process) -> float:
    """Seconds from the boot to the start of a process, which stay when the clock is set."""
    return float(round(process.create_time() - psutil.boot_time(), 2))


def commands(folder: Path, cluster: Cluster) -> dict[str, list[str]]:
    """The command line of each of `NAMES`."""
    folder_of_jars = install.installed()
    conf = str(folder / "conf")
    log = f"-Dlog4j.configurationFile={(DATA / 'log4j.properties').resolve().as_uri()}"
    java = [install.java(), f"@{DATA / 'java.options'}", log]
    (beam,) = install.jars(folder_of_jars).glob("beam-sdks-java-core-*.jar")
    patch = write_patch(folder / "conf", beam)
    classes = ["-cp", f"{patch}:{install.jars(folder_of_jars)}/*"]
    memory, settings = memory_options(folder_of_jars, conf)
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
        **dict.fromkeys(_TASK_MANAGERS, task_manager),
        "job-server": [
            *[*java, "-Xmx768m", *classes, "org.apache.beam.runners.flink.FlinkJobServerDriver"],
            *(f"--{name}={value}" for name, value in job_server.items()),
        ],
        "workers": [
            *[sys.executable, "-m", "paraloom.beam_jobs.runners.flink.pool"],
            f"--service_port={cluster.workers}",
        ],
    }


def memory_options(folder_of_jars: Path, conf: str) -> tuple[list[str], list[str]]:
    """The memory options of a TaskManager: those for Java, and those for Flink."""
    utility = "org.apache.flink.runtime.util.bash.BashJavaUtils"
    classes = f"{folder_of_jars}/bash-java-utils.jar:{install.jars(folder_of_jars)}/*"
    command = [install.java(), "-cp", classes, utility, "GET_TM_RESOURCE_PARAMS"]
    command = [*command, "--configDir", conf]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    mark = "BASH_JAVA_UTILS_EXEC_RESULT:"
    found = [line.split(mark, 1)[1].split() for line in done.stdout.splitlines() if mark in line]
    return found[0], found[1]


def _free_ports() -> Iterator[int]:
    """Ports below those that systems give to connections, which would take them before Flink."""
    for port in random.SystemRandom().sample(range(10_000, 32_768), k=1_000):
        with contextlib.suppress(OSError), socket.socket() as each:
            each.bind(("", port))
            yield port


def _prepare(folder: Path, cluster: Cluster) -> None:
    """Make the folders, and write the configuration of Flink and the ports."""
    for name in ("logs", "pids", "tmp", "conf"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for log in (folder / "logs").glob("*.log"):
        log.unlink()
    settings = {
        **yaml.safe_load((DATA / "config.yaml").read_text()),
        "jobmanager.rpc.port": cluster.rpc,
        "taskmanager.numberOfTaskSlots": cluster.slots,
        "rest.port": cluster.rest,
        "io.tmp.dirs": str(folder / "tmp"),
        # Longer than an idle worker lives, so that a dead one is not reused.
        "restart-strategy.fixed-delay.delay": f"{IDLE_MILLIS + 2_000} ms",
    }
    (folder / "conf" / "config.yaml").write_text(yaml.safe_dump(settings))
    (folder / "cluster.json").write_text(json.dumps(asdict(cluster)))


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
    (folder / "pids" / name).write_text(f"{child.pid} {_started(psutil.Process(child.pid))}")


def _wait(folder: Path, cluster: Cluster) -> None:
    """Wait until all programs answer; SystemExit with the last error in the log of one that ended
    or does not."""

    def task_managers() -> bool:
        try:
            found = get(f"localhost:{cluster.rest}", "overview")["taskmanagers"]
            return int(found) == TASK_MANAGERS
        except (OSError, ValueError, KeyError):
            return False

    checks: dict[str, Callable[[], bool]] = {
        "jobmanager": lambda: reachable(f"localhost:{cluster.rest}"),
        "job-server": lambda: reachable(f"localhost:{cluster.job_server}"),
        "workers": lambda: reachable(f"localhost:{cluster.workers}"),
        NAMES[TASK_MANAGERS]: task_managers,
    }
    deadline = time.monotonic() + PATIENCE
    for waited, check in checks.items():
        while True:
            up, late = check(), time.monotonic() > deadline
            # The JobManager counts a TaskManager until it misses its heartbeat: look at all.
            for name in NAMES:
                if not process(folder, name) or (name == waited and late and not up):
                    raise SystemExit(f"Flink's {name} is not up: {_last(folder, name)}")
            if up:
                break
            time.sleep(0.2)


def _last(folder: Path, name: str) -> str:
    """The last error in a log, or its last line, and the path of the log."""
    log = folder / "logs" / f"{name}.log"
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines()]
    wrong = [line for line in lines if "Error" in line or "Exception" in line or "ERROR" in line]
    said = (wrong or lines or ["it says nothing"])[-1]
    return f"{said[:200]} ({log})"
