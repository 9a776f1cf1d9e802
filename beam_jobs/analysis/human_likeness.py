"""The training sample of `human_likeness`, and the folds of the corpus in which its texts occur.

Two passes: the first samples pairs by a hash of their ids; the second finds, for each text of the
sample, the folds of all pairs that have the same normalised text on either side. Memory is
proportional to the sample.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from operator import or_
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa

from paraloom.beam_jobs.analysis.collect import collect, concatenate
from paraloom.beam_jobs.io.shards import Unit, read_shard
from paraloom.beam_jobs.transforms.duplicates import normalised, row_hash
from paraloom.models.hashing import text_hashes, threshold
from paraloom.models.scorers.learned.human_classifier import fold_of

VERSION = 1
"""Bump when the sample or its folds change for the same input."""

PAIRS = 100_000
"""Approximate maximum size of the sample, in pairs."""

_SIDES = ("reference", "translation")
_SAMPLE = pa.schema([("id", pa.string()), *((side, pa.string()) for side in _SIDES)])


class SampleWithFolds(beam.PTransform):
    """Units in, one table out: id, both texts, and the folds of each, one bit per fold (uint8)."""

    def __init__(self, rows: int, seed: int):
        super().__init__()
        self.threshold, self.seed = threshold(PAIRS / max(rows, 1)), seed

    def expand(self, units: beam.PCollection) -> beam.PCollection:
        """Sample pairs, then search the whole corpus for their texts."""
        highest, seed = self.threshold, self.seed
        order = [(name, "ascending") for name in _SAMPLE.names]  # candidates share their id

        def take(unit: Unit) -> pa.Table:
            table = read_shard(unit.shard, _SAMPLE.names).cast(_SAMPLE)
            sampled = text_hashes(table["id"].combine_chunks(), seed) <= highest
            return table.filter(pa.array(sampled))

        sample = (
            units
            | "Sample" >> beam.Map(take)
            | "Together" >> beam.CombineGlobally(concatenate(_SAMPLE))
            | "In order" >> beam.Map(lambda table: table.sort_by(order))
        )
        texts = sample | "Texts" >> beam.Map(_hashes)
        folds = (
            units
            | "Mark" >> beam.Map(_mark, beam.pvalue.AsSingleton(texts))
            | "Any" >> beam.CombineGlobally(_any)
        )
        return sample | "With folds" >> beam.Map(_with_folds, beam.pvalue.AsSingleton(folds))


def run(units: Sequence[Unit], output: str, arguments: Sequence[str], *, seed: int) -> pa.Table:
    """Sample pairs of `units`; `output` is a folder for intermediate files."""
    transform = SampleWithFolds(sum(unit.rows for unit in units), seed)
    return collect("classifier", units, transform, output, arguments)


def _hashes(table: pa.Table) -> np.ndarray:
    """Hashes of all references, followed by all translations: uint64 [2 * rows]."""
    return np.concatenate([row_hash(normalised(table[s].combine_chunks()))[:, 0] for s in _SIDES])


def _mark(unit: Unit, texts: np.ndarray) -> np.ndarray:
    """The folds of a shard's pairs in which each text occurs: uint8 [len(texts)], one bit each."""
    table = read_shard(unit.shard, _SIDES)
    here = _hashes(table)
    bits = np.uint8(1) << np.tile(fold_of(table["reference"].combine_chunks()), 2)
    distinct, of_text = np.unique(texts, return_inverse=True)
    place = np.searchsorted(distinct, here)
    found = np.flatnonzero(place < len(distinct))
    found = found[distinct[place[found]] == here[found]]
    marks = np.zeros(len(distinct), np.uint8)
    np.bitwise_or.at(marks, place[found], bits[found])
    return np.asarray(marks[of_text])


def _any(many: Iterable[np.ndarray]) -> Any:
    """The union of all bits; 0 if there is no shard."""
    return reduce(or_, many, np.uint8(0))


def _with_folds(sample: pa.Table, folds: np.ndarray) -> pa.Table:
    parts = np.split(folds, 2) if len(sample) else [np.empty(0, np.uint8)] * 2
    for side, part in zip(_SIDES, parts, strict=True):
        sample = sample.append_column(f"{side}_folds", pa.array(part, pa.uint8()))
    return sample
