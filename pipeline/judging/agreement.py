"""Agreement between scores and people's labels, and the precision of corpora."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from paraloom.beam_jobs.engine import schema
from paraloom.beam_jobs.engine.shards import Shard, read_shard
from paraloom.beam_jobs.transforms.conditions import Predicate
from paraloom.beam_jobs.transforms.shares import decile_ranks
from paraloom.models.embeddings.datasets.similarity import read_labelled
from paraloom.models.errors import UserError
from paraloom.models.scorers import ENCODER, SCORERS, PairScorer
from paraloom.pipeline.judging.cuts import (
    DECILES,
    AgreementRecord,
    ScoreAgreement,
    recommend,
    spearman,
)
from paraloom.pipeline.judging.describe import alpha, describe_judges, precision_line
from paraloom.pipeline.judging.judgments import Judgment, PairTexts, read_judgments
from paraloom.pipeline.pages.describe import score
from paraloom.pipeline.run.folder import shards_of
from paraloom.pipeline.run.records import RunRecord, ScorerRecord

_MEETS = "meets"


@dataclass(kw_only=True)
class JudgedPairs:
    """The labels and scores of n judged pairs with different sides."""

    labels: npt.NDArray[np.float64]  # [n], 0 to 100
    references: npt.NDArray[Any]  # [n], the texts
    scores: dict[str, npt.NDArray[np.float64]]  # [n] for each score
    deciles: dict[str, npt.NDArray[np.int64]]  # [n] for each score
    rows: dict[str, list[int]]  # for each score, the number of rows in each decile, judged or not
    higher_is_better: dict[str, bool]
    counts: dict[str, Any] = field(default_factory=dict)  # further fields of `AgreementRecord`


def join(
    judgments: Sequence[Judgment],
    shards: Iterable[Shard],
    scores: Sequence[str],
    *,
    own: Mapping[str, ScorerRecord],
    where: Sequence[Predicate] = (),
) -> JudgedPairs:
    """Join judgments with their pairs' scores. `shards` contain the columns `scores`.

    A pair's label is the mean of its judges' labels. A pair counts if its sides differ and its
    first row meets `where`. `own` contains scorers that are not built in.
    """
    labels = by_pair(judgments)
    found, rows = judged_rows(labels, shards, scores, where)
    different = {pair: row for pair, row in found.items() if pair[0] != pair[1]}
    by_id = sorted(different.items(), key=lambda of: (of[1]["id"], of[1].get("candidate", 0)))
    counted = [(pair, row) for pair, row in by_id if row[_MEETS]]
    return JudgedPairs(
        labels=np.array([np.mean(labels[pair]) for pair, _ in counted], float),
        references=np.array([row["reference"] for _, row in counted], object),
        scores={s: np.array([row[s] for _, row in counted], float) for s in scores},
        deciles={
            s: np.array([row[schema.decile(s)] for _, row in counted], np.int64) for s in scores
        },
        rows=rows,
        higher_is_better={name: score(name, own).higher_is_better for name in scores},
        counts={
            "copies": len(found) - len(different),
            "judges": len({judgment.judge for judgment in judgments}),
            "alpha": alpha(judgments),
            "judgments": len(judgments),
            "gone": sum(len(of) for pair, of in labels.items() if pair not in found),
            "where": list(map(str, where)),
            "outside": len(different) - len(counted),
        },
    )


def by_pair(judgments: Iterable[Judgment]) -> dict[PairTexts, list[float]]:
    """Group the judges' labels by the texts of the pairs."""
    labels: dict[PairTexts, list[float]] = {}
    for judgment in judgments:
        labels.setdefault(judgment.pair, []).append(judgment.score)
    return labels


def judged_rows(
    wanted: Mapping[PairTexts, object],
    shards: Iterable[Shard],
    scores: Sequence[str] = (),
    where: Sequence[Predicate] = (),
    more: Sequence[str] = (),
) -> tuple[dict[PairTexts, dict[str, Any]], dict[str, list[int]]]:
    """Return the first row of each judged pair, and the number of rows by score and decile.

    The value `meets` of a returned row says whether the row meets `where`. Only rows that meet
    `where` and have different sides are counted.
    """
    references = pa.array(sorted({reference for reference, _ in wanted}), pa.string())
    columns = [*schema.ROW, "reference", "translation", *more]
    columns += [*scores, *map(schema.decile, scores)]
    columns = list(dict.fromkeys([*columns, *(predicate.column for predicate in where)]))
    found: dict[PairTexts, dict[str, Any]] = {}
    counts = {name: np.zeros(DECILES, np.int64) for name in scores}
    for shard in shards:
        table = read_shard(shard, columns)
        meets = np.ones(len(table), bool)
        for predicate in where:
            meets &= predicate.holds_in(table[predicate.column])
        counted = meets & pc.not_equal(table["reference"], table["translation"]).to_numpy()
        for name in scores:
            deciles = table[schema.decile(name)].to_numpy()[counted]
            counts[name] += np.bincount(deciles, minlength=DECILES)
        table = table.append_column(_MEETS, pa.array(meets))
        for row in table.filter(pc.is_in(table["reference"], value_set=references)).to_pylist():
            pair = row["reference"], row["translation"]
            if pair in wanted:
                found.setdefault(pair, row)
    return found, {name: of.tolist() for name, of in counts.items()}


def score_labels(
    path: str,
    names: Sequence[str] = (),
    *,
    resources: Mapping[str, Any] | None = None,
    where: Sequence[str] = (),
) -> JudgedPairs:
    """Score the labelled pairs of a file, except pairs with equal sides. Scale labels to 0–100."""
    if not Path(path).exists():
        raise UserError(f"--labels {path}: does not exist")
    resources, sets = resources or {}, read_labelled(path)
    labels = [100 * (of.scores - of.scale[0]) / (of.scale[1] - of.scale[0]) for of in sets]
    first, second = pa.concat_arrays([of.first for of in sets]), [of.second for of in sets]
    texts = pa.table({"reference": first, "translation": pa.concat_arrays(second)})
    differ = pc.not_equal(texts["reference"], texts["translation"]).combine_chunks()
    texts = texts.filter(differ).combine_chunks()
    names = names or default_names(resources)
    sides = (texts[side].combine_chunks() for side in ("reference", "translation"))
    values = PairScorer(names, **resources).score(*sides)
    columns = {name: np.asarray(of, float) for name, of in values.items()}
    for name in names:
        ranks = columns[name].argsort(kind="stable").argsort()
        columns[schema.decile(name)] = np.searchsorted(decile_ranks(len(ranks)), ranks, "right")
    meets, predicates = np.ones(len(texts), bool), conditions(where, names)
    for predicate in predicates:
        meets &= predicate.holds(columns[predicate.column])
    deciles = {name: columns[schema.decile(name)][meets].astype(np.int64) for name in names}
    return JudgedPairs(
        labels=np.concatenate(labels)[differ.to_numpy(zero_copy_only=False)][meets],
        references=np.array(texts["reference"].to_pylist(), object)[meets],
        scores={name: columns[name][meets] for name in names},
        deciles=deciles,
        rows={name: np.bincount(of, minlength=DECILES).tolist() for name, of in deciles.items()},
        higher_is_better={name: score(name).higher_is_better for name in names},
        counts={
            "copies": len(differ) - len(texts),
            "where": list(map(str, predicates)),
            "outside": int(np.count_nonzero(~meets)),
        },
    )


def default_names(resources: Iterable[str] = ()) -> list[str]:
    """Return built-in scorers, except ENCODER, that need no resources other than `resources`."""
    return [
        name
        for name, scorer in SCORERS.items()
        if name != ENCODER and (not scorer.resource or scorer.resource.name in resources)
    ]


def conditions(
    texts: Sequence[str], scores: Sequence[str], kept: Sequence[str] = ()
) -> list[Predicate]:
    """Parse the conditions of `--where` on the columns `scores` and `kept`."""
    try:
        found = [Predicate.parse(text) for text in texts]
        for predicate in found:
            predicate.check(scores, kept)
    except ValueError as error:
        raise UserError(f"--where: {error}") from error
    return found


def measure(pairs: JudgedPairs, *, good: float, precisions: Sequence[float]) -> AgreementRecord:
    """Compute correlations, numbers of good pairs by decile, and the best deciles for each
    precision."""
    is_good = pairs.labels >= good
    references = len(np.unique(pairs.references))
    correlations = spearman(pairs.scores, pairs.labels, references)
    scores = {
        name: ScoreAgreement(
            spearman=correlations[name][0],
            interval=correlations[name][1],
            good=np.bincount(deciles[is_good], minlength=DECILES).tolist(),
            judged=np.bincount(deciles, minlength=DECILES).tolist(),
            rows=pairs.rows[name],
            higher_is_better=pairs.higher_is_better[name],
        )
        for name, deciles in pairs.deciles.items()
    }
    cuts = (recommend(scores, wanted) for wanted in precisions)
    return AgreementRecord(
        pairs=len(pairs.labels),
        references=references,
        rows=sum(next(iter(pairs.rows.values()), [])),
        good=good,
        good_pairs=int(is_good.sum()),
        **pairs.counts,
        scores=scores,
        cuts=[cut for cut in cuts if cut],
    )


@lru_cache(maxsize=64)  # several pages read the same labels
def _corpus_labels(judgments: Sequence[Judgment], shards: Sequence[Shard]) -> npt.NDArray[Any]:
    return join(judgments, shards, [], own={}).labels


def corpus_precisions(folder: str, record: RunRecord) -> dict[str, str]:
    """Return a line about the precision of each corpus in the result of `corpus_counts`."""
    counts = corpus_counts(folder, record)
    return {place: precision_line(place, *of) for place, of in counts.items()}


def corpus_counts(folder: str, record: RunRecord, good: float = 0) -> dict[str, tuple[int, int]]:
    """Count the good pairs and the judged pairs of each finished corpus that has judged pairs.

    The keys of the result are `selections/NAME`, or "" for the run's own corpus. A pair is good if
    its label is at least `good` or, if `good` is 0, at least `select.good`.
    """
    judgments, found = read_judgments(folder), {}
    selections = [f"selections/{name}" for name in record.config.select.selections]
    for place in ("", *selections) if judgments else ():
        of = record.derived(place)
        if "select" in of.stages:
            labels = _corpus_labels(tuple(judgments), tuple(shards_of(folder, of.path("select"))))
            if len(labels):
                least = good or of.config.select.good
                found[place] = int(np.sum(labels >= least)), len(labels)
    return found


def judge_lines(folder: str, record: RunRecord) -> list[str]:
    """Describe the judges of a run and the precision of its corpora, in lines of text."""
    lines = describe_judges(read_judgments(folder))
    return [*lines, *corpus_precisions(folder, record).values()]
