"""Pairs for training, as ids: read from Parquet shards a pool at a time."""

import multiprocessing
import random
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from models.embeddings.ragged_columns import (
    Kind,
    RaggedIds,
    Sentences,
    fingerprints,
    join_all,
    positions,
    take_all,
)
from models.embeddings.training.trainer import Pool
from models.embeddings.vocabulary import Vocabulary, ids_by_kind
from models.errors import UserError
from models.hashing import text_hashes

POOL = 200_000  # pairs shuffled together and held in memory
_ROWS = 20_000  # rows tokenised at once


@dataclass(frozen=True, eq=False)
class Pairs(Pool["Pairs"]):
    """n pairs of sentences as ids, and how many pairs were left out when they were read."""

    left: Sentences
    right: Sentences
    keys: NDArray[np.uint64]  # [2, n]: equal for equal sentences, of either side
    sources: NDArray[np.uint64] | None = None  # [n]: equal for translations of the same source
    identical: int = 0  # both sides equal after tokenisation: nothing to learn from
    empty: int = 0  # a side without a token

    def __len__(self) -> int:
        return int(self.keys.shape[1])

    def take(self, rows: NDArray[np.int64]) -> Self:
        """The pairs of `rows`, in their order."""
        sources = None if self.sources is None else self.sources[rows]
        sides = take_all(self.left, rows), take_all(self.right, rows)
        return type(self)(*sides, self.keys[:, rows], sources)

    def scrambled(self, share: float, random: np.random.Generator, *, tags: bool) -> Self:
        """The pairs, a random `share` of them with words in random order on both sides (W&G 4.2).

        Tags keep their positions. Trigrams are unchanged: their mean does not depend on the order.
        """
        chosen = random.random(len(self)) < share
        sides = [
            {**side, "words": _shuffled(side["words"], chosen, random, tags)}
            if "words" in side
            else side
            for side in (self.left, self.right)
        ]
        return type(self)(sides[0], sides[1], self.keys, self.sources)


class Chunk(NamedTuple):
    """A row group of a Parquet file."""

    path: str
    group: int
    rows: int


class Shards:
    """Two text columns of Parquet files, read a pool at a time.

    An epoch visits the row groups in a random order and joins them to pools; the trainer shuffles
    within a pool. The content of a pool depends only on the seed and the epoch, so that training
    can be resumed at any pool.
    """

    def __init__(
        self,
        paths: Sequence[str | Path],
        columns: tuple[str, str],
        *,
        seed: int = 0,
        loaders: int = 0,
    ) -> None:
        """Read the shards' footers; so many `loaders` (processes) tokenise the next pools ahead.

        Raises:
            UserError: there is no shard, one cannot be read or lacks a column, or all are empty.
        """
        if not paths:
            raise UserError("no shard to train on: the list of Parquet files is empty")
        self.columns, self.seed, self.loaders = columns, seed, loaders
        self.name = str(paths[0]) if len(paths) == 1 else f"{paths[0]} … {paths[-1]}"
        self.chunks = [chunk for path in paths for chunk in _chunks(str(path), columns)]
        self.rows = sum(chunk.rows for chunk in self.chunks)
        if not self.rows:
            raise UserError(f"{self.name}: nothing to train on (no rows)")
        self.vocabularies: Mapping[Kind, Vocabulary] = {}
        self._only: Pairs | None = None

    def texts(self) -> Iterator[pa.StringArray]:
        """Both columns of all shards, batch by batch, in order."""
        for chunk in self.chunks:
            for sides in _batches(chunk, self.columns):
                yield from sides[:2]

    def pools(self, epoch: int) -> list[list[Chunk]]:
        """The row groups of an epoch, in pools."""
        order = list(self.chunks)
        random.Random(f"{self.seed} {epoch}").shuffle(order)
        pools: list[list[Chunk]] = []
        room = 0
        for chunk in order:
            if chunk.rows > room:
                pools.append([])
                room = POOL
            pools[-1].append(chunk)
            room -= chunk.rows
        return pools

    def epoch(self, epoch: int, first: int = 0) -> Iterator[Pairs]:
        """The pools from number `first` on, in the ids of `vocabularies`."""
        pools = self.pools(epoch)
        if len(pools) == 1:  # fits into memory: tokenised once, for all epochs
            self._only = self._only or _read(self.chunks, self.columns, self.vocabularies)
            yield from [self._only][first:]
        elif not self.loaders:
            for pool in pools[first:]:
                yield _read(pool, self.columns, self.vocabularies)
        else:
            # Spawned, not forked: a fork of a process with torch's threads may hang.
            processes = ProcessPoolExecutor(self.loaders, multiprocessing.get_context("spawn"))
            ahead = deque[Future[Pairs]]()
            try:
                for pool in pools[first:]:
                    ahead.append(processes.submit(_read, pool, self.columns, self.vocabularies))
                    if len(ahead) > self.loaders:
                        yield ahead.popleft().result()
                while ahead:
                    yield ahead.popleft().result()
            finally:
                processes.shutdown(cancel_futures=True)


def _read(
    chunks: Sequence[Chunk], columns: tuple[str, str], vocabularies: Mapping[Kind, Vocabulary]
) -> Pairs:
    """The usable pairs of some row groups."""
    return stack(
        [
            learnable(left, right, vocabularies, sources)
            for chunk in chunks
            for left, right, sources in _batches(chunk, columns)
        ]
    )


def stack(blocks: Sequence[Pairs]) -> Pairs:
    """The pairs of all blocks, in order."""
    return Pairs(
        join_all([block.left for block in blocks]),
        join_all([block.right for block in blocks]),
        np.concatenate([block.keys for block in blocks], axis=1),
        _joined([block.sources for block in blocks]),
        sum(block.identical for block in blocks),
        sum(block.empty for block in blocks),
    )


def _joined(sources: Sequence[NDArray[np.uint64] | None]) -> NDArray[np.uint64] | None:
    """All sources; None if no block has any."""
    there = [block for block in sources if block is not None]
    return np.concatenate(there) if there else None


def learnable(
    left: pa.StringArray,
    right: pa.StringArray,
    vocabularies: Mapping[Kind, Vocabulary],
    sources: NDArray[np.uint64] | None = None,
) -> Pairs:
    """Two columns as pairs of ids, without those that are identical or have an empty side."""
    sides: list[Sentences] = [ids_by_kind(vocabularies, text) for text in (left, right)]
    kind, vocabulary = next(iter(vocabularies.items()))
    first, second = (side[kind] for side in sides)
    empty = np.minimum(first.lengths, second.lengths) < vocabulary.specials  # only tags
    keys = np.stack([fingerprints(first), fingerprints(second)])
    same = (keys[0] == keys[1]) & ~empty
    keep = np.flatnonzero(~same & ~empty)
    left_out = int(same.sum()), int(empty.sum())
    kept = None if sources is None else sources[keep]
    return Pairs(take_all(sides[0], keep), take_all(sides[1], keep), keys[:, keep], kept, *left_out)


def _shuffled(
    column: RaggedIds, chosen: NDArray[np.bool_], random: np.random.Generator, tags: bool
) -> RaggedIds:
    """The column with the ids of the chosen sentences in random order, except for tags."""
    row = np.repeat(np.arange(len(chosen)), column.lengths)
    length, position = column.lengths[row], positions(column.offsets)
    edge = int(tags)
    moves = chosen[row] & (position >= edge) & (position < length - edge)
    anywhere = (edge + random.random(len(row)) * (length - 2 * edge)) / length
    order = np.argsort(row + np.where(moves, anywhere, (position + 0.5) / length), kind="stable")
    return RaggedIds(column.ids[order], column.offsets)


def _chunks(path: str, columns: tuple[str, str]) -> list[Chunk]:
    with _opened(path) as file:
        names = file.schema_arrow.names
        for column in columns:
            if column not in names:
                raise UserError(f"{path}: no column {column!r}, there are {', '.join(names)}")
        metadata = file.metadata
        groups = range(metadata.num_row_groups)
        return [Chunk(path, group, metadata.row_group(group).num_rows) for group in groups]


def _batches(
    chunk: Chunk, columns: tuple[str, str]
) -> Iterator[tuple[pa.StringArray, pa.StringArray, NDArray[np.uint64] | None]]:
    """Both columns, and with several translations of a source (`candidate`) hashes of the ids."""
    with _opened(chunk.path) as file:
        several = {"candidate", "id"} <= set(file.schema_arrow.names)
        for batch in file.iter_batches(_ROWS, [chunk.group], [*columns, *["id"] * several]):
            sides = (batch.column(name).cast(pa.string()).fill_null("") for name in columns)
            yield (*sides, text_hashes(batch.column("id")) if several else None)


@contextmanager
def _opened(path: str) -> Iterator[pq.ParquetFile]:
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            yield file
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"{path}: cannot be read as Parquet ({reason})") from error
