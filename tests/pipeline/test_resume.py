"""Resuming: a stage is run again if and only if what it depends on has changed; kill -9."""

import contextlib
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml

from paraloom.beam_jobs import storage
from paraloom.beam_jobs.engine.shards import EARLIER, outdate, read_receipt, receipts
from paraloom.beam_jobs.score import ScoreMeasurements
from paraloom.models.files import STAGE_RECORD, digest
from paraloom.pipeline.judging.judgments import Action, JudgeFile
from paraloom.pipeline.run.folder import locked
from paraloom.pipeline.run.make import drop_receipts
from paraloom.pipeline.stages import folder_of
from tests.run_helpers import (
    STAGES,
    Capsys,
    Patch,
    Runs,
    WriteConfig,
    again,
    command,
    kill_in,
    manifest,
    part_file,
    parts,
    popen,
    ran,
    refusal,
    table,
)
from tests.shards import accepted


def stamps(folder: Path, stage: str) -> dict[str, tuple[int, int]]:
    """Which files a stage has, without their checksums, and when each was written."""
    return {
        re.sub(r"-[0-9a-f]{8}\.", ".", path.name): (path.stat().st_ino, path.stat().st_mtime_ns)
        for path in (folder / "run" / folder_of(stage)).rglob("*")
        if path.suffix in (".parquet", ".json")
    }


def written_since(before: dict[str, tuple[int, int]], folder: Path, stage: str) -> set[str]:
    """The units of a stage whose files are other ones than before."""
    now = stamps(folder, stage)
    changed = {name.split(".")[0] for name in before if now[name] != before[name]}
    return changed - {"_stage"}


def test_a_finished_run_does_nothing_wherever_it_is(a_run: Path, finished_run: Path) -> None:
    """Nor with another number of workers."""
    before = stamps(a_run, "corpus")
    assert again("select", a_run) == 0
    done = command("select", a_run, "--", "--direct_num_workers", "3")
    assert (done.returncode, ran(done.stderr)) == (0, [])
    assert done.stdout.count("cached") == 5
    assert stamps(a_run, "corpus") == before
    assert parts(a_run) == parts(finished_run)


def test_other_input_of_the_same_names(a_run: Path, bitext: dict[str, str], runs: Runs) -> None:
    paths = {}
    for side, path in bitext.items():
        paths[side] = str(a_run / Path(path).name)
        shutil.copy(path, paths[side])
    assert runs("select", a_run, input={"paths": paths}) == []  # the same bytes elsewhere
    lines = Path(paths["source"]).read_text("utf-8").splitlines(keepends=True)
    lines[50] = "Pes.\n"
    Path(paths["source"]).write_text("".join(lines), "utf-8")
    before = stamps(a_run, "back_translate")
    assert runs("select", a_run) == list(STAGES)
    # Only this shard was made again, and only the new sentence was translated.
    assert written_since(before, a_run, "back_translate") == {"part-00000-00002"}
    assert translated(a_run) == 1


def translated(folder: Path) -> int:
    """The sentences that the last job translated."""
    found: int = manifest(folder)["stages"]["back_translate"]["metrics"]["sentences"]
    return found


def test_a_run_beside_another_keeps_its_translations(
    finished_run: Path, write_config: WriteConfig, runs: Runs, tmp_path: Path, capsys: Capsys
) -> None:
    """Unless it is forced to translate."""
    other = {"reuse": str(finished_run / "run")}
    path = str(write_config(tmp_path, nmt={"reuse": str(tmp_path)}))
    line = refusal(capsys, "back-translate", "--config", path)
    assert line.startswith(f"paraloom: nmt.reuse: {tmp_path}: no run here; name a run's f")
    for small in ("preview", "estimate"):  # they reuse no translations
        assert again(small, tmp_path) == 0
    made = ["ingest", "back_translate"]
    shards = {"input": {"shard_rows": 50}}
    assert runs("back-translate", tmp_path, nmt=other, **shards) == made
    assert translated(tmp_path) == 0
    one, two = (table(folder, "back_translate") for folder in (finished_run, tmp_path))
    assert one == two  # the same scores, too
    record = manifest(tmp_path)["stages"]["back_translate"]
    assert record["saved"]["nmt.reuse"]["rows"] == record["rows_in"]
    assert runs("back-translate", tmp_path, nmt={"reuse": "deleted"}, **shards) == []
    assert runs("back-translate", tmp_path, nmt=other | {"beam": 1}) == made
    assert translated(tmp_path) == record["rows_in"]
    assert runs("back-translate", tmp_path, "--force", nmt=other) == made[1:]
    assert translated(tmp_path) == record["rows_in"]


def test_wholly_other_input_does_not_replace_a_corpus(
    a_run: Path, write_config: WriteConfig, runs: Runs, capsys: Capsys
) -> None:
    before = parts(a_run)
    for side in ("source", "reference"):
        text = "Pes štěká.\nDva psi.\n" if side == "source" else "A dog.\nDogs.\n"
        (a_run / side).write_text(text)
    other = {side: str(a_run / side) for side in ("source", "reference")}
    path = str(write_config(a_run, input={"paths": other}))
    line = refusal(capsys, "select", "--config", path)
    assert f"{a_run / 'run'}: was made from " in line and line.endswith("replace this run")
    assert parts(a_run) == before
    assert runs("ingest", a_run, "--force") == ["ingest"]
    assert runs("ingest", a_run) == []
    # A file of another name beside a known one, and one that was mended, are the same input.
    write_config(a_run, input={"paths": {side: [of, of + "2"] for side, of in other.items()}})
    for side, of in other.items():
        shutil.copy(of, f"{of}2")
        Path(of).write_text("Kočka.\n" if side == "source" else "A cat.\n", "utf-8")
    assert runs("ingest", a_run) == ["ingest"]


@pytest.mark.parametrize("stage", ["ingest", "back_translate", "select"])
def test_a_deleted_file_is_remade(a_run: Path, finished_run: Path, stage: str, runs: Runs) -> None:
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
    assert printed.count(f"{path}: damaged; it is made again\n") == 1
    assert ran(printed) == [reader, stage, reader]
    assert parts(a_run) == parts(finished_run)
    if stage != "ingest":  # whose unit is the file
        assert written_since(before, a_run, stage) == {"part-00000-00001"}
    assert runs("select", a_run) == []


EMPTIED, CUT = (lambda data: b""), (lambda data: data[:-1])


@pytest.mark.parametrize(
    ("file", "harm"),
    [
        *(("corpus.tsv.gz", harm) for harm in (None, EMPTIED, CUT, lambda data: bytes(len(data)))),
        ("corpus/part-*.parquet", CUT),
        ("ingest/part-*.parquet", EMPTIED),
        ("corpus/_rejected/*.parquet", CUT),
        ("corpus/_rejected/*.parquet", None),
    ],
)
def test_a_file_that_is_gone_or_of_another_size_is_made_again(
    a_run: Path, finished_run: Path, file: str, harm: Callable[[bytes], bytes] | None, runs: Runs
) -> None:
    path = next((a_run / "run").glob(file))
    whole = path.read_bytes()
    path.write_bytes(harm(whole)) if harm else path.unlink()
    (stage,) = runs("select", a_run)
    assert stage == ("ingest" if "ingest" in file else "select")
    assert path.read_bytes() == whole
    assert parts(a_run) == parts(finished_run)


def test_damage_that_returns_ends_the_run(a_run: Path, capsys: Capsys, monkeypatch: Patch) -> None:
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
    assert line == f"paraloom: {path}: damaged for the second time; check the disk"


def test_force_runs_the_stage_and_only_it(a_run: Path, finished_run: Path, runs: Runs) -> None:
    before = stamps(a_run, "score")
    assert runs("score", a_run, "--force") == ["score"]
    now = stamps(a_run, "score")
    assert all(now[name] != before[name] for name in before)
    assert runs("select", a_run) == []  # the same rows: nothing after it is made anew
    assert parts(a_run) == parts(finished_run)


def test_force_copies_no_column_of_a_run_that_was_killed(tmp_path: Path) -> None:
    rows, columns = pa.table({"n": [1]}), ScoreMeasurements(columns={"s": "its key"})
    folder = str(tmp_path)
    outdate(folder, [accepted(folder, "part-0", rows, "old", numbers=columns)])
    accepted(folder, "part-0", rows, "new", numbers=columns)
    kinds = ("_receipts", EARLIER)
    assert all(read_receipt(folder, "part-0", kind) for kind in kinds)
    drop_receipts(folder)
    assert not any(read_receipt(folder, "part-0", kind) for kind in kinds)


def test_a_second_process_is_kept_out(a_run: Path) -> None:
    with locked(str(a_run / "run")):
        done = command("select", a_run)
    assert done.returncode == 2
    assert done.stderr == f"paraloom: {a_run}/run: another paraloom is running here; wait for it\n"


def test_what_a_killed_process_left_goes(a_run: Path) -> None:
    run = a_run / "run"
    (run / ".nmt.abcd_123").mkdir()
    (run / ".nmt.abcd_123" / "checkpoint.pt").touch()
    (run / "rounds" / "2").mkdir(parents=True)
    names = [".manifest.json.abcdefgh", ".run.json.abcdefgh", "score/._stage.json.abcdefgh"]
    names += [".evaluation.json.x", "rounds/2/.corpus.x"]
    for name in (*names, ".gitignore", "rounds/2/.mine.x", ".corpus"):
        (run / name).touch()
    assert again("select", a_run) == 0
    assert sorted(path.name for path in run.glob(".*")) == [".corpus", ".gitignore", ".lock"]
    assert [path.name for path in (run / "rounds" / "2").iterdir()] == [".mine.x"]
    assert not list((run / "score").glob(".*"))


def test_the_manifest_says_what_the_run_is_of(finished_run: Path, bitext: dict[str, str]) -> None:
    content = manifest(finished_run)
    config = yaml.safe_load((finished_run / "config.yaml").read_text())
    assert content["config"]["nmt"]["beam"] == config["nmt"]["beam"]
    assert content["config"]["embeddings"]["dim"] == 300  # resolved
    assert content["inputs"] == [
        {"path": path, "bytes": Path(path).stat().st_size, "sha256": digest(path)}
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
    for name, account in stages.items():
        assert account["rows_rejected"] == sum(account["rejected"].values())
        assert account["seconds"] > 0
        found = receipts(str(finished_run / "run" / folder_of(name)))
        assert sum(receipt.rows_out for receipt in found) == account["rows_out"]
        assert all(2**34 > receipt.peak_memory > 2**24 for receipt in found)
        assert 2**34 > account["peak_memory"] >= max(receipt.peak_memory for receipt in found)
    before_corpus = stages["bucket"]["rows_out"]
    assert stages["ingest"]["rejected"] == {"empty source": 1}
    assert stages["back_translate"]["metrics"]["sentences"] == 119
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


def test_a_stage_that_rejects_too_much_stops_the_run(
    write_config: WriteConfig, tmp_path: Path, capsys: Capsys
) -> None:
    (tmp_path / "in.tsv").write_text("Pes.\tA dog.\n" + "no tab\n" * 3)
    write_config(tmp_path, input={"format": "tsv", "paths": [str(tmp_path / "in.tsv")]})
    assert again("ingest", tmp_path) == 2
    line = capsys.readouterr().err.splitlines()[1]
    rejected = part_file(tmp_path / "run/ingest/_rejected", "part-00000-00000")
    assert line.startswith("paraloom: ingest: 3 of 4 rows are rejected (75.0%)")
    assert f"1 column instead of 2 (3 rows), see {rejected}; is input.format right?" in line
    receipt = tmp_path / "run/ingest/_receipts/part-00000.json"
    made = receipt.read_bytes()
    assert again("ingest", tmp_path, "--set", "max_rejected=0.75") == 0
    assert receipt.read_bytes() == made


def finished(folder: Path, stage: str) -> dict[str, Any]:
    """What is known of the finished shards: a shard that is made again differs in one of them."""
    found = {}
    for file in (folder / "run" / folder_of(stage)).glob("_receipts/part-*.json"):
        with contextlib.suppress(FileNotFoundError):  # another process may be at work
            found[file.name] = (file.read_bytes(), file.stat().st_ino, file.stat().st_mtime_ns)
    return found


@pytest.mark.parametrize("stage", ["ingest", "back_translate", "bucket"])
def test_killed_in_the_middle(stage: str, a_run: Path, finished_run: Path, runs: Runs) -> None:
    whole, before = finished(finished_run, stage), finished(a_run, stage)
    while len(before) == len(whole):  # on a busy machine, a signal may come too late
        for name in STAGES[STAGES.index(stage) :]:
            shutil.rmtree(a_run / "run" / folder_of(name), ignore_errors=True)
        kill_in(stage, a_run, "part-*.parquet" if stage == "ingest" else "_receipts/part-*.json")
        before = finished(a_run, stage)
    assert runs("select", a_run) == list(STAGES[STAGES.index(stage) :])
    now = finished(a_run, stage)
    assert {name: now[name] for name in before} == before
    assert parts(a_run) == parts(finished_run)
    assert runs("select", a_run) == []


def test_receipts_count_without_a_record(a_run: Path, finished_run: Path, runs: Runs) -> None:
    """As if it had been killed between the last shard and the record of the stage, or lost that."""
    for stage in STAGES:
        (a_run / "run" / folder_of(stage) / STAGE_RECORD).unlink()
    for name in ("manifest.json", "run.json"):
        (a_run / "run" / name).unlink()
    before = {stage: finished(a_run, stage) for stage in STAGES}
    assert runs("select", a_run) == list(STAGES)
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


LOOKS = """
import sys
from paraloom.pipeline.cli import main
config, run, *stages = sys.argv[1:]
for command in (*([name, "--config", config] for name in stages), ["status", run]):
    print(main(command), [name for name in %r if name in sys.modules])
"""
HEAVY = ("apache_beam", "torch", "transformers", "pandas", "matplotlib")


def test_what_only_looks_imports_neither_beam_nor_torch(a_run: Path) -> None:
    """That would take longer than all that such a command does."""
    stages = ("train-embeddings", "select", "bucket", "score")
    assert command(stages[0], a_run).returncode == 0
    arguments = [str(a_run / "config.yaml"), str(a_run / "run"), *stages]
    looks = [sys.executable, "-c", LOOKS % (HEAVY,), *arguments]
    done = subprocess.run(looks, capture_output=True, text=True)
    assert re.findall(r"^\d \[.*", done.stdout, re.M) == ["0 []"] * 5, done.stderr


def test_pages_are_written_only_if_what_they_show_has_changed(a_run: Path) -> None:
    pages = {n: a_run / "run" / n for n in ("README.md", "report/index.html", "report/pages.json")}
    records = [a_run / "run" / name for name in ("run.json", "manifest.json")]

    def written() -> set[str]:
        before = {path: path.stat() for path in (*pages.values(), *records) if path.exists()}
        assert again("select", a_run) == 0
        return {
            str(path.relative_to(a_run / "run"))
            for path in (*pages.values(), *records)
            if path not in before or path.stat().st_ino != before[path].st_ino
        }

    written()  # the pages name the folder
    assert written() == set()
    for name, page in pages.items():
        whole = page.read_bytes()
        (left := page.with_name(f".{page.name}.0a1b2c3f")).touch()  # by a killed command
        for damage in (whole[:-20], b"", None):
            page.write_bytes(damage) if damage is not None else page.unlink()
            assert name in written()
            assert page.read_bytes() == whole
        assert not left.exists()
    assert written() == set()
    JudgeFile(str(a_run / "run"), "Anna").append(
        Action(id=row["id"], reference=row["reference"], translation=row["translation"], score=90)
        for row in table(a_run, "select").to_pylist()
    )
    assert written() == {*pages}
    assert "Precision of the corpus" in pages["README.md"].read_text("utf-8")
