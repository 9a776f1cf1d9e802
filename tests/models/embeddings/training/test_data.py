"""What a training begins with: its pairs, and a model with words, vectors, weights and device."""

import signal
import subprocess
import sys
from collections.abc import Generator, Iterator
from itertools import islice, pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from paraloom.models.embeddings.encoders import embedding_matrices, random_vectors
from paraloom.models.embeddings.options import EmbeddingOptions
from paraloom.models.embeddings.ragged_columns import Kind
from paraloom.models.embeddings.training import data
from paraloom.models.embeddings.training.data import Pairs, PairSource, learnable
from paraloom.models.embeddings.training.initial_model import new_model
from paraloom.models.embeddings.training.scrambling import scrambled
from paraloom.models.embeddings.vocabulary import Vocabulary
from paraloom.models.hashing import text_hashes
from paraloom.models.text.vectors import UNKNOWN, WordVectors
from tests.models.embeddings.encoders.test_encoders import rows_of
from tests.run_helpers import Patch
from tests.sample import odd_sentences
from tests.small_encoder import vocabulary_of


@pytest.fixture
def source(tmp_path: Path, monkeypatch: Patch) -> PairSource:
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
    shards = PairSource(paths, ("reference", "translation"), seed=3)
    shards.vocabularies = {"words": vocabulary_of(shards.texts())}
    return shards


def texts(source: PairSource, pairs: Pairs) -> list[tuple[str, ...]]:
    words = np.array(source.vocabularies["words"].words)
    flats = (side["words"] for side in pairs.sides)
    sides = (np.split(words[flat.ids], flat.offsets[1:-1]) for flat in flats)
    return [tuple(" ".join(side) for side in pair) for pair in zip(*sides, strict=True)]


def test_an_epoch_has_every_pair_once_in_bounded_pools(source: PairSource) -> None:
    epochs = []
    for epoch in (0, 1):
        pools = [texts(source, pool) for pool in source.epoch(epoch)]
        assert all(0 < len(pool) <= 24 for pool in pools) and len(pools) >= 5
        epochs.append([pair for pool in pools for pair in pool])
        assert sorted(epochs[-1]) == sorted((f"l{i} x", f"r{i} y") for i in range(100))
        sizes = [[chunk.rows for chunk in pool] for pool in source.pools(epoch)]
        assert all(sum(of) + after[0] > 24 for of, after in pairwise(sizes))  # as full as can be
    assert epochs[0] != epochs[1]
    again = [texts(source, pool) for pool in source.epoch(0)]
    assert [pair for pool in again for pair in pool] == epochs[0]


def test_an_epoch_can_begin_at_any_pool(source: PairSource) -> None:
    pools = [texts(source, pool) for pool in source.epoch(0)]
    for first in range(len(pools) + 1):
        assert [texts(source, pool) for pool in source.epoch(0, first)] == pools[first:]


def test_the_texts_of_a_vocabulary_are_those_trained_on(source: PairSource) -> None:
    read = [text for column in source.texts() for text in column.to_pylist()]
    trained = [pair for pool in source.epoch(0) for pair in texts(source, pool)]
    assert sorted(read) == sorted(side for pair in trained for side in pair)


def test_a_process_that_reads_ahead_gives_the_same(source: PairSource) -> None:
    expected = [texts(source, pool) for pool in source.epoch(0, 1)]
    source.ahead = True
    started = source.epoch(0, 1)
    assert isinstance(started, Generator)
    assert [texts(source, pool) for pool in islice(started, 3)] == expected[:3]
    assert isinstance(started, Generator)
    started.close()  # training may end in the middle of an epoch


KILLED = """
import os, sys
from paraloom.models.embeddings.training import data
from paraloom.models.embeddings.vocabulary import Vocabulary
data.POOL = 24
source = data.PairSource(sys.argv[1:], ("reference", "translation"))
source.vocabularies = {"words": Vocabulary(["x", "y"])}
pools = source.epoch(0)
next(pools)
os.kill(os.getpid(), 9)
"""
ON_CTRL_C = """
import multiprocessing, signal
(reader,) = multiprocessing.active_children()
signal.signal(signal.SIGINT, signal.SIG_IGN)
os.killpg(0, signal.SIGINT)
reader.join()"""
IGNORED = """
import signal
signal.signal(signal.SIGINT, signal.SIG_IGN)""" + KILLED.replace(
    "\nos.kill", "\nos.killpg(0, signal.SIGINT)\nlist(pools)\nos.kill"
)


def test_a_process_that_reads_ahead_ends_with_a_killed_training(source: PairSource) -> None:
    """`run` waits for the end of all processes that have its standard output."""
    paths = dict.fromkeys(chunk.path for chunk in source.chunks)
    for code in (KILLED, KILLED.replace("\nos.kill", f"{ON_CTRL_C}\nos.kill"), IGNORED):
        command = [sys.executable, "-c", code, *paths]
        done = subprocess.run(command, capture_output=True, timeout=120, start_new_session=True)
        assert done.returncode == -signal.SIGKILL and b"KeyboardI" not in done.stderr, done.stderr


def test_what_fits_in_memory_is_read_once(source: PairSource, monkeypatch: Patch) -> None:
    monkeypatch.setattr(data, "POOL", 100)
    (pool,) = source.epoch(1)
    (again,) = source.epoch(0)
    assert pool is again
    # Whichever epoch a resumed training reads first, the pairs are in the order of the files.
    assert texts(source, pool.take(np.arange(100))) == [(f"l{i} x", f"r{i} y") for i in range(100)]
    assert list(source.epoch(0, 1)) == []


def test_null_is_empty_and_a_row_group_without_rows_is_skipped(tmp_path: Path) -> None:
    table = pa.table({"l": ["a", None, "b", "c"], "r": ["b", "c", None, "C"]})
    pq.write_table(table, tmp_path / "a.parquet")
    pq.write_table(table[:0], tmp_path / "b.parquet")
    source = PairSource([tmp_path / "b.parquet", tmp_path / "a.parquet"], ("l", "r"))
    source.vocabularies = {"words": vocabulary_of(source.texts())}
    (pairs,) = source.epoch(0)
    assert (len(pairs), pairs.empty, pairs.identical) == (1, 2, 1) and source.rows == 4


def test_pairs_are_those_of_their_texts(tmp_path: Path) -> None:
    """They have the ids that the vocabulary gives."""
    texts = odd_sentences(900)
    sides = {"l": texts[::2], "r": texts[1::2]}
    pq.write_table(pa.table(sides), tmp_path / "a.parquet")
    source = PairSource([tmp_path / "a.parquet"], ("l", "r"))
    kinds: tuple[Kind, ...] = ("words", "trigrams")
    source.vocabularies = {kind: vocabulary_of(source.texts(), kind=kind) for kind in kinds}
    (pairs,) = source.epoch(0)
    for kind, vocabulary in source.vocabularies.items():
        for side, of in zip(pairs.sides, sides.values(), strict=True):
            assert rows_of(side[kind]) == rows_of(vocabulary.ids(pa.array(of)))


def test_translations_of_a_source_are_known_by_its_id(tmp_path: Path) -> None:
    columns = {"id": ["s", "s", "t", "u"], "candidate": [0, 1, 0, 0]}
    sides = {"l": ["a", "a", "a", ""], "r": ["b", "c", "d", "e"]}
    vocabulary = Vocabulary(list("abcde"))
    cases: list[tuple[list[str], str | None]] = [(["id", "candidate"], "sst")]
    cases += [(["id"], None), (["candidate"], None)]  # every row has a source of its own
    for names, sources in cases:
        path = tmp_path / "-".join(names)
        pq.write_table(pa.table({**{name: columns[name] for name in names}, **sides}), path)
        source = PairSource([path], ("l", "r"))
        source.vocabularies = {"words": vocabulary}
        (pairs,) = source.epoch(0)
        expected = None if sources is None else text_hashes(pa.array(list(sources)))
        np.testing.assert_array_equal(pairs.sources, expected)


@pytest.mark.parametrize("tags", [False, True])
def test_scrambling(tags: bool) -> None:
    left = pa.array([f"a{i} b c d e f" for i in range(500)])
    right = pa.array([f"z{i} y x" for i in range(500)])
    vocabularies: dict[Kind, Vocabulary] = {
        "words": vocabulary_of([left, right], tags=tags),
        "trigrams": vocabulary_of([left, right], kind="trigrams", tags=tags),
    }
    pairs = learnable(left, right, vocabularies)
    mixed = scrambled(pairs.sides, 0.6, tags, np.random.default_rng(0))
    changed = []
    for before, after in zip(pairs.sides, mixed, strict=True):
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
    assert pairs.take(np.array([3])).keys.shape == (2, 1)


def test_every_order_is_equally_likely() -> None:
    left = pa.array(["a b c"] * 6000)
    right = pa.array(["x"] * 6000)
    pairs = learnable(left, right, {"words": vocabulary_of([left, right])})
    left, _ = scrambled(pairs.sides, 1.0, False, np.random.default_rng(0))
    _, counts = np.unique(left["words"].ids.reshape(-1, 3), axis=0, return_counts=True)
    assert len(counts) == 6 and counts.min() > 850 and counts.max() < 1150


TEXTS = [pa.array(["b a", "a c a"]), pa.array(["c d"])]
MATRIX = np.random.default_rng(0).normal(0, 3, (4, 5)).astype(np.float32)
GIVEN = WordVectors(["e", "c", UNKNOWN, "f"], MATRIX)


def words_of(options: EmbeddingOptions, initial: WordVectors | None = None) -> list[str]:
    found = new_model(options, TEXTS, 1, initial=initial).vocabularies["words"]
    return found.words[found.specials :]


def test_the_words_are_those_of_the_texts_then_those_of_the_vectors() -> None:
    options = EmbeddingOptions(model="word-avg", dim=5)
    assert words_of(options) == ["a", "c", "b", "d"]  # a three times, c twice
    assert words_of(options, GIVEN) == ["a", "c", "b", "d", "e", "f"]
    assert words_of(options.replace(tags=True), GIVEN) == ["a", "c", "b", "d", "e", "f"]
    assert words_of(options.replace(max_vocabulary=3)) == ["a", "c", "b"]
    assert words_of(options.replace(max_vocabulary=5), GIVEN) == ["a", "c", "b", "d", "e"]
    assert words_of(options, WordVectors(["<unk>"], MATRIX[:1])) == ["a", "c", "b", "d"]


def test_words_without_a_vector_get_random_ones_as_long_as_the_others() -> None:
    options = EmbeddingOptions(model="word-avg+trigram-avg", dim=5)
    model = new_model(options, TEXTS, 7, initial=GIVEN)
    words, trigrams = (matrix.weight for matrix in embedding_matrices(model.encoder).values())
    assert torch.equal(trigrams, random_vectors(len(trigrams), 5, 7))  # not of words, so as ever
    random = random_vectors(7, 5, 7) * float(MATRIX.std()) / 0.1
    expected = {"<unk>": MATRIX[2], "c": MATRIX[1], "e": MATRIX[0], "f": MATRIX[3]}
    for row, word in enumerate(["<unk>", "a", "c", "b", "d", "e", "f"]):
        assert words[row].numpy() == pytest.approx(expected.get(word, random[row].numpy())), word


def test_weights_depend_on_the_seed_alone(monkeypatch: Patch) -> None:
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)  # GPUs that must not be used
    options = EmbeddingOptions(model="lstm", dim=4)
    found = []
    for before, seed in ((5, 1), (6, 1), (5, 2)):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(before)
            state = torch.random.get_rng_state()
            encoder = new_model(options, TEXTS, seed).encoder
            assert torch.equal(torch.random.get_rng_state(), state)
        found.append(torch.cat([weight.flatten() for weight in encoder.parameters()]))
    assert torch.equal(found[0], found[1]) and not torch.equal(found[0], found[2])


def test_vocabularies_of_a_folder_are_taken_from_there(tmp_path: Path) -> None:
    options = EmbeddingOptions(model="word-avg+trigram-avg", dim=4, tags=True)

    def unread() -> Iterator[pa.StringArray]:
        raise AssertionError
        yield

    first = new_model(options, TEXTS, 1, language="fr", folder=tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"words.txt", "trigrams.txt"}
    again = new_model(options, unread(), 1, language="fr", folder=tmp_path)
    for kind, vocabulary in first.vocabularies.items():
        assert again.vocabularies[kind].words == vocabulary.words
        assert again.vocabularies[kind].language == vocabulary.language == "fr"
    (tmp_path / "trigrams.txt").unlink()  # killed between the two
    with pytest.raises(AssertionError):
        new_model(options, unread(), 1, folder=tmp_path)
