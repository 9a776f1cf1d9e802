import json
import os
import shutil
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from paraloom.beam_jobs import storage
from paraloom.beam_jobs.engine.shards import expand, receipts, write_receipt
from paraloom.pipeline.cli import main
from paraloom.pipeline.commands.run.status import status
from paraloom.pipeline.run.folder import locked
from tests.run_helpers import STAGES, Capsys, Patch, changed_manifest, manifest

NOW = 1_900_000_000.0


def told(folder: Path, capsys: Capsys) -> str:
    assert main(["status", str(folder / "run")]) == 0
    return " ".join(capsys.readouterr().out.split())


def change(folder: Path, **values: Any) -> None:
    """Change keys of the manifest."""
    with changed_manifest(folder) as content:
        content.update(values)


@pytest.fixture
def under_way(a_run: Path) -> Path:
    """Back-translation under way for 60 s: 4 of 6 shards, two of them before it was taken up."""
    run = a_run / "run"
    under_way = {"stage": "back_translate", "since": NOW - 60}
    change(a_run, stages={"ingest": manifest(a_run)["stages"]["ingest"]}, under_way=under_way)
    found = receipts(str(run / "back_translate"))
    ended = [NOW - 500, NOW - 400, NOW - 30, NOW - 10]
    for process, (receipt, when) in enumerate(zip(found, ended, strict=False)):
        update = {"ended": when, "numbers": receipt.numbers | {"gpus": 4}, "worker": f"a:{process}"}
        changed = receipt.model_copy(update=update)
        write_receipt(str(run / "back_translate"), changed)
    for receipt in found[4:]:
        (run / "back_translate" / "_receipts" / f"{receipt.name}.json").unlink()
    return a_run


def test_a_stage_under_way(under_way: Path, capsys: Capsys, monkeypatch: Patch) -> None:
    run = str(under_way / "run")
    with locked(run):
        _, stage, *later = found = status(run, NOW)
        with monkeypatch.context() as patch:
            patch.setattr(time, "time", lambda: NOW)
            out = told(under_way, capsys)
        back = status(run, NOW - 3600)[1]  # the clock was set back
    states = ["finished", "under way", "waiting", "waiting", "waiting"]
    assert [each.state for each in found] == states
    assert stage.rows == (79, 119)
    assert stage.seconds == 60
    assert stage.rate == pytest.approx(40 / 60)  # of this time alone
    assert stage.remaining == pytest.approx(40 / (40 / 60))
    assert "back_translate: GPUs: 4, 0 rows/s each" in out  # one machine, whose worker was replaced
    assert all(each.remaining is None and each.rows == (None, None) for each in later)
    assert "run: under way" in out
    assert f"│ under way │ 79 of 119 │ {sum(stage.rejected.values())} │" in out
    assert (back.seconds, back.rate, back.remaining) == (0, None, None)

    stage = status(run, NOW)[1]  # without a process
    assert (stage.state, stage.rows, stage.remaining) == ("stopped", (79, 119), None)
    out = told(under_way, capsys)
    assert "run: stopped; the command that started the run resumes it" in out
    with monkeypatch.context() as patch:
        patch.setenv("PARALOOM_LOCKS", "off")
        assert "run: under way" in told(under_way, capsys)  # a process may run without a lock
        ended = subprocess.Popen(["true"])
        ended.wait()
        for process, state in ((ended.pid, "stopped"), (os.getpid(), "under way")):
            launcher = f"{socket.gethostname()}:{process}"
            with changed_manifest(under_way) as content:
                content["under_way"]["launcher"] = launcher
            assert f"run: {state}" in told(under_way, capsys)

    shutil.rmtree(under_way / "run" / "back_translate")
    with locked(run):
        stage = status(run, NOW)[1]
        change(under_way, under_way=None)
        assert "run: under way" in told(under_way, capsys)  # between two stages
    assert (stage.rows, stage.rate, stage.remaining) == ((0, 119), None, None)


def test_the_page_of_a_job_on_a_service(under_way: Path, capsys: Capsys) -> None:
    """Of the one at work, though its launcher is gone, and of the last of a finished stage."""
    jobs = [{"name": "x", "id": str(i), "address": f"https://console/{i}"} for i in range(3)]
    with changed_manifest(under_way) as content:
        content["stages"]["ingest"]["jobs"] = jobs[:2]
        content["under_way"]["jobs"] = jobs[2:]
    out = told(under_way, capsys)
    assert "ingest: https://console/1" in out
    assert "back_translate: https://console/2" in out
    assert "https://console/0" not in out


def test_ingest_and_a_stage_of_a_further_round(a_run: Path) -> None:
    before = manifest(a_run)
    change(a_run, stages={}, under_way={"stage": "ingest", "since": NOW - 5})
    stage = status(str(a_run / "run"), NOW)[0]
    assert (stage.rows, stage.rate, stage.rejected) == ((120, None), None, {"empty source": 1})

    run = a_run / "run"
    wanted = [*STAGES, "rounds/2/score", "rounds/2/bucket"]
    under_way = {"stage": "rounds/2/score", "since": NOW - 5}
    change(a_run, **{**before, "wanted": wanted, "under_way": under_way})
    shutil.copytree(run / "score", run / "rounds/2/score")
    expand(str(run / "rounds/2/score"))
    max((run / "rounds/2/score/_receipts").iterdir()).unlink()
    *_, stage, last = status(str(run), NOW)
    rows = before["stages"]["score"]["rows_in"]
    assert stage.rows == (rows - 20, rows)
    assert last.state == "waiting"


def test_stages_that_the_last_command_did_not_need_are_shown(a_run: Path) -> None:
    change(a_run, wanted=["ingest"])
    shown = [(stage.name, stage.state) for stage in status(str(a_run / "run"))]
    assert shown == [(name, "finished") for name in STAGES]


def test_a_run_on_an_object_store(on_s3: tuple[str, list[str]], capsys: Capsys) -> None:
    folder, options = on_s3
    assert main(["status", folder, *options]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert out.startswith(f"{folder}: finished")
    content = json.loads(storage.read_bytes(f"{folder}/run.json"))
    rows = json.loads(storage.read_bytes(f"{folder}/manifest.json"))["stages"]["score"]["rows_in"]
    assert f"│ select │ finished │ {rows} │" in out
    content["under_way"] = {"stage": "score", "since": NOW}
    storage.write_bytes(f"{folder}/run.json", json.dumps(content).encode())
    stage = status(folder, NOW + 9)[2]  # whoever is at work is on another machine
    assert (stage.state, stage.rows) == ("under way", (rows, rows))
