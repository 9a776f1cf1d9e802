"""The sentences of a collection that are nearest to given ones."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from models.embeddings.evaluate import Embed


class Neighbour(NamedTuple):
    """A sentence of the collection and its cosine with the given one."""

    cosine: float
    sentence: str


def nearest(
    embed: Embed, sentences: pa.StringArray, collection: Iterable[pa.StringArray], *, count: int = 5
) -> list[list[Neighbour]]:
    """For every sentence the `count` nearest others of the collection, the nearest first.

    The collection comes in blocks, each compared by one matrix product, so it may be larger than
    memory. A sentence is not its own neighbour, and copies in the collection count once; of equal
    cosines the earlier one wins.
    """
    queries = _unit(embed(sentences))
    texts = sentences.to_pylist()
    best: list[list[Neighbour]] = [[] for _ in texts]
    for block in collection:
        block = block.unique()
        similarities = queries @ _unit(embed(block)).T
        for text, row, found in zip(texts, similarities, best, strict=True):
            seen = {text, *(neighbour.sentence for neighbour in found)}
            # One more than asked for, as the sentence itself may be among them.
            for i in np.argsort(-row, kind="stable")[: count + 1]:
                if (sentence := block[int(i)].as_py()) not in seen:
                    found.append(Neighbour(float(row[i]), sentence))
            found.sort(key=lambda neighbour: -neighbour.cosine)
            del found[count:]
    return best


def _unit(vectors: np.ndarray) -> np.ndarray:
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.divide(vectors, norms, out=np.zeros_like(vectors), where=norms > 0)
