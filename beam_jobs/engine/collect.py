"""Run a job that returns one table about a corpus, and writes no shards."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import apache_beam as beam
import pyarrow as pa

from paraloom.beam_jobs import storage
from paraloom.beam_jobs.engine.launch import Work, WorkUnit, watch_pipeline
from paraloom.beam_jobs.engine.part_files import decode
from paraloom.beam_jobs.engine.shards import write_shard


def collect(
    name: str,
    units: Sequence[WorkUnit],
    transform: beam.PTransform,
    output: str,
    arguments: Sequence[str],
) -> pa.Table:
    """Run `transform`, which turns units into one table, and return the table.

    All workers must be able to write to the folder `output`. The table is stored there temporarily.
    """
    rows = {unit.name: unit.rows or 0 for unit in units}
    begun, result = storage.join(output, "begun"), storage.join(output, "collected.parquet")

    def begin(unit: WorkUnit) -> WorkUnit:
        storage.write_bytes(storage.join(begun, unit.name), b"begun")
        return unit

    def clear() -> None:
        storage.remove(result)
        storage.clear(begun)

    def build(root: beam.Pipeline) -> beam.PCollection:
        work = root | beam.Create(list(units)) | beam.Reshuffle() | "Begin" >> beam.Map(begin)
        return work | transform | "Write" >> beam.Map(partial(write_shard, result))

    clear()
    work = Work(
        name=name,
        output=output,
        build=build,
        processes=len(units),
        done=lambda: sum(rows.get(name, 0) for name in storage.names(begun)),
        total=sum(rows.values()),
    )
    watch_pipeline(work, arguments)
    table = decode(storage.read_bytes(result))
    clear()
    return table
