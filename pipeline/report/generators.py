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
from paraloom.pipeline.judging.cuts import ENOUGH
from paraloom.pipeline.judging.describe import good_of
from paraloom.pipeline.judging.judgments import read_judgments
from paraloom.pipeline.manifest import best_round, ranked_stage
from paraloom.pipeline.names import stage_path
from paraloom.pipeline.records import BucketRecord, RunRecord
from paraloom.pipeline.stage import first_rows, shards_of
from paraloom.pipeline.stages.generate import GeneratedBy, generators_of

SAMPLE = 20_000  # candidates for scores and distances
_NAME = schema.GENERATOR.name


class Shown(NamedTuple):
    """A table in words: the first cell of a row is its head."""

    title: str
    columns: list[str]
    rows: list[list[str]]


def compare_generators(folder: str, record: RunRecord) -> list[Shown]:
    """The generators of a run in tables; counts are of all rows, the rest is of a sample."""
    used = generators_of(record)
    bucket = record.find(BucketRecord, stage_path("bucket", best_round(record.stages)))
    if not used or bucket is None or not bucket.rows_out:
        raise UserError(f"{folder}: has no scored candidates of several generators")
    shards, scores = shards_of(folder, ranked_stage(record.stages)), list(bucket.deciles)
    rows, selected = _count(shards), _count(shards_of(folder, "select"))
    columns = [*schema.ROW, _NAME, "reference", "translation", *scores]
    table = first_rows(shards, columns, SAMPLE)
    general, quartiles, reasons, taken = list[list[str]](), [], [], []
    names = [of["name"] for of in record.config.generators or ()]
    made = {name: table.filter(pc.equal(table[_NAME], name)) for name in names}
    for name, mine in made.items():
        one = used.get(name, GeneratedBy())
        cost, pairs = one.cost, selected[name]
        each = 1000 * cost / pairs if cost is not None and pairs >= ENOUGH else None
        counts = (f"{n:,}" for n in (rows[name], sum(one.rejected.values()), selected[name]))
        share = f"{selected[name] / selected.total():.1%}" if selected else ""
        distance = _number(_distance(mine["reference"], mine["translation"], record.language))
        good = _good(folder, record, shards, name)
        general.append([name, *counts, share, distance, _number(each), good])
        quartiles.append([name, *(_quartiles(mine[of]) for of in scores)])
        reasons += [[f"{name}: {reason}", f"{n:,}"] for reason, n in one.rejected.items()]
        numbers = (f"{n:,}" for n in (one.requests, one.retries, one.tokens_in, one.tokens_out))
        seconds = f"{one.seconds / max(one.requests, 1):.2f}"
        taken += [[name, *numbers, seconds, _number(one.cost)]] if name in used else []
    columns = ["generator", "candidates", "rejected", "selected", "share", "distance"]
    far = list(_distances(made, record.language))
    asked = ["requests", "retries", "tokens in", "tokens out", "seconds each", "cost"]
    tables = [
        Shown("Generators", [*columns, "cost of 1,000 selected", "good of judged"], general),
        Shown("Distance between generators", ["generators", "distance"], far),
        Shown("Quartiles of the scores", ["generator", *scores], quartiles),
        Shown("Rejected candidates", ["reason", "candidates"], reasons),
        Shown("Requests and tokens", ["generator", *asked], taken),
    ]
    return [shown for shown in tables if shown.rows]


def _count(shards: Sequence[Shard]) -> Counter[str]:
    found: Counter[str] = Counter()
    for shard in shards:
        counts = pc.value_counts(read_shard(shard, [_NAME])[_NAME])
        found.update({each["values"]: each["counts"] for each in counts.to_pylist()})
    return found


def _good(folder: str, record: RunRecord, shards: Sequence[Shard], name: str) -> str:
    """The good of the generator's judged candidates; nothing without judgments."""
    if not (judgments := read_judgments(folder)):
        return ""
    labels = join(judgments, shards, [], own={}, where=[Predicate(_NAME, "=", name)]).labels
    return good_of(int(np.sum(labels >= record.config.select.good)), len(labels))


def _distance(texts: pa.ChunkedArray, others: pa.ChunkedArray, language: str) -> float | None:
    """The median of 1 − unigram F1; None without texts."""
    scorer = PairScorer(["unigram_f1"], language=language)
    found = scorer.score(texts.combine_chunks(), others.combine_chunks())["unigram_f1"]
    return float(1 - np.median(found)) if len(found) else None


def _distances(made: Mapping[str, pa.Table], language: str) -> Iterator[list[str]]:
    """How far the first candidates of every two generators are from each other."""
    first = {
        name: mine.group_by("id", use_threads=False).aggregate([("translation", "first")])
        for name, mine in made.items()
    }
    for one, other in combinations(made, 2):
        both = first[one].join(first[other], "id", join_type="inner", right_suffix="_other")
        if len(both):
            _, texts, others = both.columns
            yield [f"{one} – {other}", _number(_distance(texts, others, language))]


def _quartiles(values: pa.ChunkedArray) -> str:
    ends = pc.quantile(values, [0.25, 0.5, 0.75]).to_pylist() if len(values) else []
    return " · ".join(map(_number, ends))


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"
