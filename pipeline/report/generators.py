"""Generators side by side: what each made, what was selected of it, and what it cost."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paraloom.beam_jobs.io import schema
from paraloom.beam_jobs.io.shards import Shard, read_shard
from paraloom.beam_jobs.transforms.conditions import Predicate
from paraloom.models.errors import UserError
from paraloom.models.scorers import PairScorer
from paraloom.pipeline.judging.agreement import join
from paraloom.pipeline.judging.describe import good_of
from paraloom.pipeline.judging.judgments import read_judgments
from paraloom.pipeline.manifest import best_round, ranked_stage
from paraloom.pipeline.names import stage_path
from paraloom.pipeline.records import BucketRecord, RunRecord
from paraloom.pipeline.stage import first_rows, shards_of
from paraloom.pipeline.stages.generate import GeneratedBy, generators_of

_SAMPLE = 20_000  # candidates for distributions and distances
_NAME = schema.GENERATOR.name
_COUNTS = ["requests", "retries", "tokens_in", "tokens_out"]


class Shown(NamedTuple):
    """A table in words: the first cell of a row is its head."""

    title: str
    columns: list[str]
    rows: list[list[str]]


class GeneratorTables(NamedTuple):
    """The generators of a run in tables, some of which are of `sampled` scored candidates."""

    tables: list[Shown]
    sampled: int


def compare_generators(folder: str, record: RunRecord) -> GeneratorTables:
    """Compare the generators of a run; counts are of all rows, the rest is of a sample."""
    used = generators_of(record)
    bucket = record.find(BucketRecord, stage_path("bucket", best_round(record.stages)))
    if not used or bucket is None or not bucket.rows_out:
        raise UserError(f"{folder}: has no scored candidates of several generators")
    shards = shards_of(folder, ranked_stage(record.stages))
    rows, selected = _count(shards), _count(shards_of(folder, "select"))
    scores = list(bucket.deciles)
    columns = [*schema.ROW, _NAME, "reference", "translation", *scores]
    table = first_rows(shards, columns, _SAMPLE)
    names = [of["name"] for of in record.config.generators or []]
    found = {name: table.filter(pc.equal(table[_NAME], name)) for name in names}
    judged, language = _judged(folder, record, shards, names), record.language
    general = []
    for name, mine in found.items():
        one = used.get(name, GeneratedBy())
        distance = _distance(mine["reference"], mine["translation"], language)
        share = f"{selected[name] / selected.total():.1%}" if selected else ""
        each = 1000 * one.cost / selected[name] if one.cost is not None and selected[name] else None
        counts = (f"{n:,}" for n in (rows[name], sum(one.rejected.values()), selected[name]))
        good = [judged[name]] if judged else []
        general.append([name, *counts, share, _number(distance), _number(each), *good])
    columns = ["generator", "candidates", "rejected", "selected", "share"]
    columns += ["distance", "cost of 1,000 selected", *(["good of judged"] if judged else [])]
    quartiles = [[name, *(_quartiles(mine[of]) for of in scores)] for name, mine in found.items()]
    reasons = [
        [f"{name}: {reason}", f"{n:,}"]
        for name, one in used.items()
        for reason, n in one.rejected.items()
    ]
    taken = [*(name.replace("_", " ") for name in _COUNTS), "seconds each", "cost"]
    far = list(_distances(found, language))
    tables = [
        Shown("Generators", columns, general),
        Shown("Quartiles of the scores", ["generator", *scores], quartiles),
        Shown("Distance between generators", ["generators", "distance"], far),
        Shown("Rejected candidates", ["reason", "candidates"], reasons),
        Shown("Requests and tokens", ["generator", *taken], list(_taken(used))),
    ]
    return GeneratorTables([shown for shown in tables if shown.rows], len(table))


def _count(shards: Sequence[Shard]) -> Counter[str]:
    found: Counter[str] = Counter()
    for shard in shards:
        counts = pc.value_counts(read_shard(shard, [_NAME])[_NAME])
        found.update({each["values"]: each["counts"] for each in counts.to_pylist()})
    return found


def _judged(
    folder: str, record: RunRecord, shards: Sequence[Shard], names: Sequence[str]
) -> dict[str, str]:
    """The good of each generator's judged candidates; nothing without judgments."""
    judgments, found = read_judgments(folder), {}
    for name in names if judgments else ():
        where = [Predicate(_NAME, "=", name)]
        labels = join(judgments, shards, [], own={}, where=where).labels
        found[name] = good_of(int(np.sum(labels >= record.config.select.good)), len(labels))
    return found


def _distance(texts: pa.ChunkedArray, others: pa.ChunkedArray, language: str) -> float | None:
    """The median of 1 − unigram F1; None without texts."""
    scorer = PairScorer(["unigram_f1"], language=language)
    found = scorer.score(texts.combine_chunks(), others.combine_chunks())["unigram_f1"]
    return float(1 - np.median(found)) if len(found) else None


def _distances(found: Mapping[str, pa.Table], language: str) -> Iterator[list[str]]:
    """How far the first candidates of every two generators are from each other."""
    first = {
        name: mine.group_by("id", use_threads=False).aggregate([("translation", "first")])
        for name, mine in found.items()
    }
    for one, other in combinations(found, 2):
        both = first[one].join(first[other], "id", join_type="inner", right_suffix="_other")
        if len(both):
            _, texts, others = both.columns
            yield [f"{one} – {other}", _number(_distance(texts, others, language))]


def _quartiles(values: pa.ChunkedArray) -> str:
    ends = pc.quantile(values, [0.25, 0.5, 0.75]).to_pylist() if len(values) else []
    return " · ".join(map(_number, ends))


def _taken(used: Mapping[str, GeneratedBy]) -> Iterator[list[str]]:
    for name, one in used.items():
        counts = [f"{getattr(one, of):,}" for of in _COUNTS]
        yield [name, *counts, f"{one.seconds / max(one.requests, 1):.2f}", _number(one.cost)]


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"
