"""Selection: which pairs become the corpus, and why the others do not."""

from __future__ import annotations

import gzip
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from beam_jobs.io import schema, storage
from beam_jobs.io.shards import Receipt, Unit, commit, finished, read_shard
from beam_jobs.runners.launch import Result, launch
from beam_jobs.transforms.duplicates import FindDuplicates, row_hash
from beam_jobs.transforms.order_statistics import Column, OrderStatistics, Targets, position
from beam_jobs.transforms.predicates import Predicate

VERSION = 1
"""Raised when the job's rows change for the same input."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Criteria:
    """What a pair must be to be selected.

    Attributes:
        by: the score whose deciles count; it is also the score of the exported TSV.
        deciles: tenths to keep, 0 the lowest; None keeps all.
        max_tokens: most Moses tokens on either side; None sets no limit.
        size: rows to draw from those that meet the rest; None keeps all.
        seed: of the draw.
        where: all of these must hold as well.
    """

    by: str
    deciles: tuple[int, ...] | None
    max_tokens: int | None
    size: int | None
    seed: int
    where: tuple[Predicate, ...] = ()

    @property
    def columns(self) -> list[str]:
        """What `judge` reads."""
        columns = ["id", "reference", "translation", "reference_tokens", "translation_tokens"]
        if self.deciles is not None:
            columns.append(schema.decile(self.by))
        return list(dict.fromkeys([*columns, *(c.column for c in self.where)]))


def normalised(text: pa.Array) -> pa.Array:
    """Lower-cased letters and digits, everything else one space: what makes two texts the same.

    >>> normalised(pa.array(["A dog -- barks!"]))[0].as_py()
    'a dog barks'
    """
    lower = pc.utf8_lower(pc.utf8_normalize(text, "NFKC"))
    spaced = pc.replace_substring_regex(lower, r"[^\p{L}\p{M}\p{N}]+", " ")
    return pc.utf8_trim(spaced, " ")


def judge(table: pa.Table, criteria: Criteria) -> tuple[np.ndarray, np.ndarray]:
    """Judge the rows of a shard by what each shows on its own.

    Returns:
        reasons [n] (object; "" where a row stands), and the 128-bit hashes of the normalised
        texts of those that stand, uint64 [standing, 2].
    """
    reasons = np.full(table.num_rows, "", object)
    if criteria.deciles is not None:
        decile = table[schema.decile(criteria.by)].to_numpy()
        outside = ~np.isin(decile, criteria.deciles)
        reasons[outside] = f"outside the selected deciles of {criteria.by}"
    if criteria.max_tokens is not None:
        tokens = np.maximum(
            table["reference_tokens"].to_numpy(), table["translation_tokens"].to_numpy()
        )
        reasons[(tokens > criteria.max_tokens) & (reasons == "")] = "more tokens than max_tokens"
    for condition in criteria.where:
        fails = ~condition.holds(table[condition.column].to_numpy())
        reasons[fails & (reasons == "")] = f"not {condition}"
    standing = np.flatnonzero(reasons == "")
    texts = table.take(pa.array(standing))
    reference = normalised(texts["reference"].combine_chunks())
    translation = normalised(texts["translation"].combine_chunks())
    same = pc.equal(reference, translation).to_numpy(zero_copy_only=False)
    reasons[standing[same]] = "both sides are the same"
    return reasons, row_hash(reference, translation)[~same]


class Select(beam.PTransform):
    """Units in, receipts out: judge, find repeated pairs, draw, write."""

    def __init__(self, output: str, criteria: Criteria, rows: int):
        super().__init__()
        self.output, self.criteria, self.rows = output, criteria, rows

    def expand(self, units: beam.PCollection) -> beam.PCollection:
        """A scan for repeats, four for the draw (if there is one), and the writing."""
        criteria = self.criteria

        def hashes(unit: Unit) -> tuple[int, tuple[np.ndarray, np.ndarray]]:
            reasons, hashed = judge(read_shard(unit.shard, criteria.columns), criteria)
            return unit.index, (hashed, np.flatnonzero(reasons == ""))

        def standing(element: tuple[Unit, np.ndarray]) -> dict[str, Column]:
            unit, repeats = element
            table = read_shard(unit.shard, criteria.columns)
            reasons, _ = judge(table, criteria)
            reasons[repeats] = "repeated"
            rows = np.flatnonzero(reasons == "")
            ids = table["id"].combine_chunks().take(pa.array(rows))
            return {"draw": Column(np.zeros(len(rows), np.uint32), ids)}

        repeats = (
            units
            | "Judge" >> beam.Map(hashes).with_output_types(tuple[int, Any])
            | "Repeated pairs" >> FindDuplicates(self.rows)
        )
        by_index = units | "By shard" >> beam.Map(lambda u: (u.index, u)).with_output_types(
            tuple[int, Any]
        )
        joined = (
            {"unit": by_index, "repeats": repeats}
            | "Shards with repeats" >> beam.CoGroupByKey()
            | "Join" >> beam.Map(_join)
        )
        write = _Write(self.output, criteria)
        if criteria.size is None:
            return joined | "Write" >> beam.ParDo(write, None)
        size = criteria.size
        bound = joined | "Draw" >> OrderStatistics(
            standing, lambda rows: [size], seed=criteria.seed
        )
        return joined | "Write" >> beam.ParDo(write, beam.pvalue.AsSingleton(bound))


def run(units: Sequence[Unit], output: str, criteria: Criteria, arguments: Sequence[str]) -> Result:
    """Select from `units` into `output`, and export the TSV."""
    storage.remove(tsv_path(output))
    rows = sum(unit.rows for unit in units)
    result = launch("select", units, Select(output, criteria, rows), output, arguments)
    export_tsv(result.receipts, tsv_path(output), criteria.by)
    return result


def tsv_path(output: str) -> str:
    """Where the corpus stands in the form in which ParaNMT was released."""
    return storage.join(output, "corpus.tsv.gz")


def export_tsv(receipts: Sequence[Receipt], path: str, score: str) -> None:
    """Write reference, translation and score, tab-separated, one pair a line, gzip."""
    with storage.writing(path) as stream, gzip.GzipFile("", "wb", 6, stream, mtime=0) as text:
        for receipt in receipts:
            for shard in receipt.shards:
                table = read_shard(shard, ["reference", "translation", score])
                values = table[score].cast(pa.string())
                lines = pc.binary_join_element_wise(
                    table["reference"], table["translation"], values, "\t"
                )
                if len(lines):
                    text.write("\n".join([*lines.to_pylist(), ""]).encode())


def _join(element: tuple[int, dict[str, Iterable]]) -> tuple[Unit, np.ndarray]:
    (unit,) = element[1]["unit"]
    repeats = [rows for rows in element[1]["repeats"] if len(rows)]
    return unit, np.sort(np.concatenate(repeats)) if repeats else np.empty(0, np.int64)


class _Write(beam.DoFn):
    def __init__(self, output: str, criteria: Criteria):
        self.output, self.criteria = output, criteria

    def setup(self) -> None:
        pa.set_cpu_count(1)

    def process(self, element: tuple[Unit, np.ndarray], bound: Targets | None) -> Iterator[Receipt]:
        unit, repeats = element
        done = finished(self.output, unit.name, unit.key)
        yield done or self.write(unit, repeats, bound)

    def write(self, unit: Unit, repeats: np.ndarray, bound: Targets | None) -> Receipt:
        started = time.monotonic()
        table = read_shard(unit.shard)
        reasons, _ = judge(table, self.criteria)
        reasons[repeats] = "repeats an earlier pair"
        targets = bound.get("draw", []) if bound is not None else []
        if targets:
            rows = np.flatnonzero(reasons == "")
            ids = table["id"].combine_chunks().take(pa.array(rows))
            column = Column(np.zeros(len(rows), np.uint32), ids)
            beyond = position(column, targets, self.criteria.seed) > 0
            reasons[rows[beyond]] = "not drawn"
        stands = pa.array(reasons == "")
        rejected = pa.table(
            [table["id"], pa.array(reasons, pa.string())], schema=schema.SELECT_REJECTED
        ).filter(pc.invert(stands))
        pieces = [(unit.name, table.filter(stands), rejected)]
        return commit(self.output, unit.name, unit.key, table.num_rows, pieces, started=started)
