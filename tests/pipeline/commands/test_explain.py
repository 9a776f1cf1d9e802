import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from paraloom.beam_jobs.engine.shards import commit, receipts
from paraloom.pipeline.cli import main
from paraloom.pipeline.commands.run import explain
from paraloom.pipeline.commands.run.explain import find
from tests.run_helpers import STAGES, Capsys, Patch, calls_of, changed_manifest, table


def ids(folder: Path, stage: str, rejected: bool = False) -> list[str]:
    found = receipts(str(folder / "run" / stage))
    shards = [s for r in found for s in (r.rejected_shards if rejected else r.shards)]
    return [name for s in shards for name in pq.read_table(s.path)["id"].to_pylist()]


def told(folder: Path, id: str, capsys: Capsys) -> str:
    assert main(["explain", str(folder / "run"), id]) == 0
    return " ".join(capsys.readouterr().out.split())


def test_a_pair_in_the_corpus(finished_run: Path, monkeypatch: Patch, capsys: Capsys) -> None:
    name = ids(finished_run, "corpus")[3]
    read = calls_of(monkeypatch, explain, "receipts")
    way = find(str(finished_run / "run"), name)
    searched = [Path(path).name for path in read if receipts(path)]  # there is no stage pivot
    assert searched == ["ingest"], "only the first stage is searched whole"
    assert [(step.stage, step.rejected) for step in way] == [(stage, False) for stage in STAGES]
    row = way[-1].row
    text = told(finished_run, name, capsys)
    for column in ("id", "source", "reference", "translation"):
        assert " ".join(row[column].split()) in text
    assert f"{row['trigram_overlap']:.4f}" in text
    assert f"{row['translation_score']:.4f}" in text
    assert "in the corpus" in text
    path, first, last = re.findall(r"from (/.+?), rows ([\d,]+) to ([\d,]+)", text)[0]
    lines = Path(path).read_text("utf-8").splitlines()
    assert int(last) - int(first) == 19
    assert row["source"] in [line.strip() for line in lines[int(first) - 1 : int(last)]]
    text = told(finished_run, ids(finished_run, "ingest")[-1], capsys)
    assert f"to {len(lines):,}" in text.split("from /")[1], "the last shard ends with its file"


def test_rows_that_are_not_in_the_corpus(finished_run: Path, capsys: Capsys) -> None:
    lowest = table(finished_run, "bucket").sort_by("trigram_overlap_decile")["id"][0].as_py()
    text = told(finished_run, lowest, capsys)
    assert "rejected by select: outside the selected deciles of trigram_overlap" in text
    assert "in the corpus" not in text
    (name,) = ids(finished_run, "ingest", rejected=True)
    text = told(finished_run, name, capsys)
    assert "rejected by ingest: empty source" in text
    path, row = re.findall(r"from (/.+?), row (\d+)", text)[0]
    assert not Path(path).read_text("utf-8").splitlines()[int(row) - 1].strip()


def test_a_run_on_its_way(a_run: Path, capsys: Capsys) -> None:
    name = ids(a_run, "corpus")[0]
    with changed_manifest(a_run) as content:
        for stage in ("score", "bucket", "select"):  # forgotten: being made anew
            del content["stages"][stage]
    text = told(a_run, name, capsys)
    assert "last stage: back_translate; later stages have not run" in text
    assert "trigram_overlap" not in text


def test_every_row_of_a_part_file_is_found_whatever_its_id(tmp_path: Path) -> None:
    names = ["b", "ß", "", "a-2", "\U0001f600", "\uffee", "a-10", "Z" * 5000]
    table = pa.table({"source": names, "id": names, "reference": ["x"] * len(names)})
    nothing = pa.table({"reason": pa.array([], pa.string())})
    pieces = [("part-0", table, nothing), ("part-1", pa.table({"id": ["c", "b"]}), nothing)]
    commit(str(tmp_path / "ingest"), "part-0", "key", len(names) + 2, pieces, started=0)
    for name in (*names, "c", "d"):
        found = len(find(str(tmp_path), name, ["ingest"]))
        assert found == [*names, "c", "b"].count(name)
