"""The record of a run with several rounds: which is best, and the view of one."""

from collections.abc import Collection, Mapping

from paraloom.models.scorers import ENCODER
from paraloom.pipeline.config.selection import CHOSEN
from paraloom.pipeline.judging.describe import labelled_in_words
from paraloom.pipeline.manifest import best_round
from paraloom.pipeline.names import PAIR_STAGES, RANKING, RESULTS, stage_path
from paraloom.pipeline.records import LoopRecord, RunRecord, StageRecord


def rounds(record: RunRecord) -> list[int]:
    """The numbers of the rounds of a finished loop; none if there was only one round."""
    loop = record.find(LoopRecord)
    return list(range(1, 1 + len(loop.labelled))) if loop else []


def verdict(record: RunRecord) -> str:
    """One sentence for a finished loop: which round is best, and the scores of the others."""
    loop = record.find(LoopRecord)
    if loop is None:
        return ""
    others = [(n, of) for n, of in enumerate(loop.labelled, 1) if n != loop.best]
    scores = ", ".join(f"{of:.2f} in round {number}" for number, of in others)
    best, all_rounds = loop.labelled[loop.best - 1], len(loop.labelled)
    over = f"mean over {loop.data_sets} data sets" if loop.data_sets > 1 else "one data set"
    return (
        f"Round {loop.best} of {all_rounds} is best: {best:.2f} on the labelled pairs, "
        f"against {scores} (Pearson × 100, {over} with {labelled_in_words(best, loop.pairs)})"
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
    the first round's, and the configuration is the best round's.
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
