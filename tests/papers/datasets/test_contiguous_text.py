"""Contiguous text: books and documents into sentences, sentences into ids on disk."""

import gzip
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from paraloom.models.embeddings.ragged_columns import take
from paraloom.models.embeddings.vocabulary import Vocabulary
from paraloom.papers.datasets import contiguous_text
from paraloom.papers.datasets.contiguous_text import TextFormat, TextIds, read_text, truncated
from tests.models.embeddings.encoders.test_encoders import flat, rows_of
from tests.run_helpers import Patch

BOOK = """\
Project Gutenberg's A Book, by Somebody

This eBook is for the use of anyone. Really.

*** START OF THIS PROJECT GUTENBERG EBOOK A BOOK ***

Mr. Brown came
home. It rains, he said. It did!

CHAPTER II

He slept.

End of the Project Gutenberg EBook of A Book

*** END OF THIS PROJECT GUTENBERG EBOOK A BOOK ***

You may copy it.
"""
CZENG = """\
a-1\t0.9\t1\t1\tPes.\tA dog.
a-2\t0.9\t1\t1\tBěží.\tIt runs.

b-1\t0.9\t1\t1\tKočka.\tA cat.
"""


def read(
    path: Path, text: str, format: TextFormat = "plain", zipped: bool = False
) -> tuple[list[str], list[int]]:
    data = text.encode()
    path.write_bytes(gzip.compress(data) if zipped else data)
    blocks = list(read_text([path], format))
    sentences = [text for block in blocks for text in block.sentences.to_pylist()]
    return sentences, np.concatenate([block.documents for block in blocks]).tolist()


@pytest.mark.parametrize(("zipped", "end"), [(False, "\n"), (True, "\r\n")])
def test_a_book_without_its_head_and_foot(tmp_path: Path, zipped: bool, end: str) -> None:
    sentences, documents = read(tmp_path / "book", BOOK.replace("\n", end), zipped=zipped)
    said = ["Mr. Brown came home.", "It rains, he said.", "It did!", "CHAPTER II", "He slept."]
    assert (sentences, documents) == (said, [0] * 5)


def test_documents_of_czeng(tmp_path: Path) -> None:
    path = tmp_path / "czeng"
    assert read(path, CZENG, "czeng20") == (["A dog.", "It runs.", "A cat."], [0, 0, 1])
    both = list(read_text([path, path], "czeng20"))
    assert [block.documents.tolist() for block in both] == [[0, 0, 1], [2, 2, 3]]


def test_one_sentence_a_line(tmp_path: Path) -> None:
    """The form of the Toronto Books Corpus."""
    text = "he said : `` it rains . ''\nit did !\n\n\nthe second\tbook .\n"
    sentences, documents = read(tmp_path / "books", text, "lines", zipped=True)
    assert sentences == ["he said : `` it rains . ''", "it did !", "the second\tbook ."]
    assert documents == [0, 0, 2]


@pytest.mark.parametrize("block", [1, 3, 10_000])
def test_ids_on_disk(tmp_path: Path, block: int, monkeypatch: Patch) -> None:
    monkeypatch.setattr(contiguous_text, "_SENTENCES", block)
    path = tmp_path / "czeng"
    rows = ["One dog.", "Two cats and a dog.", "...", "A cat.", "", "A dog.", "A cat.", "One."]
    path.write_text("".join(f"i\t1\t1\t1\tx\t{row}\n" if row else "\n" for row in rows))
    vocabulary = Vocabulary(["a", "cat", "dog", "one", "two", "."], tags=True)
    blocks = read_text([path], "czeng20")
    text = TextIds.write(tmp_path / "t", blocks, vocabulary, max_words=3)
    ids, offsets = text.sentences
    assert len(offsets) == 8 and (offsets[0], offsets[-1]) == (0, len(ids))
    assert text.middles.tolist() == [1, 2, 5]  # neighbours are of the same document
    taken = take(text.sentences, np.array([1, 0, 1]))
    words = [vocabulary.words[i] for i in taken.ids]
    assert words[:5] == ["<s>", "two", "<unk>", "<unk>", "</s>"]
    assert taken.offsets.tolist() == [0, 5, 10, 15]
    expected = [vocabulary.ids(pa.array([row])).lengths[0] for row in rows if row]
    assert np.diff(offsets).tolist() == np.minimum(expected, 5).tolist()
    again = TextIds(tmp_path / "t")
    assert np.array_equal(again.sentences.ids, ids)


@pytest.mark.parametrize("tags", [0, 2])
def test_cut(tags: int) -> None:
    sentences = [list(range(n)) for n in (tags, tags + 1, tags + 4, tags + 9)]
    assert rows_of(truncated(flat(sentences), 4, tags=tags)) == [
        [*s[: 4 + tags // 2], *s[-1:]] if len(s) > 4 + tags and tags else s[: 4 + tags]
        for s in sentences
    ]
