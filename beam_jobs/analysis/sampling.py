"""A small corpus drawn from a large one, to try things on: the same on any runner.

Rows are drawn by a hash of their normalised texts and a seed. So a pair that occurs several times
is in the draw or not, but never more likely in it, and is taken once. Of a decile with few rows
that stand, a larger share is drawn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import apache_beam as beam
import numpy as np
import pyarrow as pa
import xxhash

from beam_jobs.analysis.collect import Concatenate, collect
from beam_jobs.io import schema
from beam_jobs.io.shards import Unit, read_shard
from beam_jobs.select import Criteria, judge
from beam_jobs.transforms.duplicates import row_hash

VERSION = 2
"""Raised when the job draws otherwise."""

_ROOM = 1.5  # times as many rows are drawn of a decile as are wanted: it is chance how many come


@dataclass(frozen=True, kw_only=True)
class Draw:
    """What was drawn, once a seed: each seed draws anew.

    Attributes:
        table: `hash` (of the normalised texts, uint64), `id`, both texts and the deciles, ordered
            by hash and id; the rows of all seeds.
        below: scorer → [10] uint64: of a decile, a seed's rows are those of which the hash, mixed
            with the seed, is at most this.
    """

    table: pa.Table
    below: Mapping[str, np.ndarray]

    def rows(
        self,
        seed: int,
        scorer: str | None = None,
        deciles: Sequence[int] = (),
        *,
        most: int | None = None,
    ) -> np.ndarray:
        """The rows of `table` that `seed` drew, int64, without repeats and in their order.

        Args:
            scorer: whose `deciles` count; without them the rows of all.
            most: of these only so many, at random; the more one asks for, the more are the same.
                Up to as many as the draw was made for, every row of these deciles in the corpus is
                as likely among them as any other: those with the lowest keys have all been drawn.
        """
        scorer = scorer or next(iter(self.below))
        keys, decile = mixed(self._hashes, seed), self.table[schema.decile(scorer)].to_numpy()
        stands = np.isin(decile, deciles or range(10)) & (keys <= self.below[scorer][decile])
        rows = np.flatnonzero(stands)
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
        """How many rows each seed drew of each decile, without repeats: int64 [seeds, 10]."""
        return np.array([[len(self.rows(s, scorer, (k,))) for k in range(10)] for s in seeds])

    def shares(self, scorer: str) -> np.ndarray:
        """Which share of the rows of each decile that stand was drawn: float64 [10]."""
        return (self.below[scorer].astype(float) + 1) / 2**64

    @cached_property
    def _hashes(self) -> np.ndarray:
        return self.table["hash"].to_numpy()

    @cached_property
    def _texts_hashes(self) -> np.ndarray:
        return row_hash(*(self.table[s].combine_chunks() for s in ("reference", "translation")))


class DrawRows(beam.PTransform):
    """Units in, the table of a `Draw` out. What `criteria` reject for itself is not drawn."""

    def __init__(self, criteria: Criteria, seeds: Sequence[int], below: Mapping[str, np.ndarray]):
        super().__init__()
        self.criteria, self.seeds, self.below = criteria, tuple(seeds), below
        self.form = pa.schema(
            [
                pa.field("hash", pa.uint64()),
                *(pa.field(name, pa.string()) for name in ("id", "reference", "translation")),
                *(pa.field(schema.decile(scorer), pa.int8()) for scorer in below),
            ]
        )

    def expand(self, units: beam.PCollection) -> beam.PCollection:
        """Judge and draw shard by shard, then bring the rows together."""
        order = [("hash", "ascending"), ("id", "ascending")]
        return (
            units
            | "Draw" >> beam.Map(self.draw)
            | "Together" >> beam.CombineGlobally(Concatenate(self.form))
            | "In order" >> beam.Map(lambda table: table.sort_by(order))
        )

    def draw(self, unit: Unit) -> pa.Table:
        """The rows of a shard that some seed draws."""
        columns = dict.fromkeys([*self.criteria.columns, *self.form.names[1:]])
        table = read_shard(unit.shard, list(columns))
        reasons, hashes = judge(table, self.criteria)
        standing = table.filter(pa.array(reasons == "")).select(self.form.names[1:])
        found = hashes[:, 0]
        below = np.zeros(len(found), np.uint64)
        for scorer, of_deciles in self.below.items():
            below = np.maximum(below, of_deciles[standing[schema.decile(scorer)].to_numpy()])
        drawn = np.zeros(len(found), bool)
        for seed in self.seeds:
            drawn |= mixed(found, seed) <= below
        standing = standing.add_column(0, self.form.field("hash"), pa.array(found))
        return standing.filter(pa.array(drawn)).cast(self.form)


def run(
    units: Sequence[Unit],
    output: str,
    criteria: Criteria,
    scorers: Sequence[str],
    arguments: Sequence[str],
    *,
    most: int,
    seeds: Sequence[int],
) -> Draw:
    """Draw `most` rows or somewhat more of every decile, or all it has, once for each of `seeds`.

    How many rows of a decile stand is seen when it is drawn: where that was too few, a larger share
    of it is drawn, with another pass over the corpus.

    Args:
        output: a folder for what passes on the way.
        criteria: what a row must be for itself; its deciles, size and seed have no part in it.
        scorers: whose deciles they are; the draw carries them.
    """
    share = 10 * _ROOM * most / max(sum(unit.rows for unit in units), 1)
    below = {scorer: np.full(10, _below(share), np.uint64) for scorer in scorers}
    while True:
        transform = DrawRows(replace(criteria, deciles=None), seeds, below)
        draw = Draw(table=collect("draw", units, transform, output, arguments), below=dict(below))
        for scorer, bounds in below.items():
            found = draw.counts(seeds, scorer).min(axis=0).tolist()
            grown = [_more(int(bound), n, most) for bound, n in zip(bounds, found, strict=True)]
            below[scorer] = np.array(grown, np.uint64)
        if all(np.array_equal(below[scorer], draw.below[scorer]) for scorer in scorers):
            return draw


def _below(share: float) -> int:
    """The highest key of a share of all rows."""
    return min(int(share * 2**64), 2**64 - 1)


def _more(below: int, found: int, most: int) -> int:
    """The bound of a decile of which `found` rows came, if they are fewer than `most`."""
    if found >= most:
        return below
    times = max(_ROOM * most / (found + 10), 2)  # few that came say little about how many there are
    return _below(times * (below + 1) / 2**64)


def mixed(hashes: np.ndarray, seed: int) -> np.ndarray:
    """Another hash of each hash for every seed, uint64 (SplitMix64: Steele et al. 2014)."""
    with np.errstate(over="ignore"):
        x = hashes + np.uint64((seed + 1) * 0x9E3779B97F4A7C15 % 2**64)
        x = (x ^ x >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ x >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return x ^ x >> np.uint64(31)
