"""The sample that `human_likeness` is trained on, and in which folds of the corpus its texts occur.

Two readings: pairs drawn by a hash of their ids; then, for the texts of the sample, the folds of
all pairs of the corpus that have the same text on either side, after normalisation. Memory is that
of the sample.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa

from beam_jobs.analysis.collect import Concatenate, collect
from beam_jobs.io.shards import Unit, read_shard
from beam_jobs.select import normalised
from beam_jobs.transforms.duplicates import row_hash
from beam_jobs.transforms.order_statistics import id_hash
from models.scorers.human_classifier import fold_of

VERSION = 1
"""Raised when the job draws or marks otherwise."""

PAIRS = 100_000
"""About so many pairs at most are drawn."""

_SIDES = ("reference", "translation")
_SAMPLE = pa.schema([("id", pa.string()), *((side, pa.string()) for side in _SIDES)])


class DrawSample(beam.PTransform):
    """Units in, one table out: id, both texts, and the folds of either, one bit a fold (uint8)."""

    def __init__(self, rows: int, seed: int):
        super().__init__()
        self.below = np.uint64(min(int(PAIRS / max(rows, 1) * 2**64), 2**64 - 1))
        self.seed = seed

    def expand(self, units: beam.PCollection) -> beam.PCollection:
        """Draw, then look for the texts that were drawn in the whole corpus."""
        below, seed = self.below, self.seed

        def draw(unit: Unit) -> pa.Table:
            table = read_shard(unit.shard, _SAMPLE.names).cast(_SAMPLE)
            drawn = id_hash(table["id"].combine_chunks(), seed) <= below
            return table.filter(pa.array(drawn))

        sample = (
            units
            | "Draw" >> beam.Map(draw)
            | "Together" >> beam.CombineGlobally(Concatenate(_SAMPLE))
            | "In order" >> beam.Map(lambda table: table.sort_by("id"))
        )
        texts = sample | "Texts" >> beam.Map(_hashes)
        folds = (
            units
            | "Mark" >> beam.Map(_mark, beam.pvalue.AsSingleton(texts))
            | "Any" >> beam.CombineGlobally(_any)
        )
        return sample | "With folds" >> beam.Map(_with_folds, beam.pvalue.AsSingleton(folds))


def run(units: Sequence[Unit], output: str, arguments: Sequence[str], *, seed: int) -> pa.Table:
    """Draw the sample of `units`; `output` is a folder for what passes on the way."""
    transform = DrawSample(sum(unit.rows for unit in units), seed)
    return collect("classifier", units, transform, output, arguments)


def _hashes(table: pa.Table) -> np.ndarray:
    """Hashes of all references, then of all translations: uint64 [2 * rows]."""
    return np.concatenate([row_hash(normalised(table[s].combine_chunks()))[:, 0] for s in _SIDES])


def _mark(unit: Unit, texts: np.ndarray) -> np.ndarray:
    """The folds of a shard's pairs in which each of `texts` occurs: uint8 bits, as many."""
    table = read_shard(unit.shard, _SIDES)
    here = _hashes(table)
    bits = np.uint8(1) << np.tile(fold_of(table["reference"].combine_chunks()), 2)
    order = np.argsort(texts, kind="stable")
    ordered = texts[order]
    # Equal texts of the sample stand together: the first one takes the marks for all of them.
    first = np.searchsorted(ordered, here)
    found = np.flatnonzero(first < len(ordered))
    found = found[ordered[first[found]] == here[found]]
    marks = np.zeros(len(texts), np.uint8)
    np.bitwise_or.at(marks, first[found], bits[found])
    marks = marks[np.searchsorted(ordered, ordered)]
    result = np.empty_like(marks)
    result[order] = marks
    return result


def _any(many: Iterable[np.ndarray]) -> Any:
    """All marks together; 0 of no shard."""
    total: Any = np.uint8(0)
    for marks in many:
        total = total | marks
    return total


def _with_folds(sample: pa.Table, folds: np.ndarray) -> pa.Table:
    parts = np.split(folds, 2) if len(sample) else [np.empty(0, np.uint8)] * 2
    for side, part in zip(_SIDES, parts, strict=True):
        sample = sample.append_column(f"{side}_folds", pa.array(part, pa.uint8()))
    return sample
