from collections.abc import Generator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from models.embeddings.options import EmbeddingOptions
from models.embeddings.ragged_columns import Kind
from models.embeddings.training import data
from models.embeddings.training.data import Pairs, Shards, learnable
from models.embeddings.vocabulary import Vocabulary


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shards:
    """100 pairs in 3 files, 14 row groups, in pools of at most 24."""
    monkeypatch.setattr(data, "POOL", 24)
    monkeypatch.setattr(data, "_ROWS", 5)
    paths = []
    for i, (start, end) in enumerate([(0, 31), (31, 32), (32, 100)]):
        rows = range(start, end)
        left, right = [f"l{row} x" for row in rows], [f"r{row} y" for row in rows]
        paths.append(tmp_path / f"{i}.parquet")
        table = pa.table({"reference": left, "translation": right, "score": [1.0] * len(left)})
        pq.write_table(table, paths[-1], row_group_size=8)
    shards = Shards(paths, ("reference", "translation"), seed=3)
    shards.vocabularies = {"words": Vocabulary.build(shards.texts())}
    return shards


def texts(source: Shards, pairs: Pairs) -> list[tuple[str, ...]]:
    words = np.array(source.vocabularies["words"].words)
    flats = pairs.left["words"], pairs.right["words"]
    sides = (np.split(words[flat.ids], flat.offsets[1:-1]) for flat in flats)
    return [tuple(" ".join(side) for side in pair) for pair in zip(*sides, strict=True)]


def test_an_epoch_has_every_pair_once_in_bounded_pools(source: Shards) -> None:
    epochs = []
    for epoch in (0, 1):
        pools = [texts(source, pool) for pool in source.epoch(epoch)]
        assert all(0 < len(pool) <= 24 for pool in pools) and len(pools) >= 5
        epochs.append([pair for pool in pools for pair in pool])
        assert sorted(epochs[-1]) == sorted((f"l{i} x", f"r{i} y") for i in range(100))
    assert epochs[0] != epochs[1]
    again = [texts(source, pool) for pool in source.epoch(0)]
    assert [pair for pool in again for pair in pool] == epochs[0]


def test_an_epoch_can_begin_at_any_pool(source: Shards) -> None:
    pools = [texts(source, pool) for pool in source.epoch(0)]
    for first in range(len(pools) + 1):
        assert [texts(source, pool) for pool in source.epoch(0, first)] == pools[first:]


def test_the_texts_of_a_vocabulary_are_those_trained_on(source: Shards) -> None:
    source.columns = source.columns._replace(held_out=0.3)
    read = [text for column in source.texts() for text in column.to_pylist()]
    trained = [pair for pool in source.epoch(0) for pair in texts(source, pool)]
    assert 0 < len(trained) < 100
    assert sorted(read) == sorted(side for pair in trained for side in pair)


def test_loader_processes_give_the_same(source: Shards) -> None:
    expected = [texts(source, pool) for pool in source.epoch(0, 1)]
    source.loaders = 2
    assert [texts(source, pool) for pool in source.epoch(0, 1)] == expected
    source.loaders = 1
    started = source.epoch(0)
    assert isinstance(started, Generator)
    next(started)
    assert isinstance(started, Generator)
    started.close()  # training may end in the middle of an epoch


def test_what_fits_in_memory_is_read_once(source: Shards, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data, "POOL", 100)
    (pool,) = source.epoch(0)
    (again,) = source.epoch(1)
    assert pool is again and len(pool) == 100
    assert list(source.epoch(0, 1)) == []


def test_order_depends_on_the_seed(source: Shards) -> None:
    first = [chunk for pool in source.pools(0) for chunk in pool]
    source.seed = 4
    assert [chunk for pool in source.pools(0) for chunk in pool] != first


def test_null_is_empty() -> None:
    sides = pa.array(["a", None, "b"]), pa.array(["b", "c", None])
    table = pa.table({"l": sides[0], "r": sides[1]}).to_batches()[0]
    vocabulary = Vocabulary.build([side.fill_null("") for side in sides])
    left, right = (table.column(name).fill_null("") for name in ("l", "r"))
    pairs = learnable(left, right, {"words": vocabulary})
    assert (len(pairs), pairs.empty, pairs.identical) == (1, 2, 0)


@pytest.mark.parametrize("tags", [False, True])
def test_scrambling(tags: bool) -> None:
    left = pa.array([f"a{i} b c d e f" for i in range(500)])
    right = pa.array([f"z{i} y x" for i in range(500)])
    vocabularies: dict[Kind, Vocabulary] = {
        "words": Vocabulary.build([left, right], tags=tags),
        "trigrams": Vocabulary.build([left, right], kind="trigrams", tags=tags),
    }
    pairs = learnable(left, right, vocabularies)
    options = EmbeddingOptions(scramble=0.6, tags=tags)
    mixed = pairs.scrambled(options, np.random.default_rng(0))
    changed = []
    for before, after in ((pairs.left, mixed.left), (pairs.right, mixed.right)):
        assert np.array_equal(before["trigrams"].ids, after["trigrams"].ids)
        length = len(before["words"].ids) // 500
        rows = [flat["words"].ids.reshape(500, length) for flat in (before, after)]
        assert np.array_equal(np.sort(rows[0], axis=1), np.sort(rows[1], axis=1))
        if tags:
            assert np.array_equal(rows[0][:, [0, -1]], rows[1][:, [0, -1]])
        changed.append((rows[0] != rows[1]).any(axis=1))
    # Both sides of a pair or none: what stays the same by chance is 1 of 720, and 1 of 6.
    assert changed[0].mean() == pytest.approx(0.6, abs=0.06)
    assert changed[1].mean() == pytest.approx(0.6 * 5 / 6, abs=0.06)
    assert not (changed[1] & ~changed[0]).any()
    assert np.array_equal(mixed.keys, pairs.keys)
    assert mixed.take(np.array([3])).keys.shape == (2, 1)


def test_every_order_is_equally_likely() -> None:
    left = pa.array(["a b c"] * 6000)
    right = pa.array(["x"] * 6000)
    pairs = learnable(left, right, {"words": Vocabulary.build([left, right])})
    mixed = pairs.scrambled(EmbeddingOptions(scramble=1.0), np.random.default_rng(0))
    _, counts = np.unique(mixed.left["words"].ids.reshape(-1, 3), axis=0, return_counts=True)
    assert len(counts) == 6 and counts.min() > 850 and counts.max() < 1150
