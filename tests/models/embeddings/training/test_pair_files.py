"""Training on files of pairs: forms, columns, hard negatives, wrong files; PARAGRAM vectors."""

import gzip
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from numpy.typing import NDArray

from paraloom.models.embeddings.datasets.phrases import read_phrases
from paraloom.models.embeddings.encoders import build_encoder, random_vectors
from paraloom.models.embeddings.model import load_encoder
from paraloom.models.embeddings.options import EmbeddingOptions, PairsOptions, ParagramOptions
from paraloom.models.embeddings.ragged_columns import join_all
from paraloom.models.embeddings.tasks import train
from paraloom.models.embeddings.training import pair_trainer
from paraloom.models.embeddings.training.data import PairSource, learnable
from paraloom.models.embeddings.training.negatives import nearer_given
from paraloom.models.embeddings.training.pair_files import columns_of, copy_pairs
from paraloom.models.embeddings.training.pair_trainer import PairTrainer
from paraloom.models.embeddings.training.paragram import train_paragram
from paraloom.models.embeddings.training.trainer import Memory
from paraloom.models.errors import UserError
from paraloom.models.hashing import text_hashes
from paraloom.models.text.vectors import read_vectors
from tests.run_helpers import Patch
from tests.small_encoder import vocabulary_of

SMALL = EmbeddingOptions(dim=8, epochs=2, batch_size=10, mega_batch=3)
WORDS = [f"w{i}" for i in range(30)]


def rows(count: int = 60) -> list[tuple[str, str, str]]:
    random = np.random.default_rng(0)
    first = [" ".join(random.choice(WORDS, 5)) for _ in range(count)]
    second = [" ".join(text.split()[1:]) for text in first]
    negative = [" ".join(random.choice(WORDS, 5)) if i % 3 else "" for i in range(count)]
    return list(zip(first, second, negative, strict=True))


def tsv(found: Sequence[tuple[str, ...]], header: str = "") -> bytes:
    lines = [*([header] if header else []), *("\t".join(row) for row in found)]
    return "".join(f"{line}\n" for line in lines).encode()


def encoder(folder: Path, name: str, **source: object) -> np.ndarray:
    """The vectors of some sentences after training on one source."""
    options = SMALL.replace(pairs=[PairsOptions.of(source)])
    metrics = train(options, folder / name, seed=1)
    assert metrics["pairs"] + metrics["identical"] + metrics["empty"] >= 60
    return load_encoder(folder / name).embed([" ".join(WORDS), "w1 w2"])


def test_every_form_of_the_same_pairs_gives_the_same_encoder(tmp_path: Path) -> None:
    found = rows()
    columns = [pa.array(column) for column in zip(*found, strict=True)]
    table = pa.table(dict(zip(("reference", "translation", "no"), columns, strict=True)))
    (tmp_path / "folder").mkdir()
    pq.write_table(table.slice(0, 25), tmp_path / "folder" / "a.parquet", row_group_size=7)
    other = table.slice(25).set_column(1, "translation", columns[1][25:].dictionary_encode())
    pq.write_table(other, tmp_path / "folder" / "b.parquet")
    (tmp_path / "plain.tsv").write_bytes(tsv(found) + b"\n")
    named = tsv([(c, b, a) for a, b, c in found], "no\tb\ta")
    (tmp_path / "named.tsv.gz").write_bytes(gzip.compress(named))

    expected = encoder(tmp_path, "1", paths=[str(tmp_path / "plain.tsv")])
    plain, zipped = str(tmp_path / "plain.tsv"), str(tmp_path / "named.tsv.gz")
    same = [
        encoder(tmp_path, "2", paths=[str(tmp_path / "folder")]),
        encoder(tmp_path, "3", paths=[zipped], first="a", second="b"),
        encoder(tmp_path, "4", paths=[plain], first=1, second=2),
    ]
    assert all(np.array_equal(vectors, expected) for vectors in same)
    hard = [
        encoder(tmp_path, "5", paths=[plain], negative=3),
        encoder(tmp_path, "6", paths=[zipped], first="a", second="b", negative="no"),
    ]
    assert np.array_equal(hard[0], hard[1]) and not np.array_equal(hard[0], expected)


@pytest.mark.parametrize(
    ("content", "source", "message"),
    [
        (b"reference\ttranslation\n", {}, "no rows to train on"),
        (b"a\tb\nc\n", {}, "row 2: 1 tab-separated columns, but column 2 is needed"),
        (b"a\tb\n", {"first": "x"}, "'x'; use numbers if this row is data. The row contains a, b"),
        (b"a\tb\n", {"first": 3}, "no column 3; number of columns: 2"),
        (b"PAR1 and more", {}, "cannot be read (ArrowInvalid: Parquet magic bytes"),
    ],
)
def test_wrong_files_are_named(
    tmp_path: Path, content: bytes, source: dict[str, object], message: str
) -> None:
    path = tmp_path / "pairs"
    path.write_bytes(content)
    options = SMALL.replace(pairs=[PairsOptions.of({"paths": [str(path)], **source})])
    with pytest.raises(UserError) as error:
        train(options, tmp_path / "model", seed=1)
    text = "\n".join([*error.value.__notes__, str(error.value)])
    assert "embeddings.pairs[0].paths" in text and str(path) in text and message in text
    assert not (tmp_path / "model").exists()


def copied(folder: Path, name: str, **source: object) -> list[dict[str, str]]:
    options = PairsOptions.of({"paths": [str(folder / name)], **source})
    (copy,) = copy_pairs([options], folder / f"{name}.copy")
    found: list[dict[str, str]] = pq.read_table(copy).to_pylist()
    return found


def test_pairs_of_other_forms(tmp_path: Path) -> None:
    pairs = [{"first": "a, b", "second": "c"}, {"first": "d", "second": ""}]
    (tmp_path / "1.csv").write_bytes(b'id,reference,translation\n1,"a, b",c\n2,d,\n')
    (tmp_path / "2").write_bytes("reference\ttranslation\na, b\tc\nd\t\n".encode("utf-16"))
    lines = [b'{"n": NaN, "translation": "c", "reference": "a, b"}', b' {"reference": "d"}']
    (tmp_path / "3").write_bytes(b"\xef\xbb\xbf" + b"\n".join(lines))
    columns = {"reference": pa.array(["a, b", "d"], pa.string_view()), "translation": [b"c", b""]}
    pq.write_table(pa.table(columns), tmp_path / "4")
    assert [copied(tmp_path, name) for name in ("1.csv", "2", "3", "4")] == [pairs] * 4
    nested = pa.table({"pair": [{"en": "a, b", "de": "c"}, {"en": "d", "de": None}]})
    pq.write_table(nested, tmp_path / "5")
    assert copied(tmp_path, "5", first="pair.en", second="pair.de") == pairs
    pq.write_table(pa.table({"reference": ["a"], "translation": [["b", "c"]]}), tmp_path / "6")
    with pytest.raises(UserError, match="6: reference or translation cannot be read as text"):
        copied(tmp_path, "6")
    (tmp_path / "7").write_bytes(b'{"a": "b", "c": "d"}')
    with pytest.raises(UserError, match="no column 'reference'; the columns are a, c"):
        copied(tmp_path, "7")
    assert copied(tmp_path, "7", first=2, second=1) == [{"first": "d", "second": "b"}]


def test_a_given_negative_is_taken_where_it_is_nearer() -> None:
    random = np.random.default_rng(0)
    n = 50
    vectors = torch.from_numpy(random.standard_normal((3 * n, 4)))
    found = random.integers(-1, 2 * n, (2, n))
    there = random.random(n) < 0.7
    units = vectors / vectors.norm(dim=1, keepdim=True)
    expected = found.copy()
    for side in range(2):
        for i in range(n):
            own = units[side * n + i] @ units[2 * n + i]
            other = -2 if found[side, i] < 0 else units[side * n + i] @ units[found[side, i]]
            if there[i] and own > other:
                expected[side, i] = 2 * n + i
    assert np.array_equal(nearer_given(found, vectors, there), expected)
    assert (expected >= 2 * n).any() and (expected[:, there] < 2 * n).any()


@pytest.mark.parametrize("tags", [False, True])
def test_a_sentence_of_tags_is_no_given_negative(tags: bool, monkeypatch: Patch) -> None:
    texts = [pa.array(side) for side in (["a", "b", "c"], ["d", "e", "f"], ["g", "", "h"])]
    vocabulary = vocabulary_of(texts, tags=tags)
    left, right, given = texts
    pairs = learnable(left, right, {"words": vocabulary}, None, given)
    options = EmbeddingOptions(dim=4, tags=tags)
    encoder = build_encoder(options, {"words": random_vectors(len(vocabulary), 4, 1)})
    trainer = PairTrainer(encoder, Memory(pairs, "memory"), options, 1)
    seen: list[list[bool]] = []

    def record(found: NDArray[Any], vectors: torch.Tensor, there: NDArray[Any]) -> NDArray[Any]:
        seen.append(there.tolist())
        return found

    monkeypatch.setattr(pair_trainer, "nearer_given", record)
    trainer.negatives(join_all(pairs.sides), pairs.keys)
    assert seen == [[True, False, True]]


def test_a_negative_that_is_a_side_of_its_pair_is_removed() -> None:
    texts = ["a b", "c", "a"], ["b", "c d", "b"], ["B", "e", ""]
    left, right, given = map(pa.array, texts)
    vocabulary = vocabulary_of([left, right, given])
    pairs = learnable(left, right, {"words": vocabulary}, None, given)
    assert pairs.sides[2]["words"].lengths.tolist() == [0, 1, 0]
    assert pairs.take(np.array([1])).sides[2]["words"].lengths.tolist() == [1]


def test_pairs_with_the_same_first_sentence_have_a_source(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(tsv([(f"x{i // 2}", f"y{i}") for i in range(8)]))
    sources = [PairsOptions(paths=[str(tmp_path / "a")])]
    shards = PairSource(copy_pairs(sources, tmp_path / "copies"), columns_of(sources))
    shards.vocabularies = {"words": vocabulary_of(shards.texts())}
    (pool,) = shards.epoch(0)
    first = pa.array([f"x{i // 2}" for i in range(8)])
    assert np.array_equal(pool.take(np.arange(8)).sources, text_hashes(first))  # type: ignore[arg-type]


PPDB = "[NP] ||| the car ||| the automobile ||| PPDB2.0Score=5 ||| 0-0 1-1 ||| Equivalence\n"


def test_forms_of_phrases(tmp_path: Path) -> None:
    for text in (PPDB, "the car ||| the automobile\n", "the car\tthe automobile\t0.9\n"):
        for data in (text.encode(), gzip.compress(text.encode("utf-16"))):
            (tmp_path / "phrases").write_bytes(data)
            assert list(read_phrases(tmp_path / "phrases")) == [("the car", "the automobile")]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a ||| b\nc ||| \n", "line 2 has no pair"),
        ("a\tb\nc\n", "line 2 has no pair"),
        ("", "empty"),
    ],
)
def test_bad_phrases_name_file_and_row(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "phrases").write_text(content)
    with pytest.raises(UserError, match=f"{tmp_path}/phrases.*{message}"):
        list(read_phrases(tmp_path / "phrases"))


def test_paraphrases_end_up_near_each_other(tmp_path: Path) -> None:
    names = [f"w{i}" for i in np.random.default_rng(0).permutation(120)]
    pairs = list(zip(names[:60], names[60:], strict=True))  # unlike the order of the vocabulary
    path, out = tmp_path / "phrases", tmp_path / "vectors.txt"
    path.write_text("".join(f"{a}\t{b}\n" for a, b in pairs))
    options = ParagramOptions(dim=16, epochs=60, batch_size=10, learning_rate=0.01)
    metrics = train_paragram(path, out, options, seed=1)
    assert (metrics["pairs"], metrics["words"], metrics["steps"]) == (60, 120, 360)
    vectors = read_vectors(out)
    rows = [vectors.rows([pair[side] for pair in pairs]) for side in (0, 1)]
    assert min(map(min, rows)) >= 0
    a, b = (vectors.matrix[r] / np.linalg.norm(vectors.matrix[r], axis=1)[:, None] for r in rows)
    cosines = a @ b.T
    others = cosines[~np.eye(60, dtype=bool)].reshape(60, 59).max(axis=1)
    assert np.mean(np.diag(cosines) > others) > 0.95


def test_the_options_are_those_of_the_paper() -> None:
    """Negatives are of the other side; words of no other training start a training."""
    options = ParagramOptions(dim=4, epochs=2, batch_size=3, learning_rate=0.5)
    found = options.training()
    assert (found.model, found.negatives, found.initial_vectors) == ("word-avg", "other", None)
    for name, value in options.model_dump().items():
        assert getattr(found, name) == value
