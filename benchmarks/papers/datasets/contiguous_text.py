"""Contiguous text: the sentences of documents, in order."""

import re
import sys
from collections.abc import Iterator, Sequence
from itertools import groupby, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from paraloom.models.embeddings.datasets.lines import numbered_lines, wrong_columns
from paraloom.models.embeddings.ragged_columns import RaggedIds, offsets_of, positions
from paraloom.models.embeddings.vocabulary import Vocabulary, tag_count
from paraloom.models.errors import UserError
from paraloom.models.files import atomic_folder
from paraloom.models.languages import ENGLISH, is_unspaced, short_code

if TYPE_CHECKING:
    from spacy.language import Language

TextFormat = Literal["plain", "czeng20", "lines"]

_SENTENCES = 10_000  # number of sentences in a block
_GUTENBERG = re.compile(r"(?:\*\*\* ?)?(start|end) of (?:the |this )?project gutenberg", re.I)
_COLUMNS = 6  # number of columns in czeng20


class TextBlock(NamedTuple):
    """Consecutive sentences of a file."""

    sentences: pa.StringArray  # [n]
    documents: NDArray[np.int64]  # [n]: index of the document of each sentence


def read_text(
    paths: Sequence[Path | str], format: TextFormat = "plain", language: str = ENGLISH
) -> Iterator[TextBlock]:
    """Yield the sentences of files, which may be compressed, in blocks.

    - `plain`: empty lines separate paragraphs, which spaCy splits into sentences. Header and footer
      of a Project Gutenberg book are skipped.
    - `czeng20`: the last of six columns is a sentence. Empty lines separate documents.
    - `lines`: each line is a sentence (Toronto Books Corpus). Empty lines separate documents.
    """
    before = 0
    for path in map(Path, paths):
        rows = _plain(path, language) if format == "plain" else _rows(path, format)
        last = -1
        while block := list(islice(rows, _SENTENCES)):
            documents, sentences = zip(*block, strict=True)
            last = documents[-1]
            numbers = before + np.array(documents, np.int64)
            yield TextBlock(pa.array(sentences, pa.string()), numbers)
        if last < 0:
            raise UserError(f"{path}: no sentence in it")
        before += last + 1


class TextIds:
    """Sentences as word ids, in memory-mapped files."""

    def __init__(self, folder: Path) -> None:
        def mapped(name: str, dtype: type[np.generic]) -> NDArray[Any]:
            return np.asarray(np.memmap(folder / name, dtype, "r"))

        self.sentences = RaggedIds(mapped("ids.i32", np.int32), mapped("offsets.i64", np.int64))
        self.middles: NDArray[np.int64] = mapped("middles.i64", np.int64)
        """Indices of the sentences that are neither the first nor the last of their document."""

    @classmethod
    def write(
        cls, folder: Path, blocks: Iterator[TextBlock], vocabulary: Vocabulary, *, max_words: int
    ) -> Self:
        """Write sentences, truncated to `max_words`, with tags. Empty sentences are skipped."""
        tags = tag_count(vocabulary.tags)
        end = count = 0
        tail = np.zeros(0, np.int64)  # documents of the last two sentences written
        with (
            atomic_folder(folder) as temporary,
            (temporary / "ids.i32").open("wb") as id_stream,
            (temporary / "offsets.i64").open("wb") as offset_stream,
            (temporary / "middles.i64").open("wb") as middle_stream,
        ):
            offset_stream.write(np.int64(0).tobytes())
            for block in blocks:
                column = truncated(vocabulary.ids(block.sentences), max_words, tags=tags)
                full = column.lengths > tags
                ids = column.ids[np.repeat(full, column.lengths)]
                id_stream.write(ids.tobytes())
                offset_stream.write((end + np.cumsum(column.lengths[full])).tobytes())
                documents = np.concatenate([tail, block.documents[full]])
                middles = np.flatnonzero(documents[2:] == documents[:-2]) + 1
                middle_stream.write((count - len(tail) + middles).tobytes())
                count += len(documents) - len(tail)
                tail = documents[-2:]
                end += len(ids)
            if not middle_stream.tell():
                raise UserError("embeddings.context.text: no three sentences follow one another")
        return cls(folder)


def _plain(path: Path, language: str) -> Iterator[tuple[int, str]]:
    pipeline = _rules(language)
    pipeline.add_pipe("sentencizer")
    for doc in pipeline.pipe(_paragraphs(path)):
        for sentence in doc.sents:
            if text := sentence.text.strip():
                yield 0, text


def _rules(language: str) -> "Language":
    import spacy

    if is_unspaced(language):
        return spacy.blank("zh")  # splits into characters
    try:
        return spacy.blank(short_code(language))
    except ImportError:
        return spacy.blank("xx")


def _paragraphs(path: Path) -> Iterator[str]:
    marks: dict[str, int] = {}
    for number, line in numbered_lines(path):
        if found := _GUTENBERG.match(line):
            marks.setdefault(found[1].lower(), number)
    first, last = marks.get("start", 0), marks.get("end", sys.maxsize)
    lines = (line.strip() for number, line in numbered_lines(path) if first < number < last)
    for has_text, paragraph in groupby(lines, bool):
        if has_text:
            yield " ".join(paragraph)


def _rows(path: Path, format: TextFormat) -> Iterator[tuple[int, str]]:
    document = 0
    for number, line in numbered_lines(path):
        columns = line.split("\t") if format == "czeng20" else [line]
        if not line.strip():
            document += 1
        elif format == "czeng20" and len(columns) != _COLUMNS:
            raise wrong_columns(path, number, columns, _COLUMNS)
        elif text := columns[-1].strip():
            yield document, text


def edges(offsets: NDArray[np.int64], *, head: bool = True, tail: bool = True) -> NDArray[np.bool_]:
    """Return a mask of the first and last element of each ragged row. No row may be empty."""
    mask = np.zeros(offsets[-1], bool)
    if head:
        mask[offsets[:-1]] = True
    if tail:
        mask[offsets[1:] - 1] = True
    return mask


def truncated(column: RaggedIds, max_words: int, *, tags: int) -> RaggedIds:
    """Truncate sentences to `max_words` words. The tags (0 or 2 per sentence) are kept."""
    keep = positions(column.offsets) < max_words + tags // 2
    if tags:
        keep |= edges(column.offsets, head=False)
    return RaggedIds(column.ids[keep], offsets_of(np.minimum(column.lengths, max_words + tags)))
