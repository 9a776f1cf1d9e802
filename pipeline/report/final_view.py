"""The record of a run with several rounds: each round's result, and the view of the best one."""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from paraloom.models.scorers import ENCODER
from paraloom.pipeline.config.selection import CHOSEN
from paraloom.pipeline.manifest import best_round
from paraloom.pipeline.names import PAIR_STAGES, RANKING, RESULTS, stage_path
from paraloom.pipeline.records import LoopRecord, PairsRecord, RunRecord, StageRecord
from paraloom.pipeline.report.describe import resolve_auto


class Round(NamedTuple):
    """A round as the manifest has it."""

    number: int
    by: str  # the score and the deciles that its pairs were selected by
    deciles: list[int] | None
    pairs: int  # number of pairs in its corpus
    labelled: float  # agreement of its encoder with the labelled pairs, Pearson × 100
    is_best: bool  # whether the result of the run is that of this round


def rounds(record: RunRecord) -> list[Round]:
    """The rounds of a finished loop; none if there was only one round."""
    loop = record.find(LoopRecord)
    found: list[Round] = []
    for number, labelled in enumerate(loop.labelled if loop else (), 1):
        select = resolve_auto(record, number)
        ranked = number > 1 and record.config.select.by not in CHOSEN
        corpus = record.find(PairsRecord, stage_path("select", number)) or PairsRecord()
        found.append(
            Round(
                number,
                by=ENCODER if ranked else select.by,
                deciles=select.deciles,
                pairs=corpus.rows_out,
                labelled=labelled,
                is_best=loop is not None and number == loop.best,
            )
        )
    return found


def verdict(record: RunRecord) -> str:
    """One sentence for a finished loop: which round is best, and the scores of the others."""
    loop, found = record.find(LoopRecord), rounds(record)
    if loop is None:
        return ""
    (best,) = (each for each in found if each.is_best)
    others = [each for each in found if not each.is_best]
    scores = ", ".join(f"{each.labelled:.2f} in round {each.number}" for each in others)
    over = f"mean over {loop.data_sets} data sets" if loop.data_sets > 1 else "one data set"
    return (
        f"Round {best.number} of {len(found)} is best: {best.labelled:.2f} on the labelled pairs, "
        f"against {scores} (Pearson × 100, {over} with {loop.pairs:,} pairs)"
    )


def pair_stages(stages: Mapping[str, StageRecord]) -> list[str]:
    """The finished pair stages that lead to the run's corpus, in order."""
    found: list[str] = []
    for name in PAIR_STAGES:
        own = stage_path(name, best_round(stages)) if name in RANKING else name
        found += dict.fromkeys((name, own) if name == "score" else (own,))
    return [name for name in found if name in stages]


def final_view(record: RunRecord) -> RunRecord:
    """The record without the rounds that the result does not depend on.

    Deciles and automatic selection of the best round have their plain names, its scores follow
    those of the first round, and the configuration is the one of that round.
    """
    return _view(record, best_round(record.stages), RANKING)


def round_view(record: RunRecord, number: int) -> RunRecord:
    """The record as `final_view` would give it if this round were the best one."""
    return _view(record, number, (*RANKING, *RESULTS))


def _view(record: RunRecord, number: int, of_round: Collection[str]) -> RunRecord:
    stages, config = record.stages, record.config
    found: dict[str, StageRecord] = {}
    for name in (name for name in stages if not name.startswith(("rounds/", "selections/"))):
        own = stage_path(name, number) if name in of_round else name
        found |= {name: stages[name], own: stages[own]} if name == "score" else {name: stages[own]}
    if number > 1:
        scorers = [*config.score.names, ENCODER]
        score = config.score.model_copy(update={"scorers": scorers})
        by = config.select.by if config.select.by in CHOSEN else ENCODER
        select = config.select.model_copy(update={"by": by})
        config = config.model_copy(update={"score": score, "select": select})
    return record.model_copy(update={"config": config, "stages": found})
