"""Running a job that returns one table about a corpus instead of shards."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import apache_beam as beam
import pyarrow as pa

from beam_jobs.io import storage
from beam_jobs.runners import dataflow
from beam_jobs.runners.launch import (
    Unit,
    beam_options,
    default_runner,
    redirect_stderr,
    report_progress,
    run_pipeline,
)
from beam_jobs.runners.local.runner import retry_on_worker_death
from models.progress import meter


def collect(
    name: str,
    units: Sequence[Unit],
    transform: beam.PTransform,
    output: str,
    arguments: Sequence[str],
) -> pa.Table:
    """Run `transform` (units in, one table out) and return its table.

    `output` is a folder that all workers can access: it holds the table, and a file for each unit
    that was begun, to show progress. Both are removed at the end.

    Raises:
        UserError: the first error of a worker that the user can fix.
    """
    rows = {unit.name: unit.rows or 0 for unit in units}
    begun, result = storage.join(output, "begun"), storage.join(output, "collected.arrow")

    def begin(unit: Unit) -> Unit:
        storage.write_bytes(storage.join(begun, unit.name), b"begun")
        return unit

    def write(table: pa.Table) -> None:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
        storage.write_bytes(result, sink.getvalue().to_pybytes())

    def done() -> int:
        return sum(rows.get(name, 0) for name in storage.names(begun))

    def clear() -> None:
        for unit in storage.names(begun):
            storage.remove(storage.join(begun, unit))
        storage.remove(result)

    clear()
    with (
        redirect_stderr(output) as terminal,
        meter(name, total=sum(rows.values()), stream=terminal) as progress,
        report_progress(done, progress, output),
    ):
        options = beam_options(arguments, processes=max(len(units), 1))
        dataflow.prepare(options, output)

        def build(root: beam.Pipeline) -> beam.PCollection:
            work = root | beam.Create(list(units)) | beam.Reshuffle() | "Begin" >> beam.Map(begin)
            return work | transform | "Write" >> beam.Map(write)

        retry_on_worker_death(lambda: run_pipeline(build, options, default_runner(arguments)))
    table = pa.ipc.open_file(storage.read_bytes(result)).read_all()
    clear()
    return table


class Concatenate(beam.CombineFn):
    """Concatenates tables, in any order."""

    def __init__(self, schema: pa.Schema):
        self.schema = schema

    def create_accumulator(self) -> pa.Table:
        """An empty table."""
        return self.schema.empty_table()

    def add_input(self, table: pa.Table, more: pa.Table) -> pa.Table:
        """Append rows."""
        return pa.concat_tables([table, more])

    def merge_accumulators(self, tables: Iterable[pa.Table]) -> pa.Table:
        """Concatenate the tables of several workers."""
        return pa.concat_tables([self.schema.empty_table(), *tables])

    def extract_output(self, table: pa.Table) -> pa.Table:
        """The whole table."""
        return table.combine_chunks()
