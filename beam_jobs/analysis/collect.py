"""Running a job that returns one table about a corpus instead of shards."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import apache_beam as beam
import pyarrow as pa

from beam_jobs.io import storage
from beam_jobs.runners.launch import Unit, beam_options, watch_pipeline


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
            writer.write_table(table.combine_chunks())
        storage.write_bytes(result, sink.getvalue().to_pybytes())

    def done() -> int:
        return sum(rows.get(name, 0) for name in storage.names(begun))

    def clear() -> None:
        for unit in storage.names(begun):
            storage.remove(storage.join(begun, unit))
        storage.remove(result)

    clear()

    def build(root: beam.Pipeline) -> beam.PCollection:
        work = root | beam.Create(list(units)) | beam.Reshuffle() | "Begin" >> beam.Map(begin)
        return work | transform | "Write" >> beam.Map(write)

    options = beam_options(arguments, processes=max(len(units), 1))
    watch_pipeline(name, build, options, output, arguments, done, total=sum(rows.values()))
    table = pa.ipc.open_file(storage.read_bytes(result)).read_all()
    clear()
    return table


def concatenate(schema: pa.Schema) -> Callable[[Iterable[pa.Table]], pa.Table]:
    """A combiner that concatenates tables, in any order."""
    return lambda tables: pa.concat_tables([schema.empty_table(), *tables])


class Merge(beam.CombineFn):
    """Merges values as soon as the pending ones have as many rows as the merged one.

    Memory grows with the merged value, and every row is copied only a few times.

    Args:
        rows: the number of rows of a value.
    """

    def __init__(self, merge: Callable[[Iterable[Any]], Any], rows: Callable[[Any], int]):
        self.merge, self.rows = merge, rows

    def create_accumulator(self) -> list[Any]:
        """No values."""
        return []

    def add_input(self, values: list[Any], value: Any) -> list[Any]:
        """Add a value; the first one of the accumulator is the merged one."""
        values = [*values, value]
        merged, *pending = map(self.rows, values)
        return [self.merge(values)] if sum(pending) >= merged else values

    def merge_accumulators(self, many: Iterable[list[Any]]) -> list[Any]:
        """Merge the values of several workers."""
        return [self.merge(value for values in many for value in values)]

    def extract_output(self, values: list[Any]) -> Any:
        """The merged value."""
        return self.merge(values)
