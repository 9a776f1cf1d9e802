"""Pairs for training: read from Parquet shards a pool at a time, shuffled, as flat ids."""

from __future__ import annotations

import multiprocessing
import random
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from models.embeddings.ragged_columns import Sentences, fingerprints, join_all, take_all
from models.embeddings.vocabulary import FlatIds, Kind, Vocabulary, ids_by_kind
from models.errors import UserError

POOL = 200_000  # pairs shuffled together: what is held in memory
_ROWS = 20_000  # rows tokenised at once


@dataclass(frozen=True, eq=False)
class Pairs:
    """n pairs of sentences as ids, and how many were left out when they were read."""

    left: Sentences
    right: Sentences
    keys: np.ndarray  # uint64 [2, n]: equal for equal sentences, of either side
    identical: int = 0  # both sides the same after tokenisation: nothing to learn from
    empty: int = 0  # a side without a token

    def __len__(self) -> int:
        return self.keys.shape[1]

    def take(self, rows: np.ndarray) -> Pairs:
        """The pairs of `rows`, in their order."""
        return Pairs(take_all(self.left, rows), take_all(self.right, rows), self.keys[:, rows])

    def scrambled(self, share: float, random: np.random.Generator, *, tags: bool) -> Pairs:
        """Both sentences of a random `share` of pairs with their words in random order (W&G 4.2).

        Trigrams stay as they are: their mean does not depend on the order of the words. So do tags.
        """
        chosen = random.random(len(self)) < share
        sides = [
            {**side, "words": _shuffled(side["words"], chosen, random, tags)}
            if "words" in side
            else side
            for side in (self.left, self.right)
        ]
        return Pairs(sides[0], sides[1], self.keys)


class Source(Protocol):
    """Where pairs come from: an epoch is a row of pools, each small enough for memory."""

    rows: int
    """Pairs in an epoch, left-out ones included."""
    name: str
    """For messages."""

    def epoch(self, epoch: int, first: int = 0) -> Iterator[Pairs]:
        """The pools of an epoch from number `first` on; the same at every call."""


class Memory:
    """Pairs that are all in memory: one pool."""

    def __init__(self, pairs: Pairs, name: str) -> None:
        self.pairs, self.name = pairs, name
        self.rows = len(pairs) + pairs.identical + pairs.empty

    def epoch(self, epoch: int, first: int = 0) -> Iterator[Pairs]:
        """The one pool, always the same."""
        if first == 0:
            yield self.pairs


class Chunk(NamedTuple):
    """A row group of a Parquet file."""

    path: str
    group: int
    rows: int


class Shards:
    """Two text columns of Parquet files, never all of them in memory.

    An epoch visits the row groups in an order of its own and puts as many together as make a pool;
    the trainer shuffles within a pool. What a pool holds depends on the seed and the epoch alone,
    so that training can go on at any of them.
    """

    def __init__(
        self,
        paths: Sequence[str | Path],
        columns: tuple[str, str],
        *,
        seed: int = 0,
        loaders: int = 0,
    ) -> None:
        """Read the shards' footers.

        Args:
            paths: the files.
            columns: names of the two sides.
            seed: of the order.
            loaders: processes that read and tokenise the next pools meanwhile; 0 does it here.

        Raises:
            UserError: there is no shard, one cannot be read, lacks a column, or all are empty.
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
        """Both columns of everything, batch by batch, in order."""
        for chunk in self.chunks:
            for sides in _batches(chunk, self.columns):
                yield from sides

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
        if len(pools) == 1:  # it fits into memory: tokenised once, whatever the epoch
            self._only = self._only or _read(self.chunks, self.columns, self.vocabularies)
            yield from [self._only][first:]
        elif not self.loaders:
            for pool in pools[first:]:
                yield _read(pool, self.columns, self.vocabularies)
        else:
            # Started anew, not forked: a fork of a process with torch's threads may hang.
            start = multiprocessing.get_context("spawn")
            settings = self.columns, dict(self.vocabularies)
            processes = ProcessPoolExecutor(self.loaders, start, _keep, settings)
            ahead = deque[Future[Pairs]]()
            try:
                for pool in pools[first:]:
                    ahead.append(processes.submit(_read_kept, pool))
                    if len(ahead) > self.loaders:
                        yield ahead.popleft().result()
                while ahead:
                    yield ahead.popleft().result()
            finally:
                processes.shutdown(cancel_futures=True)


_kept: tuple[tuple[str, str], Mapping[Kind, Vocabulary]]  # what a loader process was given


def _keep(*settings: Any) -> None:
    global _kept
    _kept = settings  # type: ignore[assignment]


def _read_kept(chunks: Sequence[Chunk]) -> Pairs:
    return _read(chunks, *_kept)


def _read(
    chunks: Sequence[Chunk], columns: tuple[str, str], vocabularies: Mapping[Kind, Vocabulary]
) -> Pairs:
    """The pairs of some row groups that can be learnt from."""
    return stack(
        [
            learnable(left, right, vocabularies)
            for chunk in chunks
            for left, right in _batches(chunk, columns)
        ]
    )


def stack(parts: Sequence[Pairs]) -> Pairs:
    """All pairs of all parts, in order."""
    return Pairs(
        join_all([part.left for part in parts]),
        join_all([part.right for part in parts]),
        np.concatenate([part.keys for part in parts], axis=1),
        sum(part.identical for part in parts),
        sum(part.empty for part in parts),
    )


def learnable(
    left: pa.StringArray, right: pa.StringArray, vocabularies: Mapping[Kind, Vocabulary]
) -> Pairs:
    """Two columns as pairs of ids, without those that are identical or have an empty side."""
    sides: list[Sentences] = [ids_by_kind(vocabularies, text) for text in (left, right)]
    kind, vocabulary = next(iter(vocabularies.items()))
    first, second = (side[kind] for side in sides)
    empty = np.minimum(first.lengths, second.lengths) <= (2 if vocabulary.tags else 0)
    keys = np.stack([fingerprints(first), fingerprints(second)])
    same = (keys[0] == keys[1]) & ~empty
    keep = np.flatnonzero(~same & ~empty)
    left_out = int(same.sum()), int(empty.sum())
    return Pairs(take_all(sides[0], keep), take_all(sides[1], keep), keys[:, keep], *left_out)


def _shuffled(
    flat: FlatIds, chosen: np.ndarray, random: np.random.Generator, tags: bool
) -> FlatIds:
    """The chosen sentences with their ids in random order, between their tags if they have any."""
    row = np.repeat(np.arange(len(chosen)), flat.lengths)
    length = flat.lengths[row]
    position = np.arange(len(row)) - flat.offsets[row]
    edge = int(tags)
    moves = chosen[row] & (position >= edge) & (position < length - edge)
    anywhere = (edge + random.random(len(row)) * (length - 2 * edge)) / length
    order = np.argsort(row + np.where(moves, anywhere, (position + 0.5) / length), kind="stable")
    return FlatIds(flat.ids[order], flat.offsets)


def _chunks(path: str, columns: tuple[str, str]) -> list[Chunk]:
    with _reading(path), _open(path) as file:
        names = file.schema_arrow.names
        for column in columns:
            if column not in names:
                raise UserError(f"{path}: no column {column!r}, there are {', '.join(names)}")
        metadata = file.metadata
        groups = range(metadata.num_row_groups)
        return [Chunk(path, group, metadata.row_group(group).num_rows) for group in groups]


def _batches(
    chunk: Chunk, columns: tuple[str, str]
) -> Iterator[tuple[pa.StringArray, pa.StringArray]]:
    with _reading(chunk.path), _open(chunk.path) as file:
        for batch in file.iter_batches(_ROWS, [chunk.group], list(columns)):
            yield tuple(batch.column(name).cast(pa.string()).fill_null("") for name in columns)


def _open(path: str) -> pq.ParquetFile:
    return pq.ParquetFile(path, page_checksum_verification=True)


@contextmanager
def _reading(path: str) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"{path}: cannot be read as Parquet ({reason})") from error
