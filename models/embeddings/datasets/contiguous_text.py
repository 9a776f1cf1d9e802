"""Contiguous text: sentences in their order, document by document."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa

from models.embeddings.vocabulary import FlatIds, Vocabulary
from models.errors import UserError
from models.files import atomic_folder, opened

_SENTENCES = 10_000  # in memory as texts
_GUTENBERG = re.compile(r"(?:\*\*\* ?)?(start|end) of (?:the |this )?project gutenberg", re.I)
_CZENG = 6  # columns; the last one is English


class Block(NamedTuple):
    """Consecutive sentences of a file."""

    sentences: pa.StringArray
    """[n]"""
    documents: np.ndarray
    """int64 [n]: which document of all files each is of"""


def read_text(
    paths: Sequence[Path | str], format: Literal["plain", "czeng20"] = "plain"
) -> Iterator[Block]:
    """The sentences of files, plain or gzip, some thousand at a time.

    `plain` text has paragraphs between empty lines, in which spaCy's rules find the sentences; of a
    book of Project Gutenberg, head and foot are left out. `czeng20` has a sentence a row (the last
    of six columns) and empty lines between documents.

    Raises:
        UserError: a file cannot be read, a line is not UTF-8 or not of the format, or there is
            no sentence in a file.
    """
    before = 0
    for path in map(Path, paths):
        rows = _plain(_lines(path)) if format == "plain" else _czeng(path, _lines(path))
        last = -1
        while some := list(islice(rows, _SENTENCES)):
            documents, sentences = zip(*some, strict=True)
            last = documents[-1]
            yield Block(pa.array(sentences, pa.string()), before + np.array(documents, np.int64))
        if last < 0:
            raise UserError(f"{path}: no sentence in it")
        before += last + 1


class Text:
    """Sentences as ids in files, memory-mapped: reading costs what is read."""

    def __init__(self, folder: Path) -> None:
        self.ids = np.memmap(folder / "ids.i32", np.int32, "r")
        self.offsets = np.memmap(folder / "offsets.i64", np.int64, "r")
        self.middles = np.memmap(folder / "middles.i64", np.int64, "r")
        """the sentences that have one of their document before and one behind them"""

    @classmethod
    def write(
        cls, folder: Path, blocks: Iterator[Block], vocabulary: Vocabulary, *, max_words: int
    ) -> Text:
        """Write sentences with their tags, each cut to `max_words` words; those without are none.

        Raises:
            UserError: nowhere three sentences follow one another.
        """
        tags = 2 if vocabulary.tags else 0
        end, number, document, run = 0, 0, -1, 0
        middles = 0
        with atomic_folder(folder) as temporary:
            streams = [(temporary / name).open("wb") for name in ("ids.i32", "offsets.i64")]
            middle_stream = (temporary / "middles.i64").open("wb")
            streams[1].write(np.int64(0).tobytes())
            for block in blocks:
                flat = cut(vocabulary.ids(block.sentences), max_words, tags=tags)
                full = flat.lengths > tags
                ids = flat.ids[np.repeat(full, flat.lengths)]
                offsets = end + np.cumsum(flat.lengths[full])
                streams[0].write(ids.tobytes())
                streams[1].write(offsets.astype(np.int64).tobytes())
                found = []
                for of in block.documents[full].tolist():
                    run = run + 1 if of == document else 1
                    document = of
                    if run >= 3:
                        found.append(number - 1)
                    number += 1
                middle_stream.write(np.array(found, np.int64).tobytes())
                middles += len(found)
                end = int(offsets[-1]) if len(offsets) else end
            for stream in (*streams, middle_stream):
                stream.close()
            if not middles:
                raise UserError(
                    "embeddings.context.text: nowhere do three sentences follow one another"
                )
        return cls(folder)

    def take(self, rows: np.ndarray) -> FlatIds:
        """The sentences of `rows`."""
        starts, ends = self.offsets[rows], self.offsets[rows + 1]
        offsets = np.concatenate([[0], np.cumsum(ends - starts)])
        places = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], ends - starts)
        return FlatIds(np.asarray(self.ids[places]), offsets)


def cut(flat: FlatIds, max_words: int, *, tags: int) -> FlatIds:
    """Sentences with at most so many words each beside their tags, of which the last one stays."""
    lengths = flat.lengths
    position = np.arange(len(flat.ids)) - np.repeat(flat.offsets[:-1], lengths)
    last = np.repeat(lengths, lengths) - 1
    keep = position < max_words + tags // 2
    if tags:
        keep |= position == last
    shorter = np.minimum(lengths, max_words + tags)
    return FlatIds(flat.ids[keep], np.concatenate([[0], np.cumsum(shorter)]))


def _plain(lines: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    import spacy

    pipeline = spacy.blank("en")
    pipeline.add_pipe("sentencizer")
    for doc in pipeline.pipe(_paragraphs(line for _, line in lines)):
        for sentence in doc.sents:
            if text := sentence.text.strip():
                yield 0, text


def _paragraphs(lines: Iterator[str]) -> Iterator[str]:
    """Paragraphs in one line each, between the marks of a Gutenberg book where it has them."""
    paragraph: list[str] = []
    held: list[str] = []  # until a mark says whether it is the head
    marked = False
    for line in lines:
        mark = _GUTENBERG.match(line)
        if mark and mark[1].lower() == "end":
            break
        if mark:
            marked, held, paragraph = True, [], []
        elif line.strip():
            paragraph.append(line.strip())
        elif paragraph:
            held.append(" ".join(paragraph))
            paragraph = []
        if held and (marked or len(held) > _HEAD):
            yield from held
            held, marked = [], True
    yield from held
    if paragraph:
        yield " ".join(paragraph)


_HEAD = 100  # paragraphs in which a Gutenberg book says where it starts


def _czeng(path: Path, lines: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    document = 0
    for number, line in lines:
        columns = line.split("\t")
        if not line.strip():
            document += 1
        elif len(columns) != _CZENG:
            raise UserError(
                f"{path}, row {number}: {len(columns)} tab-separated columns, expected {_CZENG}"
            )
        elif text := columns[-1].strip():
            yield document, text


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    with opened(path) as stream:
        for number, line in enumerate(stream, 1):
            text = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
            try:
                yield number, text.decode().rstrip("\r\n")
            except UnicodeDecodeError as error:
                raise UserError(f"{path}, row {number}: not UTF-8") from error
