"""Starting, finding and ending the processes of a cluster; real ones in tests/end_to_end."""

import os
import subprocess
import time
from pathlib import Path

import psutil
import pytest

from tests.flink import cluster as clusters
from tests.flink.cluster import NAMES, Cluster, down, read, up
from tests.run_helpers import Patch

SLEEP = ["sleep", "60"]


def test_what_ends_at_once_ends_the_rest_and_says_why(tmp_path: Path, monkeypatch: Patch) -> None:
    """What was running before the call ends, too."""
    commands = dict.fromkeys(NAMES, SLEEP)
    commands["job-server"] = ["sh", "-c", "echo Exception: no room; echo '  at Main.java'; exit 1"]
    monkeypatch.setattr(clusters, "commands", lambda folder, cluster: commands)
    clusters._prepare(tmp_path, Cluster(rest=1, slots=3))
    clusters._start(tmp_path, "jobmanager", SLEEP, Cluster())
    with pytest.raises(SystemExit, match="Flink's job-server is not up: Exception: no room"):
        up(tmp_path)
    assert [name for name in NAMES if clusters.process(tmp_path, name)] == []
    with pytest.raises(FileNotFoundError):
        read(tmp_path)


def test_down_ends_whole_groups_and_nobody_else(tmp_path: Path, monkeypatch: Patch) -> None:
    monkeypatch.setattr(clusters, "GRACE", 1)
    clusters._prepare(tmp_path, Cluster())
    group = ["sh", "-c", "trap '' TERM; sleep 61 & wait; sleep 60"]
    clusters._start(tmp_path, "workers", group, Cluster())
    clusters._start(tmp_path, "jobmanager", SLEEP, Cluster())
    (tmp_path / "pids" / "job-server").write_text(f"{os.getpid()} 1.0")  # another program's now
    bystander = subprocess.Popen(SLEEP)
    boot = psutil.boot_time()
    monkeypatch.setattr("psutil._pslinux.boot_time", lambda: boot + 60)  # the clock was set
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
