import pickle
from collections.abc import Iterator
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pytest
from apache_beam.testing.util import assert_that
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from paraloom.beam_jobs import storage
from paraloom.beam_jobs.engine.launch import beam_options, run_pipeline
from paraloom.beam_jobs.engine.shards import remove_orphans
from paraloom.beam_jobs.storage.clients import store
from paraloom.beam_jobs.transforms import duplicates
from paraloom.beam_jobs.transforms.duplicates import (
    WithDuplicates,
    read_hashes,
    together,
    write_hashes,
)
from paraloom.beam_jobs.transforms.equal_texts import repeated, row_hash

small = st.lists(st.lists(st.text("ab", max_size=2), max_size=12), max_size=6)


def plain(shards: list[list[str]]) -> set[tuple[int, int]]:
    """(unit, row) of every text that stands before: the definition."""
    seen, found = set(), set()
    for unit, texts in enumerate(shards):
        for row, text in enumerate(texts):
            if text in seen:
                found.add((unit, row))
            seen.add(text)
    return found


@given(small, st.randoms(use_true_random=False))
def test_repeats_are_those_of_a_set_in_any_order(shards: list[list[str]], random: Random) -> None:
    places = [(unit, row) for unit, texts in enumerate(shards) for row in range(len(texts))]
    random.shuffle(places)
    hashes = row_hash(pa.array([shards[unit][row] for unit, row in places], pa.string()))
    units, rows = np.array(places, int).reshape(-1, 2).T
    found = repeated(hashes, units, rows)
    assert {place for place, again in zip(places, found, strict=True) if again} == plain(shards)


def test_all_128_bits_count_and_columns_are_not_run_together() -> None:
    hashes = np.array([[1, 2], [1, 3], [2, 3], [1, 2], [3, 2]], np.uint64)
    assert repeated(hashes, np.zeros(5, int), np.arange(5)).tolist() == [0, 0, 0, 1, 0]
    one, other = row_hash(pa.array(["ab", "a"]), pa.array(["c", "bc"]))
    assert (one != other).any()


def test_any_number_of_partitions_gives_the_same(
    monkeypatch: pytest.MonkeyPatch, stored: tuple[str, list[str]]
) -> None:
    place, options = stored
    random = np.random.default_rng(3)
    shards = [[f"text {i}" for i in random.integers(0, 60, 40)] for _ in range(5)]
    units = [SimpleNamespace(index=unit, texts=texts) for unit, texts in enumerate(shards)]

    def hashes(unit: SimpleNamespace) -> Iterator[tuple[NDArray[np.uint64], NDArray[np.int64]]]:
        yield row_hash(pa.array(unit.texts)), np.arange(len(unit.texts))

    wanted = plain(shards)

    def check(found: list[tuple[SimpleNamespace, NDArray[np.int64]]]) -> None:
        assert {(unit.index, int(row)) for unit, rows in found for row in rows} == wanted
        assert len(found) == len(units)
        assert sum(len(rows) for _, rows in found) == len(wanted)

    for partitions in (1, 7):
        monkeypatch.setattr(duplicates, "_ROWS_PER_PARTITION", 200 // partitions)
        find = WithDuplicates(hashes, 200 - 1, place)

        def build(root: Any, find: WithDuplicates = find) -> Any:
            found = root | beam.Create(units) | find
            assert_that(found, check)
            return found

        run_pipeline(build, beam_options(["--direct_num_workers", "1", *options]))
    assert len(storage.names(f"{place}/_hashes")) == 2 * len(units)
    remove_orphans(place, [])
    assert storage.names(f"{place}/_hashes") == []


def test_a_partition_fetches_its_own_bytes_in_one_request(
    stored: tuple[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    place, fetched = stored[0], list[int]()
    hashed = row_hash(pa.array(map(str, range(900)))), np.arange(900)
    parts = list(write_hashes(f"{place}/1", 1, [hashed], 9))
    kind = type(store(place)[0])

    def read(*of: Any, read: Any = kind.read) -> bytes:
        data: bytes = read(*of)
        fetched.append(len(data))
        return data

    monkeypatch.setattr(kind, "read", read)
    monkeypatch.setattr(kind, "size", None)  # another request
    for partition, where in parts:
        ((_, found, _),) = read_hashes([where])
        assert (found[:, 0] % 9 == partition).all() and len(found) == where[-1]
    assert fetched == [24 * rows for _, (*_, rows) in parts] and sum(fetched) == 900 * 24


def test_no_hashes_are_shuffled(tmp_path: Path) -> None:
    path = str(tmp_path / "7")
    blocks = [row_hash(pa.array([f"{block} {i}" for i in range(500)])) for block in range(3)]
    rows = [np.arange(500) + 500 * block for block in range(3)]
    found = list(write_hashes(path, 7, zip(blocks, rows, strict=True), 4))
    assert len(pickle.dumps(found)) < 1000
    assert {unit for _, (unit, *_) in found} == {7}
    for partition in range(4):
        groups = [where for number, where in found if number == partition]
        hashes, _, at = together(read_hashes(groups))
        assert (hashes[:, 0] % 4 == partition).all()
        assert np.array_equal(hashes, np.concatenate(blocks)[at])
    assert sum(rows for _, (*_, rows) in found) == 1500
    assert list(write_hashes(str(tmp_path / "8"), 8, [], 4)) == []
