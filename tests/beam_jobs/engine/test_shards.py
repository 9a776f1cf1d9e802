import itertools
import json
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paraloom.beam_jobs import storage
from paraloom.beam_jobs.engine.part_files import decode, encode, extended
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
from paraloom.beam_jobs.storage import MissingError
from paraloom.models.errors import UserError
from tests.run_helpers import Patch, calls_of, part_file

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
def test_a_finished_unit_is_known_by_key_and_no_damaged_receipt(tmp_path: Path, text: str) -> None:
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
def test_a_run_folder_can_be_moved(tmp_path: Path, monkeypatch: Patch, name: str) -> None:
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
    for name in (".part-0.parquet.1234567f", "_rejected/.part-0.parquet.1234567f", "README.txt"):
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
    tmp_path: Path, monkeypatch: Patch, damage: Callable[[Path], object]
) -> None:
    """If it is damaged, the single ones count."""
    folder = str(tmp_path)
    made = [put(tmp_path, f"part-{i}") for i in range(7)]
    single = receipts(folder)
    compact(folder, reversed(made))
    reads = calls_of(monkeypatch, storage, "read_bytes")
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
    tables = [pa.table({"id": ["x"] * len(of), "reason": of}) for of in reasons]
    pieces = [(f"part-0-{i}", TABLE, table) for i, table in enumerate(tables)]
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
    shard = Shard("x/part-0.parquet", 3, "abc", 9)
    (unit,) = units([shard], "stage")
    assert (unit.name, unit.rows) == ("part-0", 3)
    assert units([shard], "stage", candidates=4)[0].rows == 12
    assert units([Shard("x/part-1.parquet", 3, "abc", 9)], "stage")[0].key != unit.key
    assert units([Shard("y/part-0.parquet", 3, "abc", 9)], "stage")[0].key == unit.key  # moved
    assert units([Shard("x/part-0.parquet", 3, "abd", 9)], "stage")[0].key != unit.key
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


NO_ROWS = pa.table({"reason": pa.array([], pa.string())})

STEPS: dict[str, Callable[[str], bool]] = {
    "write_bytes": lambda path: True,
    "remove": lambda path: True,
    "read_bytes": lambda path: path.startswith("/_receipts"),
    "names": lambda path: not path,
}
"""The requests that another actor may come before, by the path below the stage's folder: those of
files that others read or write."""


class Memory:
    """An object store that can write an object only if there is none of its name."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}

    def read_bytes(self, path: str) -> bytes:
        if path not in self.files:
            raise MissingError(path)
        return self.files[path]

    def write_bytes(self, path: str, data: bytes, *, replace: bool = True) -> bool:
        written = replace or path not in self.files
        self.files |= {path: data} if written else {}
        return written

    def remove(self, path: str) -> None:
        self.files.pop(path, None)

    def names(self, folder: str) -> list[str]:
        found = (path.rpartition("/") for path in self.files)
        return sorted(name for parent, _, name in found if parent == folder)


class Actor(threading.Thread):
    """Waits before each of its requests to the store, until it is its turn."""

    def __init__(self, work: Callable[[], object]) -> None:
        super().__init__(daemon=True)
        self.work = work
        self.error: BaseException | None = None
        self.turn, self.waits = threading.Semaphore(0), threading.Semaphore(0)
        self.over = False
        self.start()
        self.waits.acquire()

    def run(self) -> None:
        try:
            self.pause()
            self.work()
        except BaseException as error:
            self.error = error
        self.over = True
        self.waits.release()

    def pause(self) -> None:
        self.waits.release()
        self.turn.acquire()

    def go(self) -> None:
        """Make one request, and wait before the next one."""
        self.turn.release()
        self.waits.acquire()
        if self.error:
            raise self.error


def play(folder: str, plan: list[int]) -> list[int]:
    """Play the choices of `plan` and then the first ones; return how many there were each time.

    What was killed makes no request any more. So a kill is an order in which the requests that it
    prevents come last, and the state before them is checked.
    """
    returned: list[Receipt] = []

    def attempt(text: str) -> None:
        piece = ("part-0", pa.table({"id": [text]}), NO_ROWS)
        returned.append(commit(folder, "part-0", "key", 1, [piece], started=0))

    def clean_up() -> None:
        remove_orphans(folder, [r for r in [read_receipt(folder, "part-0")] if r])

    attempts = [Actor(lambda: attempt("one")), Actor(lambda: attempt("another"))]
    cleaner = Actor(clean_up)
    choices: list[int] = []
    while True:
        job_is_over = bool(returned)
        actors = [a for a in (*attempts, *([cleaner] if job_is_over else [])) if not a.over]
        if not actors:
            break
        choices.append(len(actors))
        actors[plan[len(choices) - 1] if len(choices) <= len(plan) else 0].go()
        whole = finished(folder, "part-0", "key")
        assert whole or (read_receipt(folder, "part-0") is None and not returned)
        assert all(receipt == whole for receipt in returned)
    clean_up()  # by the next command
    assert finished(folder, "part-0", "key") == returned[0]
    assert [f"{folder}/{name}" for name in storage.names(folder)] == returned[0].paths
    return choices


def following(plan: list[int], choices: list[int]) -> list[int] | None:
    """The plan after one that had so many choices: depth first; None after the last one."""
    full = plan + [0] * (len(choices) - len(plan))
    while full and full[-1] + 1 == choices[len(full) - 1]:
        full.pop()
    return [*full[:-1], full[-1] + 1] if full else None


def test_a_receipt_always_fits_its_part_file(tmp_path: Path, monkeypatch: Patch) -> None:
    """In all orders on an object store; in every hundredth of them on disk."""
    memory, folder = Memory(), f"{tmp_path}/stage"
    real = {name: getattr(storage, name) for name in STEPS}
    store: dict[str, Any] = {}

    def request(name: str, path: str, *more: Any, **options: Any) -> Any:
        actor = threading.current_thread()
        if isinstance(actor, Actor) and STEPS[name](path.removeprefix(folder)):
            actor.pause()
        return store[name](path, *more, **options)

    for name in STEPS:
        monkeypatch.setattr(storage, name, partial(request, name))
    plan: list[int] | None = []
    played = 0
    while plan is not None:
        store = {name: getattr(memory, name) for name in STEPS}
        choices = play(folder, plan)
        if played % 100 == 0:
            store = real
            assert play(folder, plan) == choices
            shutil.rmtree(folder)
        plan = following(plan, choices)
        memory.files.clear()
        played += 1
    assert played > 500


_TEXT = st.text(st.characters(codec="utf-8"), max_size=30)
_FLOAT = st.floats(width=32, allow_nan=False)
_ROWS = st.lists(st.tuples(_TEXT, _TEXT, _FLOAT, st.integers(-99, 99), _FLOAT), max_size=50)
SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("text", pa.string(), nullable=False),
        pa.field("score", pa.float32(), nullable=False),
        pa.field("tokens", pa.int16(), nullable=False),
        pa.field("other", pa.float32()),
    ]
)

Row = tuple[str, str, float, int, float | None]


def of(rows: list[Row]) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else [[]] * len(SCHEMA)
    arrays = [pa.array(v, f.type) for v, f in zip(columns, SCHEMA, strict=True)]
    return pa.table(arrays, schema=SCHEMA)


@given(
    rows=_ROWS,
    order=st.permutations(range(len(SCHEMA))),
    ends=st.sets(st.integers(1, len(SCHEMA)), min_size=1),
)
def test_the_bytes_are_of_all_columns(rows: list[Row], order: list[int], ends: set[int]) -> None:
    """Whether they are added at once or again and again, between others or after them."""
    table = of(rows)
    for target in (table, table.select(order)):
        data = encode(table.select(range(min(ends))))
        for start, end in itertools.pairwise([*sorted(ends), len(SCHEMA)]):
            names = set(table.column_names[:end])
            form = pa.schema([field for field in target.schema if field.name in names])
            part = extended(data, table.select(range(start, end)), form)
            data = part.data
            assert part.num_rows == len(rows) or start == end
        assert data == encode(target)


def test_more_columns_than_a_short_list_has() -> None:
    columns = {f"c{i}": pa.array([float(i)] * 3, pa.float32()) for i in range(40)}
    table = pa.table(columns)
    part = extended(encode(table.select(range(20))), table.select(range(20, 40)), table.schema)
    assert part.data == encode(table)


def test_statistics_and_positions_are_right(tmp_path: Path) -> None:
    table = of([(str(i), f"text {i}", i / 7, i, i / 3) for i in range(1000)])
    data = extended(encode(table.select([0, 1])), table.select([2, 3, 4]), SCHEMA).data
    (tmp_path / "part.parquet").write_bytes(data)
    column = pq.ParquetFile(tmp_path / "part.parquet").metadata.row_group(0).column(3)
    statistics = column.statistics
    assert (column.path_in_schema, statistics.min, statistics.max) == ("tokens", 0, 999)
    found = ds.dataset(tmp_path).to_table(filter=ds.field("tokens") > 990, columns=["other"])
    assert found["other"].to_pylist() == table["other"][991:].to_pylist()


def test_part_files_of_several_row_groups_are_written_again() -> None:
    table = of([(str(i), f"text {i}", i / 7, i, None) for i in range(9)])
    sink = pa.BufferOutputStream()
    pq.write_table(table.select([0, 1]), sink, row_group_size=2)
    part = extended(sink.getvalue().to_pybytes(), table.select([2, 3, 4]), SCHEMA)
    assert decode(part.data).equals(table)
