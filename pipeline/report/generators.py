"""Generators side by side: what each made, what was selected of it, and what it cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paraloom.beam_jobs.io import schema, storage
from paraloom.beam_jobs.io.shards import Shard, read_shard
from paraloom.models.agreement.precision import wilson
from paraloom.models.errors import UserError
from paraloom.models.scorers import PairScorer
from paraloom.pipeline.judging.judgments import read_judgments
from paraloom.pipeline.records import BucketRecord, RunRecord
from paraloom.pipeline.stage import best_round, shards_of, stage_path
from paraloom.pipeline.stages.generate import GeneratedBy, GenerateRecord

_FILES, _PAIRS = 10, 20_000  # of the sample for distributions and distances
_NAME = schema.GENERATOR.name


@dataclass(slots=True)
class OneGenerator:
    """What a generator made; numbers are None where there are none."""

    rows: int  # scored candidates
    selected: int  # those in the corpus
    rejected: dict[str, int]  # candidates by reason
    usage: GeneratedBy | None  # None of NMT
    quartiles: dict[str, list[float]] = field(default_factory=dict)  # three, by score
    distance: float | None = None  # median of 1 − unigram F1 to the reference
    judged: tuple[int, float, float, float] | None = None
    """Judged candidates, the share of good ones, and the ends of its 95% interval."""

    @property
    def cost(self) -> float | None:
        """The cost of a thousand selected pairs."""
        cost = self.usage.cost if self.usage else None
        return None if cost is None or not self.selected else 1000 * cost / self.selected


class Comparison(NamedTuple):
    """All generators of a run by name."""

    generators: dict[str, OneGenerator]
    distances: dict[tuple[str, str], float]  # median of 1 − unigram F1 of the first candidates
    sampled: int  # scored candidates in the sample


class Shown(NamedTuple):
    """A table in words: the first cell of a row is its head."""

    title: str
    columns: list[str]
    rows: list[list[str]]


def names_by_candidate(record: RunRecord) -> list[str]:
    """The generator of each candidate number."""
    generators = record.config.generators or []
    nmt = [of for of in generators if of["kind"] == "nmt"]
    others = [of for of in generators if of["kind"] != "nmt"]
    names = [of["name"] for of in nmt for _ in range(record.config.nmt.candidates)]
    return names + [of["name"] for of in others for _ in range(of["n"])]


def compare_generators(folder: str, record: RunRecord) -> Comparison:
    """Compare the generators of a run; counts are of all rows, the rest is of a sample."""
    made = record.find(GenerateRecord)
    stage = stage_path("bucket", best_round(record.stages))
    bucket = record.find(BucketRecord, stage)
    if made is None or bucket is None:
        raise UserError(f"{folder}: has no scored candidates of several generators")
    shards = shards_of(storage.join(folder, stage))
    rows = _count(shards)
    selected = _count(shards_of(storage.join(folder, "corpus")))
    found = {}
    for name in dict.fromkeys(names_by_candidate(record)):
        usage = made.generators.get(name)
        rejected = usage.rejected if usage else {}
        found[name] = OneGenerator(rows[name], selected[name], rejected, usage)
    judged = _judged(folder, record)
    filled = [shard for shard in shards if shard.rows]
    some = filled[:: -(-len(filled) // _FILES)] if filled else []
    columns = [*schema.ROW, _NAME, "reference", "translation", *bucket.deciles]
    parts = [read_shard(shard, columns).slice(0, _PAIRS // len(some)) for shard in some]
    if not parts:
        return Comparison(found, {}, 0)
    table = pa.concat_tables(parts).combine_chunks()
    references, translations = (table[of].combine_chunks() for of in ("reference", "translation"))
    overlap = _overlap(references, translations, record.language)
    made_by = np.asarray(table[_NAME].to_pylist(), object)
    for name, one in found.items():
        mine, one.judged = made_by == name, judged.get(name)
        if mine.any():
            one.distance = float(1 - np.median(overlap[mine]))
            for score in bucket.deciles:
                ends = np.quantile(table[score].to_numpy()[mine], [0.25, 0.5, 0.75])
                one.quartiles[score] = ends.tolist()
    return Comparison(found, dict(_distances(table, list(found), record.language)), len(table))


def _count(shards: Sequence[Shard]) -> Counter[str]:
    found: Counter[str] = Counter()
    for shard in shards:
        for entry in pc.value_counts(read_shard(shard, [_NAME])[_NAME]).to_pylist():
            found[entry["values"]] += entry["counts"]
    return found


def _overlap(first: pa.Array, second: pa.Array, language: str) -> np.ndarray:
    return PairScorer(["unigram_f1"], language=language).score(first, second)["unigram_f1"]


def _distances(
    table: pa.Table, names: Sequence[str], language: str
) -> Iterator[tuple[tuple[str, str], float]]:
    """How far the first candidates of every two generators are from each other."""
    first: dict[str, pa.Table] = {}
    for name in names:
        mine = table.filter(pc.equal(table[_NAME], name))
        ids = mine["id"].combine_chunks().dictionary_encode().indices.to_numpy()
        first[name] = mine.take(pa.array(np.unique(ids, return_index=True)[1]))
    for one, other in combinations(names, 2):
        at = pc.index_in(first[one]["id"], value_set=first[other]["id"].combine_chunks())
        texts = first[one].filter(at.is_valid())["translation"].combine_chunks()
        others = first[other]["translation"].take(at.drop_null()).combine_chunks()
        if len(texts):
            yield (one, other), float(1 - np.median(_overlap(texts, others, language)))


def _judged(folder: str, record: RunRecord) -> dict[str, tuple[int, float, float, float]]:
    """The share of good ones among the judged candidates of each generator."""
    names, labels = names_by_candidate(record), dict[tuple[str, int], list[float]]()
    for judgment in read_judgments(folder):
        if judgment.candidate is not None and judgment.candidate < len(names):
            labels.setdefault((judgment.id, judgment.candidate), []).append(judgment.score)
    good: dict[str, list[bool]] = {}
    for (_, candidate), scores in labels.items():
        is_good = float(np.mean(scores)) >= record.config.select.good
        good.setdefault(names[candidate], []).append(is_good)
    found = {}
    for name, each in good.items():
        low, high = wilson(np.array(np.mean(each)), np.array(len(each)))
        found[name] = len(each), float(np.mean(each)), float(low), float(high)
    return found


def generator_tables(found: Comparison) -> list[Shown]:
    """The comparison as tables."""
    of, total = found.generators, sum(one.selected for one in found.generators.values())
    judged = any(one.judged for one in of.values())
    columns = ["generator", "candidates", "rejected", "selected", "share of the corpus"]
    columns += ["distance from the reference", "cost of 1,000 selected"]
    columns += ["judged", "good, with 95% interval"] if judged else []
    rows = []
    for name, one in of.items():
        share = f"{one.selected / total:.1%}" if total else ""
        counts = [f"{one.rows:,}", f"{sum(one.rejected.values()):,}", f"{one.selected:,}", share]
        cells = [name, *counts, _number(one.distance), _number(one.cost)]
        if judged:
            number, *ends = one.judged or (0, None)
            cells += [f"{number:,}", "{:.2f} ({:.2f} to {:.2f})".format(*ends) if number else ""]
        rows.append(cells)
    tables = [Shown("Generators", columns, rows)]
    if scores := list(dict.fromkeys(score for one in of.values() for score in one.quartiles)):
        quartiles = [
            [name, *(" · ".join(f"{q:.3f}" for q in one.quartiles.get(s, [])) for s in scores)]
            for name, one in of.items()
        ]
        tables.append(Shown("Quartiles of the scores", ["generator", *scores], quartiles))
    if found.distances:
        distances = [[f"{a} – {b}", f"{d:.3f}"] for (a, b), d in found.distances.items()]
        tables.append(Shown("Distance between generators", ["generators", "distance"], distances))
    reasons = [
        [f"{name}: {reason}", f"{rows:,}"]
        for name, one in of.items()
        for reason, rows in one.rejected.items()
    ]
    if reasons:
        tables.append(Shown("Rejected candidates", ["reason", "candidates"], reasons))
    used = {name: one.usage for name, one in of.items() if one.usage}
    return [*tables, usage_table(used)]


def usage_table(used: Mapping[str, GeneratedBy]) -> Shown:
    """Requests, tokens and cost of generators."""
    columns = [
        "generator",
        "requests",
        "retries",
        "tokens in",
        "tokens out",
        "seconds each",
        "cost",
    ]
    rows = []
    for name, one in used.items():
        counts = one.requests, one.retries, one.tokens_in, one.tokens_out
        taken = f"{one.seconds / max(one.requests, 1):.2f}"
        rows.append([name, *(f"{n:,}" for n in counts), taken, _number(one.cost)])
    return Shown("Requests and tokens", columns, rows)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"
