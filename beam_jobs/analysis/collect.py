"""Running a job that gives one table about a corpus, not shards."""

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

    `output` is a folder that all workers see: the table comes back through it, and a file a unit
    that was begun shows the progress; both are removed.

    Raises:
        UserError: the first error that a user can cause, from whichever worker.
    """
    rows = {unit.name: unit.rows or 0 for unit in units}
    begun, left = storage.join(output, "begun"), storage.join(output, "collected.arrow")

    def begin(unit: Unit) -> Unit:
        storage.write_bytes(storage.join(begun, unit.name), b"begun")
        return unit

    def leave(table: pa.Table) -> None:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
        storage.write_bytes(left, sink.getvalue().to_pybytes())

    def done() -> int:
        return sum(rows.get(name, 0) for name in storage.names(begun))

    def clear() -> None:
        for unit in storage.names(begun):
            storage.remove(storage.join(begun, unit))
        storage.remove(left)

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
            return work | transform | "Leave" >> beam.Map(leave)

        retry_on_worker_death(lambda: run_pipeline(build, options, default_runner(arguments)))
    table = pa.ipc.open_file(storage.read_bytes(left)).read_all()
    clear()
    return table


class Concatenate(beam.CombineFn):
    """Tables, in whatever order, into one."""

    def __init__(self, schema: pa.Schema):
        self.schema = schema

    def create_accumulator(self) -> pa.Table:
        """No rows."""
        return self.schema.empty_table()

    def add_input(self, table: pa.Table, more: pa.Table) -> pa.Table:
        """Some rows more."""
        return pa.concat_tables([table, more])

    def merge_accumulators(self, tables: Iterable[pa.Table]) -> pa.Table:
        """The rows of several workers."""
        return pa.concat_tables([self.schema.empty_table(), *tables])

    def extract_output(self, table: pa.Table) -> pa.Table:
        """The whole table."""
        return table.combine_chunks()
