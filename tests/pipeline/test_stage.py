"""What the stages of pairs share: their record, its digest, and whether their files are valid."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

from paraloom.beam_jobs.engine.launch import Result
from paraloom.beam_jobs.engine.shards import (
    DamagedError,
    Receipt,
    Saved,
    Shard,
    receipts,
    remove_orphans,
)
from paraloom.pipeline.config import read_config
from paraloom.pipeline.run.records import PairsRecord
from paraloom.pipeline.run.run import Run
from paraloom.pipeline.run.stage import pairs_record, shards_are_valid
from tests.run_helpers import Patch, part_file, small_config
from tests.shards import accepted


def receipt(number: int, rejected: dict[str, int], rows: int = 10) -> Receipt:
    return Receipt(
        name=f"part-{number}",
        key="k",
        rows_in=rows + sum(rejected.values()),
        shards=(Shard(f"part-{number}.parquet", rows - 1, f"{number}"), Shard("x", 1, "y")),
        rejected=rejected,
        seconds=1.5,
        peak_memory=100 - number,
        numbers={"saved": {"input.where": {"rows": number, "tokens": 10 * number}}},
    )


def record(*receipts: Receipt) -> PairsRecord:
    return pairs_record(PairsRecord, Result(receipts=receipts, metrics={"rows": 1}))


def run_of(folder: Path, *changes: str) -> Run:
    path = folder / "config.yaml"
    path.write_text(json.dumps(small_config(folder / "run", "a.tsv")))
    return Run(read_config(path, list(changes)))


def test_the_record_is_that_of_all_receipts() -> None:
    rare, often = {"rare": 1, "often": 2}, {"often": 7}
    found = record(receipt(1, rare), receipt(2, often), receipt(3, {}))
    assert (found.rows_in, found.rows_out, found.rows_rejected) == (40, 30, 10)
    assert list(found.rejected.items()) == [("often", 9), ("rare", 1)]
    assert (found.shards, found.worker_seconds, found.peak_memory) == (6, 4.5, 99)
    assert found.saved == {"input.where": Saved(rows=6, tokens=60)}
    assert found.metrics == {"rows": 1}
    lost = receipt(1, rare).model_copy(update={"rows_in": 14})
    with pytest.raises(RuntimeError, match="14 rows in, 10 out"):
        record(lost)


def test_the_digest_is_of_the_accepted_rows_in_their_order() -> None:
    one, two = receipt(1, {}), receipt(2, {})
    other = one.model_copy(update={"shards": (Shard("part-1.parquet", 10, "other"),)})
    slower = one.model_copy(update={"seconds": 9.0, "rejected": {"a": 0}})
    digests = [record(*of).digest for of in ((one, two), (two, one), (other, two), (one,))]
    assert len(set(digests)) == 4
    assert record(slower, two).digest == digests[0]


def test_files_are_valid_if_they_are_there_and_those_of_the_record(tmp_path: Path) -> None:
    run, folder = run_of(tmp_path), f"{tmp_path}/run/ingest"

    def write(rows: list[int]) -> None:
        (tmp_path / "run/ingest/_receipts/part-0.json").unlink(missing_ok=True)
        accepted(folder, "part-0", pa.table({"n": rows}))
        remove_orphans(folder, receipts(folder))

    write([1, 2])
    result = Result(receipts=tuple(receipts(folder)))
    run.records["ingest"] = pairs_record(PairsRecord, result)
    assert shards_are_valid(run, "ingest")
    write([1, 3])
    assert not shards_are_valid(run, "ingest")
    write([1, 2])
    assert shards_are_valid(run, "ingest")
    (other := Path(folder, "part-0-12345678.parquet")).touch()  # of an attempt that ended late
    assert not shards_are_valid(run, "ingest")
    other.unlink()
    part_file(tmp_path / "run/ingest", "part-0").unlink()
    assert not shards_are_valid(run, "ingest")


def test_local_copies_are_those_of_the_present_part_files(
    tmp_path: Path, monkeypatch: Patch
) -> None:
    run, folder = run_of(tmp_path), f"{tmp_path}/run/ingest"

    def write(rows: list[int]) -> Path:
        (shard,) = accepted(folder, "part-0", pa.table({"n": rows}), str(rows)).shards
        return Path(shard.path)

    first = write([1, 2])
    assert run.local_files("ingest") == [str(first)]  # the file is here itself
    with monkeypatch.context() as patch:  # as of a run in object storage
        patch.setattr(Run, "local_folder", lambda self, stage: tmp_path / "here" / stage)
        for rows in ([1, 2], [1, 3]):
            part = write(rows)
            (path,) = run.local_files("ingest")
            assert path == f"{tmp_path}/here/ingest/{part.name}"
            assert Path(path).read_bytes() == part.read_bytes()
    part.write_bytes(b"damaged")
    with pytest.raises(DamagedError):
        run.local_files("ingest")


def test_criteria_are_those_of_the_configuration(tmp_path: Path) -> None:
    select = ["max_tokens=5", "size=6", "per_source=best", "max_overlap=0.25"]
    run = run_of(tmp_path, "seed=7", "input.target_language=de", *(f"select.{s}" for s in select))
    found = run.criteria("trigram_overlap", [3, 1, 3])
    assert (found.by, found.deciles) == ("trigram_overlap", (1, 3))
    assert (found.max_tokens, found.size, found.seed) == (5, 6, 7)
    assert (found.per_source, found.max_overlap, found.language) == ("best", 0.25, "de")
    assert run.criteria().deciles is None
    assert run.criteria("x", []).deciles == ()
