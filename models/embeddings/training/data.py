"""Training pairs as ids, read from Parquet files one pool at a time."""

import multiprocessing
import os
import random
import signal
import threading
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

from paraloom.models.embeddings.ragged_columns import (
    Kind,
    Sentences,
    fingerprints,
    join_all,
    take_all,
)
from paraloom.models.embeddings.training.trainer import Pool
from paraloom.models.embeddings.vocabulary import Vocabulary, ids_by_kind, tag_count
from paraloom.models.errors import UserError, in_one_line, reading
from paraloom.models.hashing import text_hashes

POOL = 200_000  # pairs shuffled together and kept in memory
_ROWS = 20_000  # rows tokenised per batch


@dataclass(frozen=True, eq=False)
class Pairs(Pool["Pairs"]):
    """n pairs of sentences as ids."""

    sides: Sequence[Sentences]
    """n left sentences, n right sentences, and optionally n hard negatives, which may be empty."""
    keys: NDArray[np.uint64]  # [2, n]: hashes of the left and right sentences
    sources: NDArray[np.uint64] | None = None
    """[n]: hashes. All sentences of pairs with equal hashes are paraphrases of each other."""
    identical: int = 0  # pairs left out because both sides are equal after tokenisation
    empty: int = 0  # pairs left out because a side has no token

    def __len__(self) -> int:
        return int(self.keys.shape[1])

    def take(self, rows: NDArray[np.int64]) -> Self:
        """Return the pairs with the indices `rows`, in this order."""
        sources = None if self.sources is None else self.sources[rows]
        return type(self)(
            [take_all(side, rows) for side in self.sides], self.keys[:, rows], sources
        )


class PairColumns(NamedTuple):
    """Names of the text columns to read from Parquet files."""

    first: str
    second: str
    negative: str | None = None
    same_first: bool = False  # whether all texts of pairs with equal first texts are paraphrases

    @property
    def texts(self) -> list[str]:
        """Names of all columns that are set."""
        return [name for name in (self.first, self.second, self.negative) if name]


class Chunk(NamedTuple):
    """A row group of a Parquet file."""

    path: str
    group: int
    rows: int


class PairSource:
    """Sentence pairs in Parquet files, read one pool at a time. A pool is a random selection of row
    groups. The selection depends only on the seed and the epoch, so training can resume at any
    pool."""

    ahead = True  # whether another process tokenises the next pool in advance

    def __init__(
        self, paths: Sequence[str | Path], columns: tuple[str, str] | PairColumns, *, seed: int = 0
    ) -> None:
        if not paths:
            raise UserError("no shard to train on: the list of Parquet files is empty")
        self.columns, self.seed = PairColumns(*columns), seed
        self.name = str(paths[0]) if len(paths) == 1 else f"{paths[0]} … {paths[-1]}"
        self.chunks = list[Chunk]()
        for path in map(str, paths):
            with opened_parquet(path) as file:
                groups = map(file.metadata.row_group, range(file.num_row_groups))
                chunks = (Chunk(path, i, of.num_rows) for i, of in enumerate(groups))
                self.chunks += [chunk for chunk in chunks if chunk.rows]
        self.rows = sum(chunk.rows for chunk in self.chunks)
        if not self.rows:
            raise UserError(f"{self.name}: no rows to train on")
        self.vocabularies: Mapping[Kind, Vocabulary] = {}
        self._only: Pairs | None = None

    def texts(self) -> Iterator[pa.StringArray]:
        """Yield all texts in file order. Each item is one text column of a batch of rows."""
        for chunk in self.chunks:
            for texts, _ in _batches(chunk, self.columns):
                yield from texts

    def pools(self, epoch: int) -> list[list[Chunk]]:
        """Return the row groups of each pool of an epoch."""
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
        """Yield the pools of an epoch from index `first` on. `vocabularies` must be set."""
        pools = self.pools(epoch)
        if len(pools) == 1:
            # A single pool fits into memory: tokenise it only once for all epochs.
            self._only = self._only or _read(self.chunks, self.columns, self.vocabularies)
            yield from [self._only][first:]
        elif not self.ahead:
            for pool in pools[first:]:
                yield _read(pool, self.columns, self.vocabularies)
        else:
            # A forked process may hang if torch has threads.
            context = multiprocessing.get_context("spawn")
            processes = ProcessPoolExecutor(1, context, initializer=_end_with_parent)
            waiting: list[Future[Pairs]] = []
            try:
                for pool in pools[first:]:
                    waiting.append(processes.submit(_read, pool, self.columns, self.vocabularies))
                    if len(waiting) > 1:
                        yield waiting.pop(0).result()
                for last in waiting:
                    yield last.result()
            finally:
                processes.shutdown(cancel_futures=True)


def _end_with_parent() -> None:
    """End this process silently when its parent ends, or on Ctrl-C if Ctrl-C is not ignored."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    def wait() -> None:
        if parent := multiprocessing.parent_process():
            parent.join()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def _read(
    chunks: Sequence[Chunk], columns: PairColumns, vocabularies: Mapping[Kind, Vocabulary]
) -> Pairs:
    return stack(
        [
            learnable(left, right, vocabularies, sources, *negative)
            for chunk in chunks
            for (left, right, *negative), sources in _batches(chunk, columns)
        ]
    )


def stack(blocks: Sequence[Pairs]) -> Pairs:
    """Concatenate blocks of pairs."""
    sources = [block.sources for block in blocks if block.sources is not None]
    return Pairs(
        [join_all(side) for side in zip(*(block.sides for block in blocks), strict=True)],
        np.concatenate([block.keys for block in blocks], axis=1),
        np.concatenate(sources) if sources else None,
        sum(block.identical for block in blocks),
        sum(block.empty for block in blocks),
    )


def learnable(
    left: pa.StringArray,
    right: pa.StringArray,
    vocabularies: Mapping[Kind, Vocabulary],
    sources: NDArray[np.uint64] | None = None,
    negative: pa.StringArray | None = None,
) -> Pairs:
    """Convert texts to ids. Pairs with equal sides or an empty side are left out. A negative that
    equals a side of its pair is replaced by an empty sentence."""
    sides = [ids_by_kind(vocabularies, text) for text in (left, right)]
    kind, vocabulary = next(iter(vocabularies.items()))
    first, second = (side[kind] for side in sides)
    empty = np.minimum(first.lengths, second.lengths) <= tag_count(vocabulary.tags)
    keys = np.stack([fingerprints(first), fingerprints(second)])
    same = (keys[0] == keys[1]) & ~empty
    keep = np.flatnonzero(~same & ~empty)
    left_out = int(same.sum()), int(empty.sum())
    kept = None if sources is None else sources[keep]
    taken = [take_all(side, keep) for side in sides]
    if negative is not None:
        none = ids_by_kind(vocabularies, pa.array([""]))
        found = join_all([ids_by_kind(vocabularies, negative), none])
        same = (fingerprints(found[kind])[:-1] == keys).any(axis=0)
        taken.append(take_all(found, np.where(same, len(same), np.arange(len(same)))[keep]))
    return Pairs(taken, keys[:, keep], kept, *left_out)


def _batches(
    chunk: Chunk, columns: PairColumns
) -> Iterator[tuple[list[pa.StringArray], NDArray[np.uint64] | None]]:
    with opened_parquet(chunk.path) as file:
        several = {"candidate", "id"} <= set(file.schema_arrow.names)
        names = [*columns.texts, *["id"] * several]
        for batch in file.iter_batches(_ROWS, [chunk.group], names):
            texts = [batch.column(name).cast(pa.string()).fill_null("") for name in columns.texts]
            hashes = text_hashes(batch.column("id")) if several else None
            if columns.same_first:
                hashes = text_hashes(texts[0])
            yield texts, hashes


@contextmanager
def opened_parquet(path: str) -> Iterator[pq.ParquetFile]:
    """Open a Parquet file. Errors in the block name the file."""
    with (
        reading(path),
        in_one_line("cannot be read"),
        pq.ParquetFile(path, page_checksum_verification=True) as file,
    ):
        yield file
