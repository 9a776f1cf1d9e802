"""Nearest neighbours of sentences in a collection."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
import pyarrow as pa

from models.embeddings.applications.embed import line_batches, writing
from models.embeddings.applications.evaluation import Embed, Vectors
from models.files import opened


class Neighbour(NamedTuple):
    """A sentence of the collection and its cosine with the query."""

    cosine: float
    sentence: str


def nearest(
    embed: Embed, sentences: pa.StringArray, collection: Iterable[pa.StringArray], *, count: int = 5
) -> list[list[Neighbour]]:
    """For each sentence, the `count` nearest other sentences of the collection, nearest first.

    The collection is read in blocks, each compared by one matrix product, so it may be larger than
    memory. Equal sentences are not neighbours, and duplicates in the collection count once; of
    equal cosines the earlier sentence is preferred.
    """
    queries = _unit(embed(sentences))
    texts = sentences.to_pylist()
    best: list[list[Neighbour]] = [[] for _ in texts]
    for block in collection:
        block = block.unique()
        similarities = queries @ _unit(embed(block)).T
        for text, row, found in zip(texts, similarities, best, strict=True):
            seen = {text, *(neighbour.sentence for neighbour in found)}
            # One more than requested, because the sentence itself may be among them.
            for i in np.argsort(-row, kind="stable")[: count + 1]:
                if (sentence := block[int(i)].as_py()) not in seen:
                    found.append(Neighbour(float(row[i]), sentence))
            found.sort(key=lambda neighbour: -neighbour.cosine)
            del found[count:]
    return best


def neighbour_lines(
    embed: Embed, lines: Iterable[bytes], collection: Path | str, out: BinaryIO, *, count: int = 5
) -> None:
    """Write `sentence <tab> cosine <tab> neighbour` for the sentences in `lines`.

    `collection` is a file with one sentence per line, plain or gzip.

    Raises:
        UserError: the collection cannot be read, a line is not UTF-8, `out` cannot be written.
    """
    sentences = [line for batch in line_batches(lines) for line in batch]
    path = Path(collection)
    with opened(path) as stream:
        blocks = (pa.array(batch, pa.string()) for batch in line_batches(stream, f"{path}, "))
        found = nearest(embed, pa.array(sentences, pa.string()), blocks, count=count)
    with writing():
        for sentence, neighbours in zip(sentences, found, strict=True):
            for cosine, neighbour in neighbours:
                out.write(f"{sentence}\t{cosine:.6f}\t{neighbour}\n".encode())
        out.flush()


def _unit(vectors: Vectors) -> Vectors:
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(np.divide(vectors, norms, out=np.zeros_like(vectors), where=norms > 0))
