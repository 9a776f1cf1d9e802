"""The compose file's parts without containers: each service in a network namespace of its own.

`pytest -m compose` runs it as root, with iproute2, Java and Maven. Names, ports, commands, volume
and Flink's properties are those of the file; images are not.
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.flink import cluster, install

pytestmark = pytest.mark.compose

ROOT = Path(__file__).resolve().parents[2]
COMPOSE = ROOT / "docker" / "compose.yaml"
# What the image's entry point writes before FLINK_PROPERTIES.
OF_THE_IMAGE = {
    "jobmanager.bind-host": "0.0.0.0",
    "taskmanager.bind-host": "0.0.0.0",
    "rest.address": "0.0.0.0",
    "rest.bind-address": "0.0.0.0",
    "blob.server.port": 6124,
    "query.server.port": 6125,
}
ONE_CORE = {"PARALOOM_CORES": "1"}
"""What trains the model gets as many cores in both runs: its sums depend on them."""

BRIDGE, NET = "paraloom0", "10.77.0"
Services = dict[str, dict[str, Any]]


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


@contextmanager
def network(names: list[str]) -> Iterator[None]:
    """A network namespace for each name, on one bridge, in which names are known."""
    with ExitStack() as stack:
        ip("link", "add", BRIDGE, "type", "bridge")
        stack.callback(ip, "link", "del", BRIDGE)
        ip("link", "set", BRIDGE, "up")
        hosts = "127.0.0.1 localhost\n"
        hosts += "".join(f"{NET}.{i} {name}\n" for i, name in enumerate(names, 2))
        for i, name in enumerate(names, 2):
            ip("netns", "add", name)
            stack.callback(ip, "netns", "del", name)
            ip("link", "add", f"pv{i}", "type", "veth", "peer", "name", "eth0", "netns", name)
            ip("link", "set", f"pv{i}", "master", BRIDGE, "up")
            ip("-n", name, "addr", "add", f"{NET}.{i}/24", "dev", "eth0")
            ip("-n", name, "link", "set", "eth0", "up")
            ip("-n", name, "link", "set", "lo", "up")
            folder = Path("/etc/netns", name)
            folder.mkdir(parents=True)
            stack.callback(shutil.rmtree, folder)
            (folder / "hosts").write_text(hosts)
        yield


class Containers:
    """Starts the services of the file as processes, with `runs` as their volume."""

    def __init__(self, services: Services, folder: Path, runs: Path) -> None:
        self.services, self.folder, self.runs = services, folder, runs
        self.jars = install.jars(install.installed())
        self.flink_jars = folder / "flink"
        self.flink_jars.mkdir()
        for pattern in ("flink-dist-*.jar", "log4j-*.jar"):
            for jar in self.jars.glob(pattern):
                (self.flink_jars / jar.name).symlink_to(jar)
        # Outside a folder of this name, Beam's job server sends its classes with every job.
        self.all_jars = folder / "jars"
        shutil.copytree(self.jars, self.all_jars)

    def where(self, name: str) -> str:
        """The namespace of a service."""
        return str(self.services[name].get("network_mode", name)).removeprefix("service:")

    def command(self, name: str) -> list[str]:
        """What a service's container runs."""
        service = self.services[name]
        if entrypoint := service.get("entrypoint"):
            return [str(Path(sys.executable).with_name(entrypoint[0])), *entrypoint[1:]]
        java = [install.java(), f"@{cluster.DATA / 'java.options'}"]
        if name == "job-server":
            driver = "org.apache.beam.runners.flink.FlinkJobServerDriver"
            return [*java, "-Xmx768m", "-cp", f"{self.all_jars}/*", driver, *service["command"]]
        conf = self.folder / name
        conf.mkdir()
        given = yaml.safe_load(service["environment"]["FLINK_PROPERTIES"])
        temporary = {"io.tmp.dirs": str(conf / "tmp")}
        (conf / "config.yaml").write_text(yaml.safe_dump(OF_THE_IMAGE | given | temporary))
        runtime = "org.apache.flink.runtime"
        program, memory, settings = {
            "jobmanager": (f"{runtime}.entrypoint.StandaloneSessionClusterEntrypoint", [], []),
            "taskmanager": (
                f"{runtime}.taskexecutor.TaskManagerRunner",
                *cluster.memory_options(install.installed(), str(conf)),
            ),
        }[service["command"]]
        classes = ["-cp", f"{self.flink_jars}/*"]
        return [*java, *memory, *classes, program, "--configDir", str(conf), *settings]

    def start(self, name: str, *arguments: str, **options: Any) -> subprocess.Popen[str]:
        """Start a service, which has a host name and mounts of its own."""
        volumes = "".join(
            f"mount --bind '{self.runs}' {volume.rpartition(':')[2]} && "
            for volume in self.services[name].get("volumes", [])
        )
        script = f'hostname {self.where(name)} && {volumes}cd "$0" && exec "$@"'
        directory = self.services[name].get("working_dir", str(self.folder))
        environment = {
            **{k: v for k, v in os.environ.items() if k != "PYTHONPATH"},
            **ONE_CORE,
            "PYTHONPATH": str(ROOT),
        }
        return subprocess.Popen(
            [
                *["ip", "netns", "exec", self.where(name)],
                *["unshare", "--mount", "--uts", "sh", "-c", script, directory],
                *[*self.command(name), *arguments],
            ],
            env=environment,
            text=True,
            **options,
        )


@pytest.fixture
def containers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Containers]:
    if os.geteuid() or not shutil.which("ip"):
        pytest.skip("needs root and iproute2")
    monkeypatch.delenv("XDG_CACHE_HOME")  # where Flink is, if it was fetched before
    services: Services = yaml.safe_load(COMPOSE.read_text())["services"]
    runs = tmp_path / "runs"
    runs.mkdir()
    mount = Path("/runs")
    made = not mount.exists()
    mount.mkdir(exist_ok=True)
    names = [name for name, service in services.items() if "network_mode" not in service]
    started: list[subprocess.Popen[str]] = []
    found = Containers(services, tmp_path, runs)
    try:
        with network(names):
            try:
                for name, service in services.items():
                    if "profiles" not in service:
                        with (tmp_path / f"{name}.log").open("w") as log:
                            started.append(found.start(name, stdout=log, stderr=log))
                yield found
            finally:
                for process in started:
                    process.terminate()
                for process in started:
                    process.wait()
    finally:
        if made:
            mount.rmdir()


def test_the_walk_through(containers: Containers) -> None:
    """As docs/clusters.md has it: the command, and the run in the folder."""
    guide = (ROOT / "docs" / "clusters.md").read_text()
    command = guide.split("compose.yaml run --rm paraloom ")[1].split("\n\n")[0]
    sooner = ["--set", "nmt.training.updates=150", "--set", "nmt.training.layers=1"]
    corpus, *rest = command.replace("\\\n", " ").split()
    arguments = [corpus, *sooner, *rest]
    deadline = time.monotonic() + 120
    while True:
        process = containers.start("paraloom", *arguments, stderr=subprocess.PIPE)
        _, said = process.communicate()
        if process.returncode != 2 or time.monotonic() > deadline:
            break
        time.sleep(1)  # the cluster is coming up: every check ends in one line
    assert process.returncode == 0, said
    paraloom = [sys.executable, "-m", "paraloom.pipeline.cli"]
    here = {"cwd": containers.runs, "env": {**os.environ, **ONE_CORE, "PYTHONPATH": str(ROOT)}}
    again = [*paraloom, corpus, *sooner, "--config", "sample", "--set", "run=here"]
    subprocess.run(again, check=True, **here)  # type: ignore[call-overload]
    compare = [*paraloom, "compare", "runs/sample", "here"]
    done = subprocess.run(compare, stdout=-1, text=True, **here)  # type: ignore[call-overload]
    assert "same rows and values" in done.stdout, done.stdout
