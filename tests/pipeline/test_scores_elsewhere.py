"""Scores of files, through the command line: joined, resumed, reported."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from paraloom.beam_jobs.io.shards import receipts
from paraloom.pipeline.cli import main
from tests.run_helpers import Capsys, Runs, WriteConfig, parts, table

STAGES = ["score", "bucket", "select"]


def rejected(folder: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    for path in (folder / "run" / "score" / "_rejected").glob("*.parquet"):
        found |= {row["id"]: row["reason"] for row in pq.read_table(path).to_pylist()}
    return found


def error(folder: Path, capsys: Capsys, workers: str = "1") -> str:
    """The one line with which the command ends."""
    capsys.readouterr()
    config, arguments = str(folder / "config.yaml"), ["--", "--direct_num_workers", workers]
    assert main(["select", "--config", config, *arguments]) == 2
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("paraloom: ")]
    return lines[-1]


def scored(**more: Any) -> dict[str, Any]:
    return {"scorers": ["translation_score", "trigram_overlap"], **more}


def columns(folder: Path) -> list[dict[str, str]]:
    """The keys of the columns of each shard."""
    return [receipt.numbers.columns for receipt in receipts(str(folder / "run" / "score"))]


def test_columns_of_files(a_run: Path, runs: Runs) -> None:
    ids = table(a_run, "back_translate", "id")["id"].to_pylist()
    values = {key: np.float32(i / 7) for i, key in enumerate(ids)}
    lines = [f"{key}\t{values[key]}" for key in ids[5:]]
    lines += [f"{ids[5]}\t{values[ids[5]]}", f"{ids[1]}\tnan", f"{ids[2]}\tinf", "another\t1"]
    (a_run / "comet.tsv").write_text("\n".join(lines))
    pq.write_table(pa.table({"id": ids, "score": range(len(ids))}), a_run / "kiwi-1.parquet")
    files = {"comet": str(a_run / "comet.tsv"), "kiwi": [str(a_run / "kiwi-*.parquet")]}
    changes = {"score": scored(columns=files), "select": {"by": "comet", "where": ["kiwi >= 10"]}}
    assert runs("select", a_run, **changes) == ["columns", *STAGES]
    good = [key for key in ids if key not in (*ids[:4], ids[4], ids[5])]
    pairs = table(a_run, "score")
    assert pairs["id"].to_pylist() == good
    assert pairs["comet"].to_pylist() == [values[key] for key in good]
    assert pairs["kiwi"].to_pylist() == [ids.index(key) for key in good]
    assert rejected(a_run) == {
        **dict.fromkeys([ids[0], ids[3], ids[4]], "comet: no value for this id"),
        **dict.fromkeys([ids[1], ids[2]], "comet is not finite"),
        ids[5]: "comet: several values for this id",
    }
    chosen = table(a_run, "corpus")
    assert {"comet_decile", "kiwi_decile"} <= {*chosen.column_names}
    assert min(chosen["kiwi"].to_pylist()) >= 10
    record = json.loads((a_run / "run" / "manifest.json").read_text())["stages"]
    assert record["columns"]["rows"]["comet"] == len(lines)
    report = (a_run / "run/report/index.html").read_text()
    assert "Computed elsewhere: read from comet.tsv." in report
    assert "read from kiwi-\\*.parquet" in (a_run / "run/README.md").read_text()
    assert runs("select", a_run) == []

    before = columns(a_run)
    (a_run / "comet.tsv").write_text("\n".join(lines[::-1]))
    assert runs("select", a_run) == ["columns"]  # the same values
    (a_run / "comet.tsv").write_text("\n".join(f"{key}\t{values[key] / 2}" for key in ids[::-1]))
    assert runs("select", a_run) == ["columns", *STAGES]
    pairs = table(a_run, "score")
    assert pairs["id"].to_pylist() == ids  # also those that had no value before
    assert pairs["comet"].to_pylist() == [np.float32(values[key] / 2) for key in ids]
    assert pairs["kiwi"].to_pylist() == list(range(len(ids)))
    for old, new in zip(before, columns(a_run), strict=True):
        assert [name for name in new if new[name] != old[name]] == ["comet"]


def test_a_file_that_cannot_be_read(
    a_run: Path, finished_run: Path, write_config: WriteConfig, capsys: Capsys
) -> None:
    file = a_run / "comet.tsv"
    file.write_text("a\t1\nb\n")
    write_config(a_run, score=scored(columns={"comet": str(file)}))
    line = error(a_run, capsys)
    assert line.startswith(f"paraloom: {file}: ")
    assert "Row #2: Expected 2 columns, got 1: b" in line
    assert not (a_run / "run" / "columns").exists()
    assert parts(a_run) == parts(finished_run)
