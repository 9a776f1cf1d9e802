"""The record of a run with several rounds: what each came to, and what the result rests on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from models.scorers import ENCODER
from pipeline.stage import RANKING, place

Record = dict[str, Any]


class Round(NamedTuple):
    """A round as the manifest has it.

    Attributes:
        by, deciles: what its pairs were selected by.
        pairs: in its corpus.
        labelled: agreement of its encoder with the labelled pairs, Pearson × 100.
    """

    number: int
    by: str
    deciles: list[int]
    pairs: int
    labelled: float
    kept: bool


def only(record: Record, names: Iterable[str]) -> Record:
    """The record with these of its stages alone: an earlier configuration may have left others."""
    stages = record["stages"]
    return {**record, "stages": {name: stages[name] for name in names if name in stages}}


def rounds(record: Record) -> list[Round]:
    """The rounds of a finished loop; none where there was one round only."""
    stages, select = record["stages"], record["config"]["select"]
    found = []
    for number, labelled in enumerate(stages.get("loop", {}).get("labelled", []), 1):
        by, deciles = select["by"] if number == 1 else ENCODER, select["deciles"]
        if select["by"] == "auto":
            chosen = stages[place("choice", number)]["chosen"]
            by, deciles = chosen["scorer"], chosen["deciles"]
        pairs = stages[place("corpus", number)]["rows_out"]
        kept = number == stages["loop"]["best"]
        found.append(Round(number, by, deciles, pairs, labelled, kept))
    return found


def verdict(record: Record) -> str:
    """Which round is kept, and by how much it is ahead."""
    found = rounds(record)
    loop = record["stages"]["loop"]
    (best,) = (each for each in found if each.kept)
    others = [each for each in found if not each.kept]
    said = ", ".join(f"{each.labelled:.2f} in round {each.number}" for each in others)
    over = f"mean over {loop['data_sets']} data sets" if loop["data_sets"] > 1 else "one data set"
    return (
        f"Round {best.number} of {len(found)} is kept: {best.labelled:.2f} on the labelled pairs, "
        f"against {said} (Pearson × 100, {over} with {loop['pairs']:,} pairs)"
    )


def kept_round(stages: Record) -> int:
    """Whose corpus is the run's: 0 where there was one round only, or there are no more now."""
    number = int(stages.get("corpus", {}).get("round", 0))
    return number if place("corpus", number) in stages else 0


def way(stages: Record) -> list[str]:
    """The finished stages of pairs on the way to the run's corpus, in order."""
    number = kept_round(stages)
    ranked = (place(name, number) for name in ("score", "bucket"))
    names = dict.fromkeys(("ingest", "back_translate", "score", *ranked, "corpus"))
    return [name for name in names if name in stages]


def kept(record: Record) -> Record:
    """The record without the rounds that the result does not rest on.

    Deciles and choice of the kept round stand under their plain names, its scores behind those of
    the first, and the configuration is what that round went by.

    Args:
        record: what the manifest holds: config, stages and more.
    """
    stages, config = record["stages"], record["config"]
    number = kept_round(stages)
    found: Record = {}
    for name in (name for name in stages if not name.startswith("rounds/")):
        own = place(name, number) if name in RANKING else name
        found |= {name: stages[name], own: stages[own]} if name == "score" else {name: stages[own]}
    if number > 1:
        score = {**config["score"], "scorers": [*config["score"]["scorers"], ENCODER]}
        by = config["select"]["by"]
        select = {**config["select"], "by": by if by == "auto" else ENCODER}
        config = {**config, "score": score, "select": select}
    return {**record, "config": config, "stages": found}
