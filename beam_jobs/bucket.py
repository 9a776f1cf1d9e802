"""Exact deciles of every score over the whole corpus (ParaNMT, section 4.1: tenths by score).

Sizes differ by at most one row; rows of equal score are parted by a hash of their id.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa

from beam_jobs.io import schema
from beam_jobs.io.shards import Receipt, Unit, commit, finished, read_shard
from beam_jobs.runners.launch import Result, launch
from beam_jobs.transforms.order_statistics import (
    Column,
    OrderStatistics,
    Targets,
    position,
    sortable,
)

VERSION = 1
"""Raised when the job's rows change for the same input."""


def decile_ranks(rows: int) -> list[int]:
    """The ranks at which deciles 1 to 9 begin: ⌊k·n/10⌋.

    >>> decile_ranks(25)
    [2, 5, 7, 10, 12, 15, 17, 20, 22]
    """
    return [k * rows // 10 for k in range(1, 10)]


class Bucket(beam.PTransform):
    """Units in, receipts out; reads the scores four times, then writes every shard once."""

    def __init__(self, output: str, scorers: Sequence[str]):
        super().__init__()
        self.output, self.scorers = output, tuple(scorers)

    def expand(self, units: beam.PCollection) -> beam.PCollection:
        """Find the bounds of the whole corpus, then place every row."""
        scorers = self.scorers

        def read(unit: Unit) -> dict[str, Column]:
            table = read_shard(unit.shard, ["id", *scorers])
            ids = table["id"].combine_chunks()
            return {s: Column(sortable(table[s].to_numpy()), ids) for s in scorers}

        bounds = units | "Bounds" >> OrderStatistics(read, decile_ranks)
        return units | "Place" >> beam.ParDo(
            _Place(self.output, scorers), beam.pvalue.AsSingleton(bounds)
        )


def run(
    units: Sequence[Unit], output: str, scorers: Sequence[str], arguments: Sequence[str]
) -> Result:
    """Bucket `units` into `output`.

    Raises:
        RuntimeError: deciles of a score differ by more than one row.
    """
    result = launch("bucket", units, Bucket(output, scorers), output, arguments)
    for score, summary in summarise(result.receipts).items():
        if max(summary["rows"]) - min(summary["rows"]) > 1:
            raise RuntimeError(f"bucket: deciles of {score} are not exact: {summary['rows']}")
    return result


def summarise(receipts: Sequence[Receipt]) -> dict[str, dict[str, list]]:
    """Rows, lowest and highest score of each decile (0 to 9) of each score.

    Returns:
        score → {"rows": [10], "lowest": [10], "highest": [10]}; None in an empty decile.
    """
    total: dict[str, dict[str, list]] = {}
    for receipt in receipts:
        for score, part in receipt.numbers["deciles"].items():
            if score not in total:
                total[score] = {name: list(values) for name, values in part.items()}
                continue
            so_far = total[score]
            for name, join in (("rows", sum), ("lowest", min), ("highest", max)):
                for k in range(10):
                    pair = [v for v in (so_far[name][k], part[name][k]) if v is not None]
                    so_far[name][k] = join(pair) if pair else None
    return total


class _Place(beam.DoFn):
    def __init__(self, output: str, scorers: tuple[str, ...]):
        self.output, self.scorers = output, scorers

    def setup(self) -> None:
        pa.set_cpu_count(1)

    def process(self, unit: Unit, bounds: Targets) -> Iterator[Receipt]:
        done = finished(self.output, unit.name, unit.key)
        yield done or self.place(unit, bounds)

    def place(self, unit: Unit, bounds: Targets) -> Receipt:
        started = time.monotonic()
        table = read_shard(unit.shard)
        ids = table["id"].combine_chunks()
        deciles: dict[str, Any] = {}
        for name in self.scorers:
            score = table[name].to_numpy()
            decile = position(Column(sortable(score), ids), bounds.get(name, []))
            table = table.append_column(schema.decile(name), pa.array(decile, pa.int8()))
            deciles[name] = _by_decile(score, decile)
        table = table.cast(schema.bucketed(self.scorers))
        empty = table.slice(0, 0).select([]).append_column("reason", pa.array([], pa.string()))
        pieces = [(unit.name, table, empty)]
        return commit(
            self.output,
            unit.name,
            unit.key,
            table.num_rows,
            pieces,
            started=started,
            numbers={"deciles": deciles},
        )


def _by_decile(score: np.ndarray, decile: np.ndarray) -> dict[str, list]:
    parts = [score[decile == k] for k in range(10)]
    return {
        "rows": [len(part) for part in parts],
        "lowest": [float(part.min()) if len(part) else None for part in parts],
        "highest": [float(part.max()) if len(part) else None for part in parts],
    }
