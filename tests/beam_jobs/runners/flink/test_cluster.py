"""Starting, finding and ending the processes of a cluster; real ones in tests/end_to_end."""

import itertools
import os
import random
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from paraloom.beam_jobs.runners.flink import cluster as clusters
from paraloom.beam_jobs.runners.flink.cluster import down, read, up
from paraloom.beam_jobs.runners.flink.programs import NAMES, Cluster
from paraloom.models.errors import UserError
from tests.run_helpers import Patch

SLEEP = ["sleep", "60"]


@pytest.fixture
def stand_ins(tmp_path: Path, monkeypatch: Patch) -> Iterator[tuple[Path, dict[str, list[str]]]]:
    """A folder in which `up` starts sleepers, or what a test says; the names of those alive."""
    commands = dict.fromkeys(NAMES, SLEEP)
    monkeypatch.setattr(clusters, "commands", lambda folder, cluster: commands)
    monkeypatch.setattr(clusters, "PATIENCE", 1)
    yield tmp_path, commands
    down(tmp_path)


def alive(folder: Path) -> list[str]:
    return [name for name in NAMES if clusters.process(folder, name)]


def start(folder: Path, name: str, command: list[str] = SLEEP) -> None:
    clusters._start(folder, name, command, Cluster())


def test_what_ends_at_once_ends_the_rest_and_says_why(
    stand_ins: tuple[Path, dict[str, list[str]]],
) -> None:
    folder, commands = stand_ins
    commands["job-server"] = ["sh", "-c", "echo Exception: no room; echo '  at Main.java'; exit 1"]
    commands["jobmanager"] = ["sh", "-c", "sleep 60 & sleep 60"]
    with pytest.raises(
        UserError, match="Flink's job-server ended at once: Exception: no room"
    ) as e:
        up(folder, free_ports=True)
    assert str(folder / "logs" / "job-server.log") in str(e.value)
    assert alive(folder) == []
    with pytest.raises(UserError, match="no Flink cluster"):
        read(folder)


def test_a_port_that_is_taken(
    stand_ins: tuple[Path, dict[str, list[str]]], monkeypatch: Patch
) -> None:
    folder, _ = stand_ins
    with socket.create_server(("localhost", 0)) as server:
        port = server.getsockname()[1]
        monkeypatch.setattr(clusters, "Cluster", lambda slots: Cluster(slots=slots, rest=port))
        with pytest.raises(UserError, match=f"port {port} is taken by another program"):
            up(folder)
    assert not (folder / "cluster.json").exists()


def test_free_ports_are_none_that_connections_take(monkeypatch: Patch) -> None:
    first, second = itertools.islice(clusters._free_ports(), 2)
    assert 10_000 <= min(first, second) < max(first, second) < 32_768
    monkeypatch.setattr(random.SystemRandom, "sample", lambda *_, k: [first, second])
    with socket.create_server(("localhost", first)):
        assert list(clusters._free_ports()) == [second]


def test_down_ends_whole_groups_and_nobody_else(tmp_path: Path, monkeypatch: Patch) -> None:
    monkeypatch.setattr(clusters, "GRACE", 1)
    (tmp_path / "logs").mkdir()
    start(tmp_path, "workers", ["sh", "-c", "trap '' TERM; sleep 61 & wait; sleep 60"])
    start(tmp_path, "jobmanager")
    bystander = subprocess.Popen(SLEEP)
    pool = clusters.process(tmp_path, "workers")
    assert pool is not None
    while not (children := pool.children()):
        time.sleep(0.01)
    try:
        assert down(tmp_path) == ["jobmanager", "workers"]
        psutil.wait_procs(children, timeout=10)
        assert not any(child.is_running() for child in children)
        assert bystander.poll() is None
        assert down(tmp_path) == []
    finally:
        bystander.kill()
        bystander.wait()


def test_a_process_id_that_went_to_another_program(tmp_path: Path) -> None:
    (tmp_path / "pids").mkdir()
    (tmp_path / "pids" / "jobmanager").write_text(f"{os.getpid()} 1.0")
    (tmp_path / "pids" / "workers").write_text("nonsense")
    assert down(tmp_path) == []


def test_a_half_started_cluster_is_completed(stand_ins: tuple[Path, dict[str, list[str]]]) -> None:
    folder, _ = stand_ins
    clusters._prepare(folder, Cluster(rest=1, slots=3))
    start(folder, "jobmanager")
    (before,) = alive(folder)
    process = clusters.process(folder, before)
    assert process is not None
    pid = process.pid
    with pytest.raises(UserError, match="a cluster with 3 slots a TaskManager runs"):
        up(folder, slots=2)
    with pytest.raises(UserError, match="jobmanager is not up"):  # nothing listens: a stand-in
        up(folder)
    assert f"{pid}" and alive(folder) == []


def test_arguments() -> None:
    cluster = Cluster(rest=1, job_server=2, workers=3, slots=2)
    given = cluster.arguments()
    assert "--flink_master=localhost:1" in given
    assert "--parallelism=4" in given and "--sdk_worker_parallelism=2" in given
    two = cluster.arguments(["--parallelism", "2"])
    assert "--parallelism=2" in two and "--sdk_worker_parallelism=1" in two
    with pytest.raises(UserError, match="Beam options"):
        cluster.arguments(["--parallelism", "two"])


def test_the_command_says_it_in_one_line(tmp_path: Path) -> None:
    place = ["--folder", str(tmp_path / "cluster"), "--free-ports"]
    command = [sys.executable, "-m", "paraloom.beam_jobs.runners.flink", "up", *place]
    empty = {**os.environ, "PATH": "/nonexistent", "JAVA_HOME": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, env=empty)
    assert done.returncode == 2
    assert "flink: no Java found; Flink needs Java 17: apt-get" in done.stderr
