"""The sample on a stand-in for Dataflow, whose workers are those of the image: as on this machine.

`make test-dataflow` runs this. Run, input and model are in an emulated gs://; commands have caches
of their own, as on machines of their own. A few rows, on workers of this environment, are in every
test run.
"""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import yaml

from paraloom.beam_jobs import storage
from paraloom.beam_jobs.engine.options import connect
from paraloom.pipeline.cli import main
from paraloom.pipeline.run.folder import read_run
from tests.dataflow.double import Dataflow, Job, dataflow, hurry
from tests.dataflow.execute import in_image, in_workers
from tests.dataflow.image import image
from tests.google_store import BUCKET, GoogleStore
from tests.run_helpers import ONE, Capsys, Patch, small_config, started
from tests.sample import sample_rows, write_small_sample

in_image_only = pytest.mark.dataflow

JOBS = ("ingest", "back_translate", "score", "bucket", "select")
"""The stages that every run has a job for."""
TEMP = f"--temp_location={BUCKET}/tmp"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sample's configuration, small, whose run on this machine is finished."""
    folder = tmp_path_factory.mktemp("sample")
    write_small_sample(folder, rows=800, updates=60)
    finish(paraloom(folder, "corpus", "--config", "config.yaml"))
    return folder


@pytest.fixture(scope="module")
def service(
    google: GoogleStore, place: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Dataflow]:
    """The stand-in, and the sample in its store."""
    machine = tmp_path_factory.mktemp("worker")
    with pytest.MonkeyPatch.context() as patch, image() as built:
        for name, value in google.env.items():
            patch.setenv(name, value)
        connect([])
        storage.write_bytes(f"{BUCKET}/sample.tsv", (place / "sample.tsv").read_bytes())
        for file in filter(Path.is_file, (place / "local" / "nmt").iterdir()):
            content = file.read_bytes()
            storage.write_bytes(f"{BUCKET}/nmt/{file.name}", content)
            broken = b"not a model" if file.name == "sentencepiece.model" else content
            storage.write_bytes(f"{BUCKET}/broken/{file.name}", broken)
        with dataflow(in_image(built, machine), machine / "asked") as double:
            yield double


def paraloom(cwd: Path, *arguments: str, machine: str = "launcher") -> subprocess.Popen[str]:
    return started(*arguments, cwd=cwd, env={"XDG_CACHE_HOME": str(cwd / machine)})


def finish(process: subprocess.Popen[str], code: int = 0) -> tuple[str, str]:
    """Its output and standard error, at its end."""
    out, said = process.communicate()
    assert process.returncode == code, said + out
    return out, said


def on_dataflow(run: str, service: Dataflow, command: str, *more: str) -> list[str]:
    """The command for the same corpus on the stand-in."""
    changes = [f"run={BUCKET}/{run}", f"input.paths=[{BUCKET}/sample.tsv]", *more]
    sets = [word for change in changes for word in ("--set", change)]
    return [command, "--config", "config.yaml", *sets, "--", *service.options, TEMP]


def stages(run: str) -> dict[str, Any]:
    return read_run(run).stages


def as_here(service: Dataflow, local: Path, run: str, said: str) -> None:
    """See that each stage is as on this machine, and that its job is the one that was submitted."""
    here, there = stages(str(local)), stages(run)
    assert here.keys() == there.keys() >= set(JOBS)
    for stage in (*JOBS, *here.keys() & {"evaluate"}):
        assert there[stage].digest == here[stage].digest, stage
    counters = [run["back_translate"].metrics for run in (here, there)]
    assert counters[0]["sentences"] == counters[1]["sentences"] > 0
    made = {job.id: job for job in service.jobs}
    for stage in JOBS:
        (job,) = there[stage].jobs
        assert made.pop(job.id).name == job.name
        assert f"{job.name}: submitted to Dataflow, {job.address}" in said


def test_a_few_rows(
    gs: list[str], nmt_model: Path, tmp_path: Path, monkeypatch: Patch, capfd: Capsys
) -> None:
    """All jobs of a run, on worker processes of this environment."""
    pytest.importorskip("google.cloud.dataflow_v1beta3", reason="needs paraloom[dataflow]")
    hurry(monkeypatch)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "launcher"))
    monkeypatch.chdir(tmp_path)
    connect([])
    rows = b"\n".join(islice(sample_rows(), 20))
    (tmp_path / "sample.tsv").write_bytes(rows)
    storage.write_bytes(f"{BUCKET}/few.tsv", rows)
    for file in nmt_model.iterdir():
        storage.write_bytes(f"{BUCKET}/few-model/{file.name}", file.read_bytes())
    config = small_config("local", "sample.tsv", nmt={"model": str(nmt_model), "beam": 1})
    config["input"] |= {"format": "czeng16", "shard_rows": 10}
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(config))
    assert main(["select", "--config", "config.yaml", *ONE]) == 0
    with in_workers(tmp_path) as execute, dataflow(execute) as service:
        changes = f"input.paths=[{BUCKET}/few.tsv]", f"nmt.model={BUCKET}/few-model"
        assert main(on_dataflow("few", service, "select", *changes)) == 0
        as_here(service, tmp_path / "local", f"{BUCKET}/few", capfd.readouterr().err)


@in_image_only
def test_the_sample_from_nothing(service: Dataflow, place: Path) -> None:
    """All stages, their trainings in the command; rows, values and counters as on this machine."""
    _, said = finish(paraloom(place, *on_dataflow("sample", service, "corpus")))
    out, _ = finish(paraloom(place, "compare", "local", f"{BUCKET}/sample"))
    assert "same rows and values" in out
    as_here(service, place / "local", f"{BUCKET}/sample", said)
    shown, _ = finish(paraloom(place, "status", f"{BUCKET}/sample"))
    assert f"score: {stages(f'{BUCKET}/sample')['score'].jobs[0].address}" in shown

    asked = len(service.jobs)
    finish(paraloom(place, *on_dataflow("sample", service, "corpus")))
    assert len(service.jobs) == asked


@in_image_only
def test_another_machine_finishes_the_run_of_a_killed_launcher(
    service: Dataflow, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job goes on, and nobody submits it again; it lasts until the second command has come."""
    execute, found = service.execute, threading.Event()

    def last(job: Job) -> None:
        execute(job)
        if job.name.startswith("paraloom-back"):
            found.wait()

    monkeypatch.setattr(service, "execute", last)
    command = on_dataflow("killed", service, "select", f"nmt.model={BUCKET}/nmt")
    process = paraloom(place, *command)
    receipts = f"{BUCKET}/killed/back_translate/_receipts"
    while process.poll() is None and not storage.names(receipts):
        time.sleep(0.2)
    os.killpg(process.pid, signal.SIGKILL)
    finish(process, -signal.SIGKILL)
    job = service.jobs[-1]
    assert (job.name.rsplit("-", 1)[0], job.state) == ("paraloom-back-translate", "RUNNING")
    shown, _ = finish(paraloom(place, "status", f"{BUCKET}/killed"))
    assert job.id in shown

    asked = len(service.log)
    process = paraloom(place, *command, machine="another")
    while process.poll() is None and len(service.log) < asked + 3:  # it lists jobs, and asks for it
        time.sleep(0.2)
    found.set()
    _, said = finish(process)
    assert f"{job.name}: found running on Dataflow, " in said
    assert service.log.count(f"POST {job.name}") == 1
    here, there = stages(str(place / "local")), stages(f"{BUCKET}/killed")
    assert there["select"].digest == here["select"].digest
    assert [found.id for found in there["back_translate"].jobs] == [job.id]


@in_image_only
def test_an_error_of_the_users_in_a_worker_is_one_line(service: Dataflow, place: Path) -> None:
    command = on_dataflow("other", service, "select", f"nmt.model={BUCKET}/broken")
    _, said = finish(paraloom(place, *command), 2)
    (line,) = [line for line in said.splitlines() if line.startswith("paraloom: ")]
    assert "broken" in line
    assert "Traceback" not in said
