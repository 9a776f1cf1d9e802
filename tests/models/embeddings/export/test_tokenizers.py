"""The pipelines of `tokenizers` give the tokens of `paraloom.models.text.tokens`."""

import gzip
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from paraloom.models.embeddings.datasets.similarity import read_sts
from paraloom.models.embeddings.export.check import ODD
from paraloom.models.embeddings.export.errors import InexpressibleError
from paraloom.models.embeddings.export.folder import tokenizer_of
from paraloom.models.embeddings.ragged_columns import Kind
from paraloom.models.embeddings.vocabulary import Vocabulary
from tests.sample import SIMILARITY, english_sentences, odd_sentences


def vocabulary(
    texts: Sequence[str], kind: Kind, language: str = "en", size: int | None = None
) -> Vocabulary:
    column = pa.array(texts, pa.string())
    return Vocabulary.build([column], kind=kind, language=language, max_size=size)


def differing(texts: Sequence[str], words: Vocabulary, tokenizer: Tokenizer) -> list[str]:
    """The texts of which the two give other ids."""
    column = words.ids(pa.array(texts, pa.string()))
    ours = [row.tolist() for row in np.split(column.ids, column.offsets[1:-1])]
    theirs = [found.ids for found in tokenizer.encode_batch(texts, add_special_tokens=False)]
    return [text for text, a, b in zip(texts, ours, theirs, strict=True) if a != b]


@pytest.mark.parametrize("kind", ["words", "trigrams"])
@pytest.mark.parametrize("size", [None, 100])
def test_the_same_ids_on_the_sample(kind: Kind, size: int | None) -> None:
    texts = [*english_sentences(1500), *odd_sentences(500), *ODD]
    for data in read_sts(SIMILARITY):
        texts += [*data.first.to_pylist(), *data.second.to_pylist()]
    words = vocabulary(texts, kind, size=size)
    assert differing(texts, words, tokenizer_of(words)) == []


@pytest.mark.parametrize(
    ("language", "texts"),
    [
        ("cs", ["Pan Dr. J. Novák má 3. října 1,5 mil. Kč, tj. málo.", "Žluťoučký kůň!"]),
        ("fr", ["L'été de M. Hulot, c'est-à-dire aujourd'hui l'art.", "Qu'est-ce que c'est ?"]),
        ("de", ["Z. B. am 3. Mai, d.h. Nr. 5 der Fa. Müller & Co.", "Er hat's gesagt."]),
        ("fi", ["EU:n päätös, n. 5 kpl klo 10:30.", "Rock'n'roll oy:ssä."]),
        ("zh", ["猫はIBMを买 3 2.5元。《红楼梦》", "IBM 公司；Café\u200b中文"]),
        ("th", ["สวัสดี ชาวโลก 2.0", "น้ำ ABC"]),
    ],
)
def test_other_languages(language: str, texts: list[str]) -> None:
    words = vocabulary(texts, "words", language)
    assert differing(texts, words, tokenizer_of(words)) == []


def test_what_joins_its_neighbours_is_a_character_of_its_own() -> None:
    texts = [
        "e\u0301 x\u200dy 각\u1100\u1161",
        "👍🏽 👨\u200d👩\u200d👧 🇨🇿🇩🇪 ❤️ नमस्ते ｶﾞ กำ",
        "À|Á Â",
        "a",
    ]
    words = vocabulary(texts, "trigrams")
    assert differing([*texts, "👍 é 🇨 क्षि Ÿ|"], words, tokenizer_of(words)) == []


def test_the_unknown_entry_and_tags_are_not_found_in_text() -> None:
    words = Vocabulary(["unk", "<", ">", "s", "/"], tags=True)
    tokenizer = tokenizer_of(words)
    assert tokenizer.encode("<s> <unk>", add_special_tokens=False).ids == [4, 6, 5, 4, 3, 5]
    assert tokenizer.encode("s").ids == [1, 6, 2]


def test_trigrams_that_cannot_be_expressed() -> None:
    with pytest.raises(InexpressibleError, match="without spaces"):
        tokenizer_of(vocabulary(["猫"], "trigrams", "zh"))
    many = [chr(0x4E00 + i) * 3 for i in range(2000)]
    with pytest.raises(InexpressibleError, match="2,001 different characters"):
        tokenizer_of(Vocabulary(many, kind="trigrams"))


WORDS = vocabulary(english_sentences(300), "words")
TRIGRAMS = vocabulary([*english_sentences(300), "é \u200d \u0301 🏽"], "trigrams")
PIPELINES = [(words, tokenizer_of(words)) for words in (WORDS, TRIGRAMS)]
LETTERS = st.text("abcxyzABCÉß", min_size=3, max_size=9)  # no abbreviation of English


@settings(max_examples=60)
@given(st.lists(LETTERS, min_size=1, max_size=8), st.sampled_from(["", ".", "!", " ?", "...", '"']))
def test_plain_sentences_are_always_equal(words: list[str], end: str) -> None:
    for known, tokenizer in PIPELINES:
        assert differing([", ".join(words) + end, "-".join(words)], known, tokenizer) == []


@settings(max_examples=60)
@given(st.text(max_size=40), st.text(" .,'-`\u0301\u200d\u0903\u2029aB1😀", max_size=20))
def test_any_text_has_as_many_trigrams_as_characters(one: str, other: str) -> None:
    """No text makes the pipelines fail; words may differ, their characters do not."""
    texts = [one, other, f"{one} {other}"]
    known, tokenizer = PIPELINES[1]
    column = known.ids(pa.array(texts, pa.string()))
    found = tokenizer.encode_batch(texts, add_special_tokens=False)
    assert [len(row.ids) for row in found] == column.lengths.tolist()
    assert len(PIPELINES[0][1].encode_batch(texts)) == 3


@pytest.mark.parametrize("kind", ["words", "trigrams"])
def test_the_same_ids_on_real_data(data: Path, kind: Kind) -> None:
    with gzip.open(data / "multi30k" / "train.en.gz", "rt", encoding="utf-8") as stream:
        texts = stream.read().split("\n")[:15_000]
    for pairs in read_sts(data / "sts"):
        texts += [*pairs.first.to_pylist(), *pairs.second.to_pylist()]
    texts += (data / "transfer" / "stsa.binary.dev").read_text("utf-8").split("\n")
    words = vocabulary(texts, kind)
    assert differing(texts, words, tokenizer_of(words)) == []
