"""Judgments joined with the scores of a run's pairs, and what they say of the scores."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from paraloom.beam_jobs.io import schema
from paraloom.beam_jobs.io.shards import Shard, read_shard
from paraloom.beam_jobs.transforms.conditions import Predicate
from paraloom.models.agreement.correlation import spearman
from paraloom.models.agreement.cuts import Judged, recommend
from paraloom.models.agreement.precision import DECILES
from paraloom.models.errors import UserError
from paraloom.models.scorers import SCORERS
from paraloom.pipeline.judging.describe import alpha, precision_line
from paraloom.pipeline.judging.judgments import Judgment, Key, in_order, read_judgments
from paraloom.pipeline.judging.record import AgreementRecord, CutResult, ScoreAgreement
from paraloom.pipeline.manifest import selection_view
from paraloom.pipeline.names import stage_path
from paraloom.pipeline.records import RunRecord, ScorerRecord
from paraloom.pipeline.stage import shards_of

_TEXTS = ("reference", "translation")
_MEETS = "meets"


@dataclass(kw_only=True)
class JudgedPairs:
    """n judged pairs with their scores; copies are left out."""

    labels: npt.NDArray[np.float64]  # [n], 0 to 100
    references: npt.NDArray[Any]  # [n]: pairs of the same reference have the same value
    scores: dict[str, npt.NDArray[np.float64]]  # [n] each
    deciles: dict[str, npt.NDArray[np.int64]]  # [n] each, among all pairs of the run or file
    rows: dict[str, list[int]]
    """Pairs of the run or file in each decile of each score, without copies, which selection leaves
    out: a decile may consist of copies."""
    higher_is_better: dict[str, bool]
    counts: dict[str, Any] = field(default_factory=dict)  # further fields of `AgreementRecord`
    left_out: dict[str, str] = field(default_factory=dict)  # as in `AgreementRecord`


def directions(names: Iterable[str], own: Mapping[str, ScorerRecord]) -> dict[str, bool]:
    """Whether more is better, for each score; `own` are scorers that are not Paraloom's."""
    known: Mapping[str, Any] = {**SCORERS, **own}
    return {name: known[name].higher_is_better if name in known else True for name in names}


def join(
    judgments: Sequence[Judgment],
    shards: Iterable[Shard],
    scores: Sequence[str],
    *,
    own: Mapping[str, ScorerRecord],
    where: Sequence[Predicate] = (),
) -> JudgedPairs:
    """The judged pairs of a run; the label of a pair is the mean over its judges.

    A judgment counts if the run has its pair with the texts that were judged, and the pair meets
    the conditions. `shards` come from the stage `bucket`; `own` has the run's scorers that are
    not Paraloom's.
    """
    of_pair: dict[Key, list[Judgment]] = {}
    for judgment in judgments:
        of_pair.setdefault((judgment.id, judgment.candidate), []).append(judgment)
    found, rows = _read(of_pair, shards, scores, where)
    present = copies = changed = outside = 0
    labels: list[float] = []
    counted: list[dict[str, Any]] = []
    for key, row in sorted(found.items(), key=in_order):
        texts = tuple(row[name] for name in _TEXTS)
        same = [j.score for j in of_pair[key] if (j.reference, j.translation) == texts]
        present += len(of_pair[key])
        changed += len(of_pair[key]) - len(same)
        if same and texts[0] == texts[1]:
            copies += 1
        elif same and not row[_MEETS]:
            outside += 1
        elif same:
            labels.append(float(np.mean(same)))
            counted.append(row)
    return JudgedPairs(
        labels=np.array(labels, float),
        references=np.array([row["reference"] for row in counted], object),
        scores={s: np.array([row[s] for row in counted], float) for s in scores},
        deciles={s: np.array([row[schema.decile(s)] for row in counted], np.int64) for s in scores},
        rows=rows,
        higher_is_better=directions(scores, own),
        counts={
            "copies": copies,
            "judges": len({judgment.judge for judgment in judgments}),
            "alpha": alpha(judgments),
            "judgments": len(judgments),
            "changed": changed,
            "gone": len(judgments) - present,
            **({"where": list(map(str, where)), "outside": outside} if where else {}),
        },
    )


def measure(
    pairs: JudgedPairs, *, good: float, precisions: Sequence[float], seed: int = 1
) -> AgreementRecord:
    """Correlations, shares of good pairs (with labels of at least `good`), and a cut for each
    wanted precision."""
    is_good = pairs.labels >= good
    directions, rows = pairs.higher_is_better, pairs.rows
    judged = Judged(pairs.deciles, directions, is_good, pairs.references, rows)
    correlations = spearman(pairs.scores, pairs.labels, pairs.references, seed=seed)
    scores = {}
    curves = judged.curves()
    for name, correlation in correlations.items():
        deciles = pairs.deciles[name]
        scores[name] = ScoreAgreement(
            spearman=correlation.value,
            interval=correlation.interval,
            good=np.bincount(deciles[is_good], minlength=DECILES).tolist(),
            judged=np.bincount(deciles, minlength=DECILES).tolist(),
            rows=rows[name],
            precision=[float(p) if np.isfinite(p) else None for p in curves[name]],
            higher_is_better=directions[name],
        )
    cuts = []
    for wanted in precisions:
        if cut := recommend(judged, wanted, seed=seed):
            labels = is_good[np.isin(pairs.deciles[cut.score], cut.deciles)]
            cuts.append(CutResult(**asdict(cut), judged=len(labels), good=int(labels.sum())))
    return AgreementRecord(
        pairs=len(pairs.labels),
        references=judged.references,
        rows=sum(next(iter(rows.values()), [])),
        good=good,
        good_pairs=int(is_good.sum()),
        **pairs.counts,
        scores=scores,
        left_out=pairs.left_out,
        cuts=cuts,
    )


def corpus_precisions(folder: str, record: RunRecord, good: float | None = None) -> dict[str, str]:
    """A line on the precision of each finished corpus of the run in `folder` that has judged pairs,
    by the name of the selection, "" for the run's own.

    A pair is good if its label is at least `good`, by default `select.good`.
    """
    judgments, found = read_judgments(folder), {}
    for name in ("", *record.config.select.named) if judgments else ():
        if (stage := stage_path("select", name)) in record.stages:
            labels = join(judgments, shards_of(folder, stage), [], own={}).labels
            least = good or selection_view(record, name).config.select.good
            if len(labels):
                found[name] = precision_line(name, int(np.sum(labels >= least)), len(labels))
    return found


def conditions(
    texts: Sequence[str], scores: Sequence[str], kept: Sequence[str] = ()
) -> list[Predicate]:
    """The conditions of `--where` on pairs with these scores and `kept` columns."""
    try:
        found = [Predicate.parse(text) for text in texts]
        for predicate in found:
            predicate.check(scores, kept)
    except ValueError as error:
        raise UserError(f"--where: {error}") from error
    return found


def _read(
    wanted: Mapping[Key, object],
    shards: Iterable[Shard],
    scores: Sequence[str],
    where: Sequence[Predicate],
) -> tuple[dict[Key, dict[str, Any]], dict[str, list[int]]]:
    """The rows of the run that are judged, and whether they meet the conditions; and the number of
    its rows that do, by score and decile."""
    ids = pa.array(sorted({id for id, _ in wanted}), pa.string())
    columns = [*schema.ROW, *_TEXTS, *scores, *map(schema.decile, scores)]
    columns = list(dict.fromkeys([*columns, *(predicate.column for predicate in where)]))
    found: dict[Key, dict[str, Any]] = {}
    counts = {score: np.zeros(DECILES, np.int64) for score in scores}
    for shard in shards:
        table = read_shard(shard, columns)
        differ = pc.not_equal(table["reference"], table["translation"]).to_numpy()
        meets = np.ones(len(differ), bool)
        for predicate in where:
            meets &= predicate.holds_in(table[predicate.column])
        table = table.append_column(_MEETS, pa.array(meets))
        for score in scores:
            deciles = table[schema.decile(score)].to_numpy()[differ & meets]
            counts[score] += np.bincount(deciles, minlength=DECILES)
        for row in table.filter(pc.is_in(table["id"], value_set=ids)).to_pylist():
            key = row["id"], row.get(schema.CANDIDATE.name)
            if key in wanted:
                found[key] = row
    return found, {score: of.tolist() for score, of in counts.items()}
