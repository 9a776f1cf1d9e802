"""Comparison of the generators of a run."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel

from paraloom.beam_jobs.engine import schema
from paraloom.beam_jobs.engine.shards import Shard, read_shard
from paraloom.models.errors import UserError
from paraloom.models.scorers import PairScorer
from paraloom.pipeline.judging.agreement import by_pair, judged_rows
from paraloom.pipeline.judging.cuts import ENOUGH
from paraloom.pipeline.judging.describe import good_of
from paraloom.pipeline.judging.judgments import read_judgments
from paraloom.pipeline.run.folder import shards_of
from paraloom.pipeline.run.records import BucketRecord, RunRecord
from paraloom.pipeline.run.stage import first_rows
from paraloom.pipeline.stages import RANKED
from paraloom.pipeline.stages.generate import GeneratedBy, generators_of

SAMPLE = 20_000  # number of candidates in the sample for quartiles and distances
_NAME = schema.GENERATOR.name


class Shown(NamedTuple):
    """A table of texts. The first cell of a row is the row's header."""

    title: str
    columns: list[str]
    rows: list[list[str]]


class Generator(BaseModel):
    """Figures of a generator. Fields of type int count candidates. Unknown figures are None."""

    name: str
    candidates: int  # accepted candidates
    selected: int
    share: float | None  # selected candidates / pairs of the corpus
    distance: float | None  # median of 1 − unigram F1 of candidate and reference
    quartiles: dict[str, list[float]]  # the three quartiles of each score
    cost_of_1000: float | None  # cost of 1,000 selected pairs; None if fewer than ENOUGH exist
    judged: int
    good: int
    asked: GeneratedBy | None  # tokens, time and cost of a language model


class Generators(BaseModel):
    """The JSON form of `paraloom generators`."""

    generators: list[Generator]
    distances: list[tuple[str, str, float]]  # two generators, and the distance between them

    def tables(self) -> list[Shown]:
        """Return the comparison as tables."""
        general, quartiles, reasons, taken = list[list[str]](), [], [], []
        for of in self.generators:
            one = of.asked or GeneratedBy()
            counts = (f"{n:,}" for n in (of.candidates, sum(one.rejected.values()), of.selected))
            share = "" if of.share is None else f"{of.share:.1%}"
            more = _number(of.distance), _number(of.cost_of_1000), good_of(of.good, of.judged)
            general.append([of.name, *counts, share, *more])
            ends = (" · ".join(map(_number, each)) for each in of.quartiles.values())
            quartiles.append([of.name, *ends])
            reasons += [[f"{of.name}: {reason}", f"{n:,}"] for reason, n in one.rejected.items()]
            numbers = (one.requests, one.retries, one.tokens_in, one.tokens_out)
            seconds = f"{one.seconds / max(one.requests, 1):.2f}"
            row = [of.name, *(f"{n:,}" for n in numbers), seconds, _number(one.cost)]
            taken += [row] if of.asked else []
        columns = ["generator", "candidates", "rejected", "selected", "share", "distance"]
        far = [[f"{one} – {other}", _number(of)] for one, other, of in self.distances]
        asked = ["requests", "retries", "tokens in", "tokens out", "seconds per request", "cost"]
        scores = [*self.generators[0].quartiles]
        tables = [
            Shown("Generators", [*columns, "cost of 1,000 selected", "judged good"], general),
            Shown("Distance between generators", ["generators", "distance"], far),
            Shown("Quartiles of the scores", ["generator", *scores], quartiles),
            Shown("Rejected candidates", ["reason", "candidates"], reasons),
            Shown("Requests and tokens", ["generator", *asked], taken),
        ]
        return [shown for shown in tables if shown.rows]


def compare_generators(folder: str, record: RunRecord) -> Generators:
    """Compare the generators of a run. Quartiles and distances are computed on a sample."""
    used, best = generators_of(record), record.best
    bucket = best.find(BucketRecord)
    if not used or bucket is None or not bucket.rows_out:
        raise UserError(f"{folder}: no scored candidates of several generators")
    shards, scores = shards_of(folder, best.path(RANKED)), list(bucket.deciles)
    corpus = shards_of(folder, best.path("select")) if "select" in best.stages else ()
    rows, selected = _count(shards), _count(corpus)
    judged, language = _labels(folder, shards), record.config.language
    columns = [*schema.ROW, _NAME, "reference", "translation", *scores]
    table = first_rows(shards, columns, SAMPLE)
    names = [of.name for of in record.config.generators or ()]
    made = {name: table.filter(pc.equal(table[_NAME], name)) for name in names}
    found = []
    for name, mine in made.items():
        pairs, labels, asked = selected[name], np.array(judged[name]), used.get(name)
        cost = asked.cost if asked and pairs >= ENOUGH else None
        values: dict[str, Any] = {"name": name, "candidates": rows[name], "selected": pairs}
        values["share"] = pairs / selected.total() if selected else None
        values["distance"] = _distance(mine["reference"], mine["translation"], language)
        quartiles = {of: pc.quantile(mine[of], [0.25, 0.5, 0.75]) for of in scores}
        values["quartiles"] = {of: each.drop_null().to_pylist() for of, each in quartiles.items()}
        values["cost_of_1000"] = None if cost is None else 1000 * cost / pairs
        good = int(np.sum(labels >= record.config.select.good))
        found.append(Generator(**values, judged=len(labels), good=good, asked=asked))
    return Generators(generators=found, distances=list(_distances(made, language)))


def _count(shards: Sequence[Shard]) -> Counter[str]:
    found: Counter[str] = Counter()
    for shard in shards:
        counts = pc.value_counts(read_shard(shard, [_NAME])[_NAME])
        found.update({each["values"]: each["counts"] for each in counts.to_pylist()})
    return found


def _labels(folder: str, shards: Sequence[Shard]) -> dict[str, list[float]]:
    """Return candidates' labels by generator. Copies of the reference are left out."""
    labels, found = by_pair(read_judgments(folder)), defaultdict[str, list[float]](list)
    for pair, row in judged_rows(labels, shards if labels else (), more=[_NAME])[0].items():
        if pair[0] != pair[1]:
            found[row[_NAME]].append(fmean(labels[pair]))
    return found


def _distance(texts: pa.ChunkedArray, others: pa.ChunkedArray, language: str) -> float | None:
    scorer = PairScorer(["unigram_f1"], language=language)
    found = scorer.score(texts.combine_chunks(), others.combine_chunks())["unigram_f1"]
    return float(1 - np.median(found)) if len(found) else None


def _distances(made: Mapping[str, pa.Table], language: str) -> Iterator[tuple[str, str, float]]:
    """Yield the names of every two generators, and the distance between their first candidates."""
    first = {
        name: mine.group_by("id", use_threads=False).aggregate([("translation", "first")])
        for name, mine in made.items()
    }
    for one, other in combinations(made, 2):
        both = first[one].join(first[other], "id", join_type="inner", right_suffix="_other")
        if len(both):
            _, texts, others = both.columns
            yield one, other, _distance(texts, others, language) or 0.0


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"
