"""Exact quantiles of a distributed column, by radix selection in four passes.

Rows are ordered by (score, hash of id). Each pass counts one digit of that key among the rows that
share the digits found so far, and so finds the next digit at every rank. The digits are the score's
high 16 bits, its low 16 bits, the hash's high 16 bits, and the whole hash, which few of the
remaining rows share. Counts add up in any order, so the result is the same on any runner.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa

from models.hashing import text_hashes

LEVELS = 4

Counts = dict[tuple[str, tuple[int, ...]], tuple[np.ndarray, np.ndarray]]
"""(score, digits so far) → the next digits that occur, and the count of each."""


@dataclass(frozen=True, slots=True)
class Column:
    """One score of a shard as sortable keys: `score` uint32 [n], and the `ids` of the rows."""

    score: np.ndarray
    ids: pa.Array


@dataclass(frozen=True, slots=True)
class Target:
    """A rank to find: the key's digits so far, and the rank among the rows that share them."""

    digits: tuple[int, ...]
    rank: int

    @property
    def key(self) -> tuple[int, int]:
        """(score, hash) of the row at the rank, once all digits are known."""
        high, low, _, hashed = self.digits
        return high << 16 | low, hashed


Targets = dict[str, list[Target]]
ReadColumns = Callable[[Any], dict[str, Column]]
Ranks = Callable[[int], list[int]]


def sortable(score: np.ndarray) -> np.ndarray:
    """Map float32 [n] to uint32 [n] in the same order; −0 and 0 are equal.

    >>> list(np.argsort(sortable(np.array([0.5, -2.0, 0.0], np.float32))))
    [np.int64(1), np.int64(2), np.int64(0)]
    """
    bits = (score.astype(np.float32) + np.float32(0)).view(np.uint32)
    negative = bits >> 31 == 1
    return np.where(negative, ~bits, bits | np.uint32(1 << 31))


def count(columns: dict[str, Column], targets: Targets | None, seed: int = 0) -> Counts:
    """Count the next digit of one shard's keys among the rows that share a target's digits."""
    counts: Counts = {}
    for name, column in columns.items():
        if targets is None:
            counts[name, ()] = _occurrences((column.score >> 16).astype(np.uint16))
            continue
        for digits in {target.digits for target in targets.get(name, [])}:
            if len(digits) == 1:
                found = column.score[column.score >> 16 == digits[0]].astype(np.uint16)
            else:
                same = column.score == (digits[0] << 16 | digits[1])
                if not same.any():
                    continue
                found = text_hashes(column.ids.filter(pa.array(same)), seed)
                if len(digits) == 2:
                    found = (found >> np.uint64(48)).astype(np.uint16)
                else:
                    found = found[found >> np.uint64(48) == digits[2]]
            if len(found):
                counts[name, digits] = _occurrences(found)
    return counts


def merge(many: Iterable[Counts]) -> Counts:
    """Add up counts."""
    groups: dict[tuple[str, tuple[int, ...]], list[tuple[np.ndarray, np.ndarray]]] = {}
    for counts in many:
        for key, value in counts.items():
            groups.setdefault(key, []).append(value)
    merged = {}
    for key, values in groups.items():
        if len(values) == 1:
            merged[key] = values[0]
            continue
        digits, where = np.unique(np.concatenate([v[0] for v in values]), return_inverse=True)
        totals = np.zeros(len(digits), np.uint64)
        np.add.at(totals, where, np.concatenate([v[1] for v in values]))
        merged[key] = digits, _narrowed(totals)
    return merged


def narrow(counts: Counts, targets: Targets | None, ranks: Ranks) -> Targets:
    """Fix the next digit of every target, from the counts over the whole corpus."""
    if targets is None:
        targets = {}
        for (name, _), (_, totals) in counts.items():
            rows = int(totals.sum())
            targets[name] = [Target((), rank) for rank in ranks(rows) if 0 <= rank < rows]
    result: Targets = {}
    for name, of_score in targets.items():
        result[name] = []
        for target in of_score:
            digits, totals = counts[name, target.digits]
            upto = np.cumsum(totals)
            at = int(np.searchsorted(upto, target.rank, side="right"))
            before = int(upto[at - 1]) if at else 0
            result[name].append(Target((*target.digits, int(digits[at])), target.rank - before))
    return result


def position(column: Column, targets: list[Target], seed: int = 0) -> np.ndarray:
    """How many targets' keys are at or below each row's key, int8 [n]."""
    result = np.zeros(len(column.score), np.int8)
    for score, hashed in (target.key for target in targets):
        result += column.score > score
        tied = np.flatnonzero(column.score == score)
        if len(tied):
            result[tied] += text_hashes(column.ids.take(pa.array(tied)), seed) >= np.uint64(hashed)
    return result


class OrderStatistics(beam.PTransform):
    """Units in, one element out: the `Targets` at `ranks(n)` of every score, n its rows.

    Args:
        read: reads a unit's columns; called once per pass.
        ranks: maps the number of rows to the ranks to find (0 is the lowest row).
    """

    def __init__(self, read: ReadColumns, ranks: Ranks, *, seed: int = 0):
        super().__init__()
        self.read, self.ranks, self.seed = read, ranks, seed

    def expand(self, units: beam.PCollection) -> beam.PCollection:
        """Four passes, each with the targets of the previous one as a side input."""
        read, ranks, seed = self.read, self.ranks, self.seed

        def count_digit(unit: Any, targets: Targets | None) -> Counts:
            return count(read(unit), targets, seed)

        targets = None
        for level in range(LEVELS):
            before = None if targets is None else beam.pvalue.AsSingleton(targets)
            counts = units | f"Count digit {level}" >> beam.Map(count_digit, before)
            total = counts | f"Add digit {level}" >> beam.CombineGlobally(merge)
            targets = total | f"Narrow digit {level}" >> beam.Map(narrow, before, ranks)
        return targets


def _occurrences(digits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    found, totals = np.unique(digits, return_counts=True)
    return found, _narrowed(totals)


def _narrowed(totals: np.ndarray) -> np.ndarray:
    """The smallest sufficient type: a large corpus has millions of counts, which workers send."""
    return totals.astype(np.uint32 if totals.max(initial=0) < 1 << 32 else np.uint64)
