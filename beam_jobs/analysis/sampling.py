"""Sampling of pairs for experiments on a small part of the corpus; the same on any runner.

Rows are sampled by a hash of their normalised texts and a seed. A pair that occurs several times is
therefore as likely to be sampled as any other, and is taken once. A larger share is sampled of a
decile in which few rows meet the criteria.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import apache_beam as beam
import numpy as np
import pyarrow as pa
import xxhash

from paraloom.beam_jobs.analysis.collect import collect, concatenate
from paraloom.beam_jobs.io import schema
from paraloom.beam_jobs.io.shards import Unit, read_shard
from paraloom.beam_jobs.select import Criteria, decide
from paraloom.beam_jobs.transforms.duplicates import row_hash
from paraloom.models.hashing import splitmix64, threshold

VERSION = 2
"""Bump when the job samples other rows from the same input."""

_MARGIN = 1.5  # rows sampled of a decile, over rows requested: their number is random


@dataclass(frozen=True, kw_only=True)
class DecileSample:
    """The rows sampled with each seed."""

    table: pa.Table
    """`hash` (of the normalised texts, uint64), `id`, both texts and the deciles, ordered by hash
    and id; the rows of all seeds."""
    thresholds: Mapping[str, np.ndarray]
    """scorer → [10] uint64: a seed samples the rows of a decile of which the hash, mixed with the
    seed, is at most this."""

    def rows(
        self,
        seed: int,
        scorer: str | None = None,
        deciles: Sequence[int] = (),
        *,
        most: int | None = None,
    ) -> np.ndarray:
        """The rows of `table` that belong to `seed`, int64, in order and without duplicates.

        Args:
            scorer: the score of `deciles`; without deciles, all rows.
            most: the largest number of rows, chosen at random; a larger number keeps the rows of a
                smaller one. Up to the number that the sample was made for, every row of these
                deciles in the corpus is equally likely: the rows with the lowest keys have all been
                sampled.
        """
        scorer = scorer or next(iter(self.thresholds))
        keys, decile = splitmix64(self._hashes, seed), self.table[schema.decile(scorer)].to_numpy()
        fits = np.isin(decile, deciles or range(10)) & (keys <= self.thresholds[scorer][decile])
        rows = np.flatnonzero(fits)
        found = self._hashes[rows]
        rows = rows[np.append(True, found[1:] != found[:-1])] if len(rows) else rows
        if most is not None and most < len(rows):
            rows = np.sort(rows[np.argpartition(keys[rows], most)[:most]])
        return rows

    def texts(self, rows: np.ndarray) -> tuple[pa.StringArray, pa.StringArray]:
        """References and translations of some rows."""
        taken = self.table.select(["reference", "translation"]).take(pa.array(rows))
        return taken["reference"].combine_chunks(), taken["translation"].combine_chunks()

    def digest(self, rows: np.ndarray) -> str:
        """A checksum of the texts of some rows, in their order."""
        return xxhash.xxh3_128_hexdigest(self._texts_hashes[rows].tobytes())

    def counts(self, seeds: Sequence[int], scorer: str) -> np.ndarray:
        """Rows of each seed in each decile, without duplicates: int64 [seeds, 10]."""
        return np.array([[len(self.rows(s, scorer, (k,))) for k in range(10)] for s in seeds])

    def shares(self, scorer: str) -> np.ndarray:
        """The share that was sampled of the rows of each decile: float64 [10]."""
        return (self.thresholds[scorer].astype(float) + 1) / 2**64

    @cached_property
    def _hashes(self) -> np.ndarray:
        return np.asarray(self.table["hash"].to_numpy())

    @cached_property
    def _texts_hashes(self) -> np.ndarray:
        return row_hash(*(self.table[s].combine_chunks() for s in ("reference", "translation")))


def _schema(thresholds: Mapping[str, np.ndarray]) -> pa.Schema:
    texts = dict.fromkeys(("id", "reference", "translation"), pa.string())
    deciles = {schema.decile(scorer): pa.int8() for scorer in thresholds}
    return pa.schema({"hash": pa.uint64(), **texts, **deciles})


def _sample(
    unit: Unit, criteria: Criteria, seeds: Sequence[int], thresholds: Mapping[str, np.ndarray]
) -> pa.Table:
    """The rows of a shard that are in the sample of any seed, and that `criteria` accept."""
    target = _schema(thresholds)
    names = target.names[1:]
    table = read_shard(unit.shard, list(dict.fromkeys([*criteria.columns, *names])))
    reasons, hashes = decide(table, criteria)
    accepted = table.filter(pa.array(reasons == "")).select(names)
    found = hashes[:, 0]
    highest = np.zeros(len(found), np.uint64)
    for scorer, by_decile in thresholds.items():
        deciles = accepted[schema.decile(scorer)].to_numpy()
        highest = np.maximum(highest, by_decile[deciles])
    sampled = np.zeros(len(found), bool)
    for seed in seeds:
        sampled |= splitmix64(found, seed) <= highest
    accepted = accepted.add_column(0, target.field("hash"), pa.array(found))
    return accepted.filter(pa.array(sampled)).cast(target)


def run(
    units: Sequence[Unit],
    output: str,
    criteria: Criteria,
    scorers: Sequence[str],
    arguments: Sequence[str],
    *,
    most: int,
    seeds: Sequence[int],
) -> DecileSample:
    """Sample at least `most` rows of every decile, or all it has, for each of `seeds`.

    Where too few rows of a decile meet the criteria, another pass over the corpus samples a larger
    share of it.

    Args:
        output: a folder for intermediate files.
        criteria: what a row must meet by itself; their deciles, size and seed are ignored.
        scorers: the scores of which the deciles are sampled.
    """
    share = 10 * _MARGIN * most / max(sum(unit.rows for unit in units), 1)
    order = [("hash", "ascending"), ("id", "ascending")]
    thresholds = {scorer: np.full(10, threshold(share)) for scorer in scorers}
    while True:
        sampling = (
            "Sample"
            >> beam.Map(_sample, replace(criteria, deciles=None), tuple(seeds), dict(thresholds))
            | "Together" >> beam.CombineGlobally(concatenate(_schema(thresholds)))
            | "In order" >> beam.Map(lambda table: table.sort_by(order))
        )
        table = collect("sample", units, sampling, output, arguments)
        sample = DecileSample(table=table, thresholds=dict(thresholds))
        for scorer, bounds in thresholds.items():
            found = sample.counts(seeds, scorer).min(axis=0).tolist()
            raised = [_raised(int(bound), n, most) for bound, n in zip(bounds, found, strict=True)]
            thresholds[scorer] = np.array(raised, np.uint64)
        if all(np.array_equal(thresholds[s], sample.thresholds[s]) for s in scorers):
            return sample


def _raised(highest: int, found: int, most: int) -> int:
    """The next threshold of a decile: a higher one if it gave fewer than `most` rows."""
    if found >= most:
        return highest
    times = max(_MARGIN * most / (found + 10), 2)  # a small count is a poor estimate of the rest
    return int(threshold(times * (highest + 1) / 2**64))
