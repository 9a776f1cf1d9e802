import json
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paraloom.beam_jobs import storage
from paraloom.beam_jobs.engine.shards import (
    EARLIER,
    DamagedError,
    Receipt,
    Shard,
    commit,
    compact,
    copy_pairs,
    finished,
    outdate,
    read_receipt,
    read_shard,
    receipts,
    remove_orphans,
    units,
    write_receipt,
    write_shard,
)
from paraloom.models.errors import UserError
from tests.run_helpers import part_file

TABLE = pa.table({"id": ["a", "b", "c"], "n": [1, 2, 3]})
REJECTED = pa.table({"id": ["d", "e"], "reason": ["empty", "empty"]})
NONE = REJECTED.slice(0, 0)


def put(
    folder: Path | str,
    name: str = "part-0",
    key: str = "key",
    rows: int = 5,
    table: pa.Table = TABLE,
    rejected: pa.Table = REJECTED,
) -> Receipt:
    pieces = [(name, table, rejected)]
    return commit(str(folder), name, key, rows, pieces, started=time.monotonic())


@pytest.mark.parametrize("text", ["", "{", '{"name": "part-0"}', "\xff"])
def test_a_finished_unit_is_known_by_its_key_and_a_damaged_receipt_is_none(
    tmp_path: Path, text: str
) -> None:
    receipt = put(tmp_path)
    assert finished(str(tmp_path), "part-0", "key") == receipt
    assert (receipt.rows_in, receipt.rows_out, receipt.rejected) == (5, 3, {"empty": 2})
    assert finished(str(tmp_path), "part-0", "another key") is None
    assert finished(str(tmp_path), "part-1", "key") is None
    (tmp_path / "_receipts" / "part-0.json").write_bytes(text.encode("latin-1"))
    assert read_receipt(str(tmp_path), "part-0") is None
    assert finished(str(tmp_path), "part-0", "key") is None
    assert receipts(str(tmp_path)) == []


def test_shards_read_as_written(tmp_path: Path) -> None:
    receipt = put(tmp_path)
    (shard,), (rejected,) = receipt.shards, receipt.rejected_shards
    assert read_shard(shard).equals(TABLE)
    assert read_shard(shard, ["n"]).column_names == ["n"]
    assert pq.read_table(shard.path).equals(TABLE)  # by anyone
    assert pq.read_table(rejected.path).equals(REJECTED)
    assert (shard.name, rejected.name) == ("part-0", "part-0")
    assert shard.path == f"{tmp_path}/part-0-{shard.digest[:8]}.parquet"
    assert rejected.path == f"{tmp_path}/_rejected/part-0-{rejected.digest[:8]}.parquet"


def test_the_same_rows_give_the_same_bytes_in_one_row_group_or_none(tmp_path: Path) -> None:
    one = write_shard(str(tmp_path / "a.parquet"), TABLE)
    two = write_shard(str(tmp_path / "b.parquet"), pa.concat_tables([TABLE[:1], TABLE[1:]]))
    assert one.digest == two.digest
    empty = write_shard(str(tmp_path / "c.parquet"), TABLE[:0])
    groups = [pq.ParquetFile(shard.path).num_row_groups for shard in (one, empty)]
    assert groups == [1, 0]  # `datasets` fails on an empty one
    assert read_shard(empty).equals(TABLE[:0])


@pytest.mark.parametrize("rows", [4, 6])
def test_a_row_that_is_lost_ends_the_run(tmp_path: Path, rows: int) -> None:
    with pytest.raises(RuntimeError, match=f"{rows} rows in, but 3 out and 2 rejected"):
        put(tmp_path, rows=rows)
    assert read_receipt(str(tmp_path), "part-0") is None
    assert finished(str(tmp_path), "part-0", "key") is None


def test_a_crash_within_the_pieces_leaves_the_unit_unfinished(tmp_path: Path) -> None:
    def pieces() -> Iterator[tuple[str, pa.Table, pa.Table]]:
        yield "part-0-0", TABLE, NONE
        raise UserError("input.gz: truncated gzip")

    with pytest.raises(UserError):
        commit(str(tmp_path), "part-0", "key", 3, pieces(), started=0.0)
    assert receipts(str(tmp_path)) == []


@pytest.mark.parametrize("file", ["part-0", "_rejected/part-0"])
@pytest.mark.parametrize("damage", ["missing", "truncated", "altered"])
def test_a_damaged_part_file_is_not_finished(tmp_path: Path, file: str, damage: str) -> None:
    receipt = put(tmp_path)
    path = part_file((tmp_path / file).parent, "part-0")
    data = path.read_bytes()
    harmed = {"truncated": data[:-1], "altered": bytes([data[0] ^ 1]) + data[1:]}
    path.unlink() if damage == "missing" else path.write_bytes(harmed[damage])
    assert finished(str(tmp_path), "part-0", "key") is None
    (shard,) = receipt.shards if file == "part-0" else receipt.rejected_shards
    with pytest.raises(UserError, match=f"{path}: (damaged|cannot be read)") as error:
        read_shard(shard)
    assert "\n" not in str(error.value)
    put(tmp_path)
    assert finished(str(tmp_path), "part-0", "key") is not None


@pytest.mark.parametrize("name", ["old", "old/", "./x//../old/"])
def test_a_run_folder_can_be_moved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Also one that was given relative to the working directory."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x").mkdir()
    put(name)
    receipt = json.loads((tmp_path / "old" / "_receipts" / "part-0.json").read_text())
    for kind, subfolder in (("shards", ""), ("rejected_shards", "_rejected/")):
        file = part_file(tmp_path / "old" / subfolder, "part-0").name
        assert receipt[kind][0]["path"] == subfolder + file
    shutil.move(tmp_path / "old", tmp_path / "new")
    moved = finished(f"{tmp_path}/new", "part-0", "key")
    assert moved is not None
    assert read_shard(moved.shards[0]).equals(TABLE)


def test_strays_go_and_the_rest_stays(tmp_path: Path) -> None:
    first = put(tmp_path, "part-0")
    put(tmp_path, "part-1")
    put(tmp_path, "part-0", key="old", rows=4, rejected=REJECTED[:1])
    put(tmp_path, "part-0")
    for name in (".part-0.parquet.12345678", "_rejected/.part-0.parquet.12345678", "README.txt"):
        (tmp_path / name).touch()
    remove_orphans(str(tmp_path), [first])
    left = sorted(str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if p.is_file())
    (shard,), (rejected,) = first.shards, first.rejected_shards
    of_unit = [shard.file, "_receipts/part-0.json", f"_rejected/{rejected.file}"]
    assert left == sorted(["README.txt", *of_unit])


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(path.read_bytes()[:-9]),
        lambda path: path.write_bytes(path.read_bytes().replace(b"part-1", b"part-9")),
        lambda path: path.write_text("é", "latin-1"),
        Path.unlink,
    ],
)
def test_one_file_has_all_receipts_of_a_stage_that_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: Callable[[Path], object]
) -> None:
    """If it is damaged, the single ones count."""
    folder = str(tmp_path)
    made = [put(tmp_path, f"part-{i}") for i in range(7)]
    single = receipts(folder)
    compact(folder, reversed(made))
    reads, read = list[str](), storage.read_bytes

    def counted(path: str) -> bytes:
        reads.append(path)
        return read(path)

    monkeypatch.setattr(storage, "read_bytes", counted)
    assert (receipts(folder), len(reads)) == (single, 1)
    damage(tmp_path / "_receipts/all.jsonl")
    assert (receipts(folder), len(reads)) == (single, 1 + 1 + 7)


def test_a_changed_receipt_counts_also_after_the_stage_has_ended(tmp_path: Path) -> None:
    folder, first = str(tmp_path), put(tmp_path, "part-0")
    compact(folder, [first])
    changed = first.model_copy(update={"seconds": 5.0})
    write_receipt(folder, changed)
    assert receipts(folder) == [changed]
    compact(folder, [changed])
    copy_pairs(folder, str(tmp_path / "copy"))
    assert receipts(str(tmp_path / "copy")) == [changed.at(str(tmp_path / "copy"))]
    assert "all.jsonl" in storage.names(str(tmp_path / "copy/_receipts"))
    compact(folder, [])
    assert receipts(folder) == []


def test_rejected_rows_are_counted_over_the_pieces_by_reason(tmp_path: Path) -> None:
    reasons = [["empty", "in a, row 3"], ["in a, row 41", "empty", "long"]]
    pieces = [
        (f"part-0-{i}", TABLE, pa.table({"id": ["x"] * len(of), "reason": of}))
        for i, of in enumerate(reasons)
    ]
    receipt = commit(str(tmp_path), "part-0", "key", 11, pieces, started=time.monotonic())
    assert receipt.rejected == {"empty": 2, "long": 1, "in a": 2}
    assert [shard.rows for shard in receipt.rejected_shards] == [2, 3]
    assert receipt == read_receipt(str(tmp_path), "part-0")


def test_a_receipt_is_set_aside_while_its_columns_may_be_copied(tmp_path: Path) -> None:
    folder, numbers = str(tmp_path), {"columns": {"n": "key of n"}}
    plain = put(tmp_path, "part-0")
    scored = put(tmp_path, "part-1").model_copy(update={"numbers": numbers})
    for receipt in (plain, scored):
        outdate(folder, [receipt])
    assert receipts(folder) == []
    assert read_receipt(folder, "part-0", EARLIER) is None
    assert read_receipt(folder, "part-1", EARLIER) == scored
    remove_orphans(folder, [put(tmp_path, "part-1")])
    assert read_receipt(folder, "part-1", EARLIER) is None
    assert storage.names(folder) == [plain.shards[0].file.replace("part-0", "part-1")]


def test_a_unit_is_keyed_by_stage_name_and_content() -> None:
    shard = Shard("x/part-0.parquet", 3, "abc")
    (unit,) = units([shard], "stage")
    assert (unit.name, unit.rows) == ("part-0", 3)
    assert units([shard], "stage", candidates=4)[0].rows == 12
    assert units([Shard("x/part-1.parquet", 3, "abc")], "stage")[0].key != unit.key
    assert units([Shard("y/part-0.parquet", 3, "abc")], "stage")[0].key == unit.key  # moved
    assert units([Shard("x/part-0.parquet", 3, "abd")], "stage")[0].key != unit.key
    assert units([shard], "stage 2")[0].key != unit.key


def write_stage(folder: str, parts: Iterable[int]) -> None:
    """Part files of two rows, one of them rejected; `parts` are their numbers."""
    for number in parts:
        ids = pa.table({"id": [f"{folder[-1]}-{number}"], "reason": ["why"]})
        put(folder, f"part-{number}", rows=2, table=ids.select(["id"]), rejected=ids)


def content(folder: str) -> list[tuple[str, dict[str, int], list[list[dict[str, Any]]]]]:
    return [
        (receipt.name, receipt.rejected, [read_shard(s).to_pylist() for s in kind])
        for receipt in receipts(folder)
        for kind in (receipt.shards, receipt.rejected_shards)
    ]


def test_a_copy_takes_the_place_of_what_was_there(place: str) -> None:
    source, target = (storage.join(place, name) for name in ("a", "b"))
    write_stage(source, [2, 0])
    write_stage(target, [0, 1, 3])
    storage.write_bytes(storage.join(target, "README.md"), b"stays")
    copy_pairs(source, target)
    assert content(target) == content(source)
    found = [shard for receipt in receipts(target) for shard in receipt.shards]
    assert storage.names(target) == ["README.md", *(shard.file for shard in found)]
    assert [shard.name for shard in found] == ["part-0", "part-2"]


def test_a_damaged_part_file_is_not_passed_on_and_half_a_copy_is_none(place: str) -> None:
    source, target = (storage.join(place, name) for name in ("a", "b"))
    write_stage(source, [0, 1])
    write_stage(target, [0, 1])
    damaged = receipts(source)[1].shards[0].path
    storage.write_bytes(damaged, b"PAR1")
    with pytest.raises(DamagedError) as error:
        copy_pairs(source, target)
    assert error.value.path == damaged
    assert [receipt.name for receipt in receipts(target)] == ["part-0"]
