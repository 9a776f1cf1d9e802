from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paraloom.models.embeddings import vocabulary as module
from paraloom.models.embeddings.ragged_columns import Kind
from paraloom.models.embeddings.vocabulary import Vocabulary, ids_by_kind
from paraloom.models.errors import UserError
from paraloom.models.text.tokens import moses_tokens
from tests.models.embeddings.encoders.test_encoders import rows_of
from tests.run_helpers import Patch
from tests.sample import odd_sentences

TEXT = ["A dog, a cat.", "", "The dog runs"]


def column(lines: list[str]) -> pa.StringArray:
    return pa.array(lines, pa.string())


def tokens_of(line: str) -> list[str]:
    (tokens,) = moses_tokens(column([line]), lower=True).to_pylist()
    return list(tokens)


def trigrams_of(line: str) -> list[str]:
    padded = [f" {token} " for token in tokens_of(line)]
    return [word[i : i + 3] for word in padded for i in range(len(word) - 2)]


def sentence_trigrams_of(line: str) -> list[str]:
    padded = f" {' '.join(tokens_of(line))} "
    return [padded[i : i + 3] for i in range(len(padded) - 2)]


PARTS: dict[Kind, Callable[[str], list[str]]] = {
    "words": tokens_of,
    "trigrams": trigrams_of,
    "sentence-trigrams": sentence_trigrams_of,
}


def decoded(vocabulary: Vocabulary, lines: list[str]) -> list[list[str]]:
    flat = vocabulary.ids(column(lines))
    assert flat.ids.dtype == np.int32
    assert flat.offsets.dtype == np.int64
    return [[vocabulary.words[i] for i in row] for row in rows_of(flat)]


def test_tags_stand_around_every_sentence_and_cannot_be_written_in_text() -> None:
    vocabulary = Vocabulary(["a", "<s>", "s"], kind="words", tags=True)
    assert decoded(vocabulary, ["a </s>", ""]) == [
        ["<s>", "a", "<unk>", "<unk>", "s", "<unk>", "</s>"],
        ["<s>", "</s>"],
    ]
    assert vocabulary.ids(column(["", "a"])).ids.tolist() == [1, 2, 1, 3, 2]


@pytest.mark.parametrize("kind", PARTS)
@settings(max_examples=30)
@given(known=st.lists(st.text(max_size=30)), lines=st.lists(st.text(max_size=40), min_size=1))
def test_ids_equal_a_lookup_token_by_token(kind: Kind, known: list[str], lines: list[str]) -> None:
    vocabulary = Vocabulary.build([column(known)], kind=kind)
    index = {word: i for i, word in enumerate(vocabulary.words[1:], 1)}
    parts = PARTS[kind]
    flat = vocabulary.ids(column(lines))
    assert rows_of(flat) == [[index.get(part, 0) for part in parts(line)] for line in lines]
    assert flat.lengths.tolist() == [len(parts(line)) for line in lines]


@pytest.mark.parametrize("kind", PARTS)
def test_how_the_corpus_is_cut_into_batches_changes_nothing(kind: Kind, monkeypatch: Patch) -> None:
    lines = odd_sentences(1000)
    whole = Vocabulary.build([column(lines)], kind=kind)
    monkeypatch.setattr(module, "_MERGE_AT", 300)
    cut = Vocabulary.build((column(lines[i : i + 37]) for i in range(0, len(lines), 37)), kind=kind)
    assert cut.words == whole.words
    parts = PARTS[kind]
    counts = Counter(part for line in lines for part in parts(line))
    assert whole.words[0] == "<unk>"
    assert whole.words[1:] == sorted(counts, key=lambda part: (-counts[part], part))


def test_counting_forgets_the_rarest_when_there_are_too_many(monkeypatch: Patch) -> None:
    monkeypatch.setattr(module, "_MERGE_AT", 1)
    monkeypatch.setattr(module, "_MAX_DISTINCT", 10)
    batches = (column([f"often often w{i}"]) for i in range(100))
    vocabulary = Vocabulary.build(batches, kind="words")
    assert vocabulary.words[1] == "often"
    assert len(vocabulary) <= 1 + 10 + 2


def test_several_vocabularies_of_the_same_sentences() -> None:
    kinds = {kind: Vocabulary.build([column(TEXT)], kind=kind) for kind in PARTS}
    for kind, flat in ids_by_kind(kinds, column(TEXT)).items():
        alone = kinds[kind].ids(column(TEXT))
        assert flat.ids.tolist() == alone.ids.tolist()
        assert flat.offsets.tolist() == alone.offsets.tolist()


@pytest.mark.parametrize("tags", [False, True, "start", "end"])
@pytest.mark.parametrize("kind", PARTS)
def test_saved_and_loaded(tmp_path: Path, kind: Kind, tags: Any) -> None:
    odd = ["a\u0085b", "\u2028", "\r", "\u00a0x", "#", "🙂", "a b "]
    entries = odd if kind == "words" else [(word + "zzz")[:3] for word in odd]
    vocabulary = Vocabulary(entries, kind=kind, tags=tags)
    vocabulary.save(tmp_path / "vocabulary.txt")
    again = Vocabulary.load(tmp_path / "vocabulary.txt")
    assert (again.words, again.kind, again.tags) == (vocabulary.words, kind, tags)
    text = column(["🙂 # 🙂zz", "x"])
    assert again.ids(text).ids.tolist() == vocabulary.ids(text).ids.tolist()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda raw: raw[:-3], "changed since it was written"),
        (lambda raw: raw.replace(b"dog", b"dig"), "changed since it was written"),
        (lambda raw: b"cat\ndog\n", "not a vocabulary"),
        (lambda raw: raw.replace(b"words", b"bytes"), "not a vocabulary"),
    ],
)
def test_a_damaged_file_is_refused(
    tmp_path: Path, change: Callable[[bytes], bytes], message: str
) -> None:
    path = tmp_path / "vocabulary.txt"
    Vocabulary(["cat", "dog"]).save(path)
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(UserError, match=message) as error:
        Vocabulary.load(path)
    assert str(path) in str(error.value)
    with pytest.raises(UserError, match="nowhere"):
        Vocabulary.load(tmp_path / "nowhere")
