"""Resuming: a stage is run again if and only if what it depends on has changed."""

import hashlib
import platform
import re
import shutil
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml

from paraloom.beam_jobs.io import storage
from paraloom.beam_jobs.io.shards import (
    EARLIER,
    Measurements,
    commit,
    outdate,
    read_receipt,
    receipts,
)
from paraloom.pipeline.manifest import locked
from paraloom.pipeline.names import folder_of
from paraloom.pipeline.run import drop_receipts
from tests.run_helpers import (
    STAGES,
    Capsys,
    Patch,
    Runs,
    WriteConfig,
    again,
    command,
    manifest,
    one_line,
    part_file,
    parts,
    ran,
)


def stamps(folder: Path, stage: str) -> dict[str, tuple[int, int]]:
    """Which files a stage has, without their checksums, and when each was written."""
    files = [
        *(folder / "run" / folder_of(stage)).rglob("*.parquet"),
        *(folder / "run" / folder_of(stage)).rglob("*.json"),
    ]
    return {
        re.sub(r"-[0-9a-f]{8}\.", ".", path.name): (path.stat().st_ino, path.stat().st_mtime_ns)
        for path in files
    }


def written_since(before: dict[str, tuple[int, int]], folder: Path, stage: str) -> set[str]:
    """The units of a stage whose files are other ones than before."""
    now = stamps(folder, stage)
    return {name.split(".")[0] for name in before if now[name] != before[name]}


def test_a_finished_run_does_nothing_wherever_it_has_been_moved(
    a_run: Path, finished_run: Path, capsys: Capsys
) -> None:
    before = stamps(a_run, "corpus")
    assert again("select", a_run) == 0
    captured = capsys.readouterr()
    assert ran(captured.err) == []
    assert captured.out.count("cached") == 5
    assert stamps(a_run, "corpus") == before
    assert parts(a_run) == parts(finished_run)


@pytest.mark.parametrize(
    ("changes", "stages"),
    [
        ({"select": {"deciles": [0, 1]}}, ["select"]),
        ({"nmt": {"beam": 1}}, ["back_translate", "score", "bucket", "select"]),
        ({"embeddings": {"dim": 10}}, []),
    ],
    ids=str,
)
def test_a_changed_key_runs_what_depends_on_it(
    a_run: Path, changes: dict[str, Any], stages: list[str], runs: Runs
) -> None:
    assert runs("select", a_run, **changes) == stages
    assert runs("select", a_run) == []


def test_the_number_of_workers_runs_nothing(a_run: Path, capsys: Capsys) -> None:
    assert again("select", a_run) == 0
    done = command("select", a_run, "--", "--direct_num_workers", "3")
    assert (done.returncode, ran(done.stderr)) == (0, [])


def test_other_input_with_the_same_names_is_other_input(
    a_run: Path, bitext: dict[str, str], runs: Runs
) -> None:
    paths = {}
    for side, path in bitext.items():
        paths[side] = str(a_run / Path(path).name)
        shutil.copy(path, paths[side])
    assert runs("select", a_run, input={"paths": paths}) == []  # the same bytes elsewhere
    text = Path(paths["source"]).read_text(encoding="utf-8").splitlines(keepends=True)
    text[50] = "Pes.\n"
    Path(paths["source"]).write_text("".join(text), encoding="utf-8")
    before = stamps(a_run, "back_translate")
    assert runs("select", a_run) == list(STAGES)
    # Only this shard was translated again.
    assert written_since(before, a_run, "back_translate") == {"part-00000-00002"}


@pytest.mark.parametrize("stage", ["ingest", "back_translate", "select"])
def test_a_deleted_part_file_is_made_again(
    a_run: Path, finished_run: Path, stage: str, runs: Runs
) -> None:
    before = stamps(a_run, stage)
    part_file(a_run / "run" / folder_of(stage), "part-00000-00003").unlink()
    assert runs("select", a_run) == [stage]
    assert parts(a_run) == parts(finished_run)
    if stage != "ingest":  # whose unit is the file
        assert written_since(before, a_run, stage) == {"part-00000-00003"}


def damage(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("stage", ["ingest", "score"])
def test_a_damaged_part_file_is_made_again_and_nothing_else(
    a_run: Path, finished_run: Path, capsys: Capsys, stage: str, runs: Runs
) -> None:
    path = part_file(a_run / "run" / stage, "part-00000-00001")
    damage(path)
    reader = STAGES[STAGES.index(stage) + 1]
    shutil.rmtree(a_run / "run" / reader)  # so that the stage is read again
    before = stamps(a_run, stage)
    assert again("select", a_run) == 0
    printed = capsys.readouterr().err
    assert printed.count(f"{path}: damaged, made again\n") == 1
    assert ran(printed) == [reader, stage, reader]
    assert parts(a_run) == parts(finished_run)
    if stage != "ingest":  # whose unit is the file
        assert written_since(before, a_run, stage) == {"part-00000-00001"}
    assert runs("select", a_run) == []


def test_damage_that_comes_back_ends_the_run(
    a_run: Path, capsys: Capsys, monkeypatch: Patch
) -> None:
    path = part_file(a_run / "run" / "score", "part-00000-00001")
    damage(path)
    shutil.rmtree(a_run / "run" / "bucket")
    whole = storage.write_bytes

    def write(where: str, data: bytes, *, replace: bool = True) -> bool:
        written = whole(where, data, replace=replace)
        if where == str(path):
            damage(path)
        return written

    monkeypatch.setattr(storage, "write_bytes", write)
    assert again("select", a_run) == 2
    line = capsys.readouterr().err.strip().splitlines()[-1]
    assert line == f"paraloom: {path}: damaged again after it was made anew; is the disk sound?"


def test_a_lost_tsv_is_made_again(a_run: Path, finished_run: Path, runs: Runs) -> None:
    (a_run / "run" / "corpus.tsv.gz").unlink()
    assert runs("select", a_run) == ["select"]
    assert parts(a_run) == parts(finished_run)


def test_force_runs_the_stage_and_only_it(a_run: Path, finished_run: Path, runs: Runs) -> None:
    before = stamps(a_run, "score")
    assert runs("score", a_run, "--force") == ["score"]
    now = stamps(a_run, "score")
    assert all(now[name] != before[name] for name in before)
    assert runs("select", a_run) == []  # the same rows: nothing after it is made anew
    assert parts(a_run) == parts(finished_run)


def test_force_copies_no_column_of_a_run_that_was_killed(tmp_path: Path) -> None:
    rows, columns = pa.table({"n": [1]}), Measurements(columns={"s": "its key"})
    pieces = [("part-0", rows, pa.table({"reason": pa.array([], pa.string())}))]
    folder = str(tmp_path)
    outdate(folder, [commit(folder, "part-0", "old", 1, pieces, started=0, numbers=columns)])
    commit(folder, "part-0", "new", 1, pieces, started=0, numbers=columns)
    kinds = ("_receipts", EARLIER)
    assert all(read_receipt(folder, "part-0", kind) for kind in kinds)
    drop_receipts(folder)
    assert not any(read_receipt(folder, "part-0", kind) for kind in kinds)


def test_a_lost_manifest_costs_no_translation(a_run: Path, finished_run: Path) -> None:
    before = stamps(a_run, "back_translate")
    (a_run / "run" / "manifest.json").unlink()
    assert again("select", a_run) == 0
    assert stamps(a_run, "back_translate") == before
    assert parts(a_run) == parts(finished_run)


def test_a_second_process_is_kept_out(a_run: Path) -> None:
    with locked(str(a_run / "run")):
        done = command("select", a_run)
    assert done.returncode == 2
    assert done.stderr == f"paraloom: {a_run}/run: another paraloom is at work on this run\n"


def test_what_a_killed_process_left_goes(a_run: Path, capsys: Capsys) -> None:
    run = a_run / "run"
    (run / ".nmt.abcd_123").mkdir()
    (run / ".nmt.abcd_123" / "checkpoint.pt").touch()
    (run / "rounds" / "2").mkdir(parents=True)
    names = (".manifest.json.abcdefgh", ".evaluation.json.x", "rounds/2/.corpus.x")
    for name in (*names, ".gitignore", "rounds/2/.mine.x", ".corpus"):
        (run / name).touch()
    assert again("select", a_run) == 0
    assert sorted(path.name for path in run.glob(".*")) == [".corpus", ".gitignore", ".lock"]
    assert [path.name for path in (run / "rounds" / "2").iterdir()] == [".mine.x"]


def test_the_manifest_says_what_the_run_was_made_from(
    finished_run: Path, bitext: dict[str, str]
) -> None:
    content = manifest(finished_run)
    config = yaml.safe_load((finished_run / "config.yaml").read_text())
    assert content["config"]["nmt"]["beam"] == config["nmt"]["beam"]
    assert content["config"]["embeddings"]["dim"] == 300  # resolved
    assert content["inputs"] == [
        {
            "path": path,
            "bytes": Path(path).stat().st_size,
            "sha256": hashlib.sha256(Path(path).read_bytes()).hexdigest(),
        }
        for path in bitext.values()
    ]
    assert content["versions"]["python"] == platform.python_version()
    for name in ("apache-beam", "ctranslate2", "pyarrow"):
        assert content["versions"][name] == metadata.version(name)
    model = content["stages"]["back_translate"]["model"]
    assert model["path"] == config["nmt"]["model"]
    assert len(model["sha256"]) == 64


def test_every_row_is_accounted_for(finished_run: Path) -> None:
    stages = manifest(finished_run)["stages"]
    assert list(stages) == list(STAGES)
    before = 120
    for name, account in stages.items():
        assert account["rows_in"] == before
        assert account["rows_in"] == account["rows_out"] + account["rows_rejected"]
        assert account["rows_rejected"] == sum(account["rejected"].values())
        assert account["seconds"] > 0
        found = receipts(str(finished_run / "run" / folder_of(name)))
        assert sum(receipt.rows_out for receipt in found) == account["rows_out"]
        assert all(2**34 > receipt.peak_memory > 2**24 for receipt in found)
        assert 2**34 > account["peak_memory"] >= max(receipt.peak_memory for receipt in found)
        before = account["rows_out"]
    before_corpus = stages["bucket"]["rows_out"]
    assert stages["ingest"]["rejected"] == {"empty source": 1}
    assert stages["back_translate"]["metrics"]["sentences"] == 119
    for summary in stages["bucket"]["deciles"].values():
        assert sum(summary["rows"]) == stages["bucket"]["rows_out"]
        assert max(summary["rows"]) - min(summary["rows"]) <= 1
    chosen = stages["bucket"]["deciles"]["trigram_overlap"]["rows"][2:7]
    apart = stages["select"]["rejected"]
    assert apart["outside the selected deciles of trigram_overlap"] == before_corpus - sum(chosen)


def test_a_full_disk_is_one_line_and_with_more_room_the_run_goes_on(
    full_disk: Path, write_config: WriteConfig, tmp_path: Path, finished_run: Path, capsys: Capsys
) -> None:
    write_config(tmp_path, run=str(full_disk / "run"))
    assert again("select", tmp_path) == 2
    line = capsys.readouterr().err.strip().splitlines()[-1]
    assert line.startswith(f"paraloom: {full_disk}/run/")
    assert line.endswith("cannot be written (No space left on device)")
    subprocess.run(["mount", "-o", "remount,size=10m", str(full_disk)], check=True)
    assert again("select", tmp_path) == 0
    (tmp_path / "run").symlink_to(full_disk / "run")
    assert parts(tmp_path) == parts(finished_run)


def test_a_read_only_disk_is_one_line(
    full_disk: Path, write_config: WriteConfig, tmp_path: Path, capsys: Capsys
) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(full_disk)], check=True)
    write_config(tmp_path, run=str(full_disk / "run"))
    assert again("select", tmp_path) == 2
    line = one_line(capsys)
    assert line == f"paraloom: {full_disk}/run/.lock: cannot be written (Read-only file system)"


def test_nothing_usable_in_the_input_says_so(
    write_config: WriteConfig, tmp_path: Path, capsys: Capsys
) -> None:
    (tmp_path / "bad.tsv").write_text("a\t\n\tb\n")
    changes = {"format": "tsv", "paths": [str(tmp_path / "bad.tsv")]}
    write_config(tmp_path, input=changes)
    assert again("select", tmp_path) == 2
    assert "none of 2 rows can be used" in capsys.readouterr().err.splitlines()[-1]
