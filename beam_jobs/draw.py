"""A small corpus drawn from a large one, to try things on: the same on any runner.

Rows are drawn by a hash of their normalised texts and a seed. So a pair that occurs several times
is in the draw or not, but never more likely in it, and is taken once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import apache_beam as beam
import numpy as np
import pyarrow as pa
import xxhash

from beam_jobs import schema
from beam_jobs.collect import Concatenate, collect
from beam_jobs.repeats import row_hash
from beam_jobs.select import Criteria, judge
from beam_jobs.shards import Unit, read_shard

VERSION = 1
"""Raised when the job draws otherwise."""


@dataclass(frozen=True, kw_only=True)
class Draw:
    """What was drawn, once a seed: each seed draws about as many of all rows, anew.

    Attributes:
        table: `hash` (of the normalised texts, uint64), `id`, both texts and the deciles, ordered
            by hash and id; the rows of all seeds.
        below: a seed's rows are those of which the hash, mixed with the seed, is at most this.
    """

    table: pa.Table
    below: int

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
            scorer: of these only rows in `deciles`; None takes all.
            most: of these only so many, at random; the more one asks for, the more are the same.
        """
        keys = mixed(self._hashes, seed)
        stands = keys <= np.uint64(self.below)
        if scorer is not None:
            stands &= np.isin(self.table[schema.decile(scorer)].to_numpy(), deciles)
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

    @property
    def share(self) -> float:
        """Of all rows, what a seed drew, about."""
        return (self.below + 1) / 2**64

    @cached_property
    def _hashes(self) -> np.ndarray:
        return self.table["hash"].to_numpy()

    @cached_property
    def _texts_hashes(self) -> np.ndarray:
        return row_hash(*(self.table[s].combine_chunks() for s in ("reference", "translation")))


class DrawRows(beam.PTransform):
    """Units in, the table of a `Draw` out. What `criteria` reject for itself is not drawn."""

    def __init__(
        self, criteria: Criteria, scorers: Sequence[str], seeds: Sequence[int], below: int
    ):
        super().__init__()
        self.criteria, self.seeds, self.below = criteria, tuple(seeds), below
        self.form = pa.schema(
            [
                pa.field("hash", pa.uint64()),
                *(pa.field(name, pa.string()) for name in ("id", "reference", "translation")),
                *(pa.field(schema.decile(scorer), pa.int8()) for scorer in scorers),
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
        drawn = np.zeros(len(found), bool)
        for seed in self.seeds:
            drawn |= mixed(found, seed) <= np.uint64(self.below)
        standing = standing.add_column(0, self.form.field("hash"), pa.array(found))
        return standing.filter(pa.array(drawn)).cast(self.form)


def run(
    units: Sequence[Unit],
    output: str,
    criteria: Criteria,
    scorers: Sequence[str],
    arguments: Sequence[str],
    *,
    rows: int,
    seeds: Sequence[int],
) -> Draw:
    """Draw about `rows` rows (or all there are) once for each of `seeds`.

    Args:
        output: a folder for what passes on the way.
        criteria: what a row must be for itself; its deciles, size and seed have no part in it.
        scorers: whose deciles the draw carries.
    """
    share = rows / max(sum(unit.rows for unit in units), 1)
    below = min(int(share * 2**64), 2**64 - 1)
    transform = DrawRows(replace(criteria, deciles=None), scorers, seeds, below)
    return Draw(table=collect("draw", units, transform, output, arguments), below=below)


def mixed(hashes: np.ndarray, seed: int) -> np.ndarray:
    """Another hash of each hash for every seed, uint64 (SplitMix64: Steele et al. 2014)."""
    with np.errstate(over="ignore"):
        x = hashes + np.uint64((seed + 1) * 0x9E3779B97F4A7C15 % 2**64)
        x = (x ^ x >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ x >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return x ^ x >> np.uint64(31)
