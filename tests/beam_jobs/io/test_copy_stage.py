from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from paraloom.beam_jobs.io import storage
from paraloom.beam_jobs.io.copy_stage import copy_pairs
from paraloom.beam_jobs.io.shards import DamagedError, commit, read_shard, receipts


@pytest.fixture(params=["local", "remote"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "local":
        return str(tmp_path)
    return str(request.getfixturevalue("bucket"))


def write(folder: str, parts: Iterable[int]) -> None:
    """Part files of two rows, one of them rejected; `parts` are their numbers."""
    for number in parts:
        ids = pa.table({"id": [f"{folder[-1]}-{number}"], "reason": ["why"]})
        pieces = [(f"part-{number}", ids.select(["id"]), ids)]
        commit(folder, f"part-{number}", "key", 2, pieces, started=0)


def content(folder: str) -> list[tuple[str, dict[str, int], list[list[dict[str, Any]]]]]:
    return [
        (receipt.name, receipt.rejected, [read_shard(s).to_pylist() for s in kind])
        for receipt in receipts(folder)
        for kind in (receipt.shards, receipt.rejected_shards)
    ]


def test_a_copy_takes_the_place_of_what_was_there(place: str) -> None:
    source, target = (storage.join(place, name) for name in ("a", "b"))
    write(source, [0, 2])
    write(target, [0, 1, 3])
    storage.write_bytes(storage.join(target, "README.md"), b"stays")
    copy_pairs(source, target)
    assert content(target) == content(source)
    found = [shard for receipt in receipts(target) for shard in receipt.shards]
    assert storage.names(target) == ["README.md", *(shard.file for shard in found)]
    assert [shard.name for shard in found] == ["part-0", "part-2"]


def test_a_damaged_part_file_is_not_passed_on_and_half_a_copy_is_none(place: str) -> None:
    source, target = (storage.join(place, name) for name in ("a", "b"))
    write(source, [0, 1])
    write(target, [0, 1])
    damaged = receipts(source)[1].shards[0].path
    storage.write_bytes(damaged, b"PAR1")
    with pytest.raises(DamagedError) as error:
        copy_pairs(source, target)
    assert error.value.path == damaged
    assert [receipt.name for receipt in receipts(target)] == ["part-0"]


def test_a_file_is_copied_whole(place: str) -> None:
    a, b = (storage.join(place, "x", name) for name in ("a.gz", "b.gz"))
    storage.write_bytes(a, b"\x1f\x8b new")
    storage.write_bytes(b, b"old and longer than the new one")
    storage.copy(a, b)
    assert storage.read_bytes(b) == storage.read_bytes(a) == b"\x1f\x8b new"
