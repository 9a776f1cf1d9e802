"""kill -9 in the middle of each stage, then the same command: as if nothing had happened."""

import contextlib
import json
import os
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from paraloom.pipeline.names import folder_of
from tests.run_helpers import STAGES, Runs, WriteConfig, again, kill_in, parts, popen


def finished(folder: Path, stage: str) -> dict[str, Any]:
    """What is known of the finished shards: a shard that is made again differs in one of them."""
    found = {}
    for file in (folder / "run" / folder_of(stage)).glob("_receipts/part-*.json"):
        with contextlib.suppress(FileNotFoundError):  # another process may be at work
            found[file.name] = (file.read_bytes(), file.stat().st_ino, file.stat().st_mtime_ns)
    return found


@pytest.mark.parametrize("stage", ["ingest", "back_translate", "bucket"])
def test_killed_in_the_middle(stage: str, a_run: Path, finished_run: Path, runs: Runs) -> None:
    for name in STAGES[STAGES.index(stage) :]:
        shutil.rmtree(a_run / "run" / folder_of(name))
    kill_in(stage, a_run, "part-*.parquet" if stage == "ingest" else "_receipts/part-*.json")
    before = finished(a_run, stage)
    assert len(before) < len(finished(finished_run, stage)), "all of it was done"
    assert runs("select", a_run) == list(STAGES[STAGES.index(stage) :])
    now = finished(a_run, stage)
    assert {name: now[name] for name in before} == before
    assert parts(a_run) == parts(finished_run)
    assert runs("select", a_run) == []


def test_killed_between_the_last_shard_and_the_manifest(
    a_run: Path, finished_run: Path, runs: Runs
) -> None:
    """All receipts are there, but nothing says that the stage is finished."""
    path = a_run / "run" / "manifest.json"
    content = json.loads(path.read_text())
    content["stages"] = {"ingest": content["stages"]["ingest"]}
    path.write_text(json.dumps(content))
    before = {stage: finished(a_run, stage) for stage in STAGES}
    assert runs("select", a_run) == list(STAGES[1:])
    assert {stage: finished(a_run, stage) for stage in STAGES} == before
    assert parts(a_run) == parts(finished_run)


def test_killed_with_another_configuration_and_back(
    a_run: Path, write_config: WriteConfig, finished_run: Path
) -> None:
    """Half of the shards of another beam, then the first one again: no shard is mistaken."""
    write_config(a_run, nmt={"beam": 1})
    process = popen("select", a_run)
    old = finished(finished_run, "back_translate")
    while process.poll() is None:
        now = finished(a_run, "back_translate")
        if now and all(now[name][0] != old[name][0] for name in now):
            break
        time.sleep(0.001)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    write_config(a_run)
    assert again("select", a_run) == 0
    assert parts(a_run) == parts(finished_run)
