"""The sample corpus on a real Flink cluster: the same rows and values as on this machine.

`make test-flink` runs this; the cluster is started and ended as by `make flink-up`.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from paraloom.beam_jobs.runners.flink.submit import get
from tests.flink import cluster as clusters
from tests.flink.cluster import NAMES, Cluster
from tests.listening import exposed, listening
from tests.run_helpers import ROOT
from tests.run_helpers import started as paraloom
from tests.sample import write_small_sample

pytestmark = pytest.mark.flink

FOLDER = ROOT / ".flink" / "test"
STAGES = ("ingest", "back_translate", "score", "bucket", "select", "evaluate")


def finish(process: subprocess.Popen[str], code: int = 0) -> str:
    """Its standard error, at its end."""
    _, said = process.communicate()
    assert process.returncode == code, said
    return str(said)


def flink(command: str, *arguments: str) -> None:
    place = ["--folder", str(FOLDER)]
    program = [sys.executable, "-m", "tests.flink", command, *place, *arguments]
    subprocess.run(program, check=True)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    flink("up", "--slots", "1", "--free-ports")
    members = [p for name in NAMES if (p := clusters.process(FOLDER, name))]
    members += [child for process in members for child in process.children(recursive=True)]
    try:
        yield clusters.read(FOLDER)
    finally:
        flink("down")
    assert [process for process in members if process.is_running()] == []


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sample's configuration, small, whose local run is finished."""
    folder = tmp_path_factory.mktemp("sample")
    write_small_sample(folder, rows=1_500, updates=150)
    finish(paraloom("corpus", "--config", "config.yaml", cwd=folder))
    return folder


def on_flink(place: Path, run: str, *more: str, command: str = "corpus") -> list[str]:
    """The command for the same corpus on the cluster, with the model that is trained already."""
    changes = [f"run={run}", "nmt.model=local/nmt"]
    sets = [word for change in changes for word in ("--set", change)]
    beam = clusters.read(FOLDER).arguments()
    return [command, "--config", "config.yaml", *sets, *more, "--", *beam]


def manifest(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "manifest.json").read_text()))


def test_the_same_rows_and_values(place: Path, cluster: Cluster) -> None:
    """All stages; paths are relative, and a resource hint that Flink does not know is no harm."""
    hint = ["--set", "accelerator=type:none;count:1"]
    finish(paraloom(*on_flink(place, "flink", *hint), cwd=place))
    compared = paraloom("compare", "local", "flink", cwd=place)
    out, _ = compared.communicate()
    assert compared.returncode == 0, out
    here, there = manifest(place / "local")["stages"], manifest(place / "flink")["stages"]
    for stage in STAGES:
        assert there[stage]["digest"] == here[stage]["digest"], stage
    for name in ("sentences", "tokens", "rejects"):
        counters = [run["back_translate"]["metrics"][name] for run in (here, there)]
        assert counters[0] == counters[1] and (counters[0] or name == "rejects")
    jobs = get(f"localhost:{cluster.rest}", "jobs/overview")["jobs"]
    names = {job["name"].rsplit("-", 1)[0] for job in jobs if job["state"] == "FINISHED"}
    assert {f"paraloom-{s}" for s in ("ingest", "back-translate", "score", "select")} <= names

    before = len(get(f"localhost:{cluster.rest}", "jobs/overview")["jobs"])
    finish(paraloom(*on_flink(place, "flink", *hint), cwd=place))
    assert len(get(f"localhost:{cluster.rest}", "jobs/overview")["jobs"]) == before


def test_nothing_listens_where_others_can_reach_it(place: Path, cluster: Cluster) -> None:
    """Neither a process of the cluster nor the command that submits a job."""
    process = paraloom(*on_flink(place, "heard", command="ingest"), cwd=place)
    members = [p for name in NAMES if (p := clusters.process(FOLDER, name))]
    found: set[str] = set()
    while process.poll() is None:
        for pid in (process.pid, *(member.pid for member in members)):
            found |= listening(pid)
        time.sleep(0.1)
    finish(process)
    ports = {int(address.split()[1]) for address in found}
    assert {cluster.rest, cluster.rpc, cluster.job_server, cluster.artifacts} <= ports
    assert cluster.workers in ports
    assert exposed(found) == set()


def test_an_error_of_the_users_in_a_worker_is_one_line(place: Path, cluster: Cluster) -> None:
    """Though Flink tries again what failed, and packs what it says into Java's tracebacks."""
    broken = place / "broken-model"
    shutil.copytree(place / "local" / "nmt", broken)
    (broken / "sentencepiece.model").write_bytes(b"not a model")
    arguments = on_flink(place, "broken", "--set", "nmt.model=broken-model", command="select")
    said = finish(paraloom(*arguments, cwd=place), 2)
    (line,) = [line for line in said.splitlines() if line.startswith("paraloom: ")]
    assert "broken-model" in line


def test_a_command_that_was_killed_goes_on(place: Path, cluster: Cluster) -> None:
    """Its job is still at work on the cluster: it is ended before the same one begins."""
    arguments = on_flink(place, "killed", command="select")
    process = paraloom(*arguments, cwd=place)
    receipts = place / "killed" / "back_translate" / "_receipts"
    while process.poll() is None and not list(receipts.glob("*.json")):
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    finish(process, -signal.SIGKILL)
    jobs = get(f"localhost:{cluster.rest}", "jobs/overview")["jobs"]
    assert [job["name"] for job in jobs if job["state"] == "RUNNING"]
    finish(paraloom(*arguments, cwd=place))
    here, there = manifest(place / "local")["stages"], manifest(place / "killed")["stages"]
    assert there["select"]["digest"] == here["select"]["digest"]


def test_a_job_server_that_dies(place: Path, cluster: Cluster) -> None:
    """One line while a job runs, and once `up` has started it again the run goes on."""
    arguments = on_flink(place, "lost", command="select")
    process = paraloom(*arguments, cwd=place)
    receipts = place / "lost" / "back_translate" / "_receipts"
    while process.poll() is None and not list(receipts.glob("*.json")):
        time.sleep(0.05)
    server = clusters.process(FOLDER, "job-server")
    assert server is not None
    server.kill()
    psutil.wait_procs([server])
    said = finish(process, 2)
    address = f"localhost:{cluster.job_server}"
    assert f"paraloom: the job server at {address} was lost" in said
    said = finish(paraloom(*arguments, cwd=place), 2)
    assert f"no job server at {address} (--job_endpoint)" in said
    flink("up")
    finish(paraloom(*arguments, cwd=place))
    here, there = manifest(place / "local")["stages"], manifest(place / "lost")["stages"]
    assert there["select"]["digest"] == here["select"]["digest"]
