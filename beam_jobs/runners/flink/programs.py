"""The programs of a cluster: their command lines and configuration."""

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml
from apache_beam.options.pipeline_options import FlinkRunnerOptions

from paraloom.beam_jobs.runners.flink import install
from paraloom.beam_jobs.runners.flink.java_loopback import write_patch
from paraloom.beam_jobs.runners.launch import parse_options

TASK_MANAGERS = 2
_TASK_MANAGERS = [f"taskmanager-{i}" for i in range(1, TASK_MANAGERS + 1)]
NAMES = ("jobmanager", *_TASK_MANAGERS, "job-server", "workers")
"""The names of the processes."""

IDLE_MILLIS = 5_000
"""Milliseconds that idle workers are reused; otherwise every pass of a job starts new ones."""

_DATA = Path(__file__).parent  # has the programs' configuration as files


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """The ports of a cluster, and its parallelism."""

    rest: int = 8081  # Flink's REST address, which is also its web page and `--flink_master`
    rpc: int = 6123
    job_server: int = 8099
    artifacts: int = 8098
    workers: int = 50000
    slots: int = 1  # of each TaskManager

    def arguments(self, given: Sequence[str] = ()) -> list[str]:
        """Beam options for a job on all slots of this cluster, unless `given` sets parallelism."""
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
            f"--environment_cache_millis={IDLE_MILLIS}",
            f"--parallelism={slots}",
            f"--sdk_worker_parallelism={-(-slots // TASK_MANAGERS)}",  # one for each slot
        ]


def write_configuration(folder: Path, cluster: Cluster) -> None:
    """Write the configuration of Flink to `folder`/conf."""
    conf = folder / "conf"
    conf.mkdir(parents=True, exist_ok=True)
    settings = {
        **yaml.safe_load((_DATA / "config.yaml").read_text()),
        "jobmanager.rpc.port": cluster.rpc,
        "taskmanager.numberOfTaskSlots": cluster.slots,
        "rest.port": cluster.rest,
        "io.tmp.dirs": str(folder / "tmp"),
        # Longer than an idle worker lives, so that a dead one is not reused.
        "restart-strategy.fixed-delay.delay": f"{IDLE_MILLIS + 2_000} ms",
    }
    (conf / "config.yaml").write_text(yaml.safe_dump(settings))


def commands(folder: Path, cluster: Cluster) -> dict[str, list[str]]:
    """The command line of each of `NAMES`."""
    folder_of_jars = install.installed()
    conf = str(folder / "conf")
    log = f"-Dlog4j.configurationFile={(_DATA / 'log4j.properties').resolve().as_uri()}"
    java = [install.java(), f"@{_DATA / 'java.options'}", log]
    (beam,) = install.jars(folder_of_jars).glob("beam-sdks-java-core-*.jar")
    patch = write_patch(folder / "conf", beam)
    classes = ["-cp", f"{patch}:{install.jars(folder_of_jars)}/*"]
    memory, settings = _memory(folder_of_jars, conf)
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


def _memory(folder_of_jars: Path, conf: str) -> tuple[list[str], list[str]]:
    """The memory options of a TaskManager: those for Java, and those for Flink."""
    utility = "org.apache.flink.runtime.util.bash.BashJavaUtils"
    classes = f"{folder_of_jars}/bash-java-utils.jar:{install.jars(folder_of_jars)}/*"
    command = [install.java(), "-cp", classes, utility, "GET_TM_RESOURCE_PARAMS"]
    done = subprocess.run([*command, "--configDir", conf], capture_output=True, text=True)
    mark = "BASH_JAVA_UTILS_EXEC_RESULT:"
    found = [line.split(mark, 1)[1].split() for line in done.stdout.splitlines() if mark in line]
    if done.returncode or len(found) != 2:
        raise RuntimeError(f"{utility}: {done.stderr}")
    return found[0], found[1]
