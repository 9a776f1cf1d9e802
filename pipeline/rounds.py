"""`loop.rounds`: pairs are selected and an encoder is trained more than once; the best one stays.

Scores, deciles and choice of the first round stand where they always do. What else a round makes
is in `rounds/<n>/`. A round after the first has scores and deciles of its own: those of the first,
and how alike the encoder of the round before finds the sides (ParaNMT, footnote 2). It trains from
scratch, with the same options and seed.

When all rounds are done, `loop` judges their encoders by the labelled pairs. `corpus`, `embeddings`
and `evaluate` are then copies of what the best round has: where every run has its result.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from beam_jobs import select
from beam_jobs.io import remote, storage
from beam_jobs.io.copy_stage import copy_pairs
from beam_jobs.io.shards import DamagedError, content_key
from models.files import atomic_folder
from pipeline import pair_stages
from pipeline.choice import labelled_parts, read_labelled
from pipeline.config import Config
from pipeline.model_stages import evaluation_path
from pipeline.records import LoopRecord, StageRecord
from pipeline.stage import RANKING, RESULTS, Run, Stage, place


def looped(stages: Sequence[Stage], rounds: int) -> tuple[Stage, ...]:
    """The stages of a run with several rounds, from those of a run with one."""
    by_name = {stage.name: stage for stage in stages}
    first = list(by_name).index("corpus")
    of_rounds = [
        _of_round(by_name[name], number)
        for number in range(1, rounds + 1)
        for name in (RESULTS if number == 1 else (*RANKING, *RESULTS))
    ]
    loop = Stage(
        name="loop",
        needs=tuple(place("embeddings", number + 1) for number in range(rounds)),
        parts=labelled_parts,
        make=make_loop,
        intact=lambda run: True,  # the account is all there is
    )
    rest = [_kept(s, rounds) if s.name in RESULTS else s for s in stages[first:]]
    return (*stages[:first], *of_rounds, loop, *rest)


def _of_round(stage: Stage, number: int) -> Stage:
    """A stage as a round has it: the same, on what this round made."""

    def needs(config: Config) -> tuple[str, ...]:
        if stage.name == "score":
            return ("score", place("embeddings", number - 1))
        return tuple(place(need, number) for need in stage.reads(config))

    make = pair_stages.make_score_by_encoder if stage.name == "score" else stage.make
    return replace(stage, name=place(stage.name, number), round=number, needs=needs, make=make)


def _kept(stage: Stage, rounds: int) -> Stage:
    """A stage that takes over what the best round has."""

    def make(run: Run, key: str) -> dict[str, Any]:
        started = time.monotonic()
        best = run.at(run.record(LoopRecord).best)
        _COPY[stage.name](best, run)
        return {
            **best.manifest.stages[place(stage.name, best.round)].model_dump(
                exclude_unset=True, exclude={"key", "peak_memory"}
            ),
            "round": best.round,
            "seconds": round(time.monotonic() - started, 3),
        }

    needs = ("loop", *(place(stage.name, number + 1) for number in range(rounds)))
    return replace(stage, needs=needs, version=1, parts=lambda run: None, make=make)


def make_loop(run: Run, key: str) -> dict[str, Any]:
    """Judge every round's encoder by the labelled pairs, and say which one is best.

    Pearson × 100, the mean over the data sets; one on which an encoder says the same of every pair
    counts as 0. Of equally good rounds it is the first.
    """
    from models.embeddings.applications.evaluation import agreement
    from models.embeddings.model import load_encoder

    started = time.monotonic()
    labelled = read_labelled(run.config.select.labelled_paths)
    scores = []
    for number in range(1, run.config.loop.rounds + 1):
        embed = load_encoder(remote.local(run.at(number).folder("embeddings"))).embed
        found = [agreement(embed, data).pearson for data in labelled]
        scores.append(round(float(np.mean(np.nan_to_num(found))), 4))
    best = 1 + scores.index(max(scores))
    return {
        "labelled": scores,
        "data_sets": len(labelled),
        "pairs": sum(len(data.first) for data in labelled),
        "best": best,
        "seconds": round(time.monotonic() - started, 3),
        "digest": content_key(scores, best),
    }


def taken_over(stage: Stage, run: Run, key: str) -> StageRecord | None:
    """The account of a first round's stage that is finished, but in the place that it has where a
    run has more rounds, or only one; its files are copied. None where there is none.
    """
    if stage.base not in _COPY or stage.round > 1:
        return None
    there, here = run.at(1 - stage.round), run.at(stage.round)
    record = run.manifest.stages.get(place(stage.base, there.round))
    try:
        if record is None or record.key != key or not stage.intact(there):
            return None
        _COPY[stage.base](there, here)
    except DamagedError:  # then it is made
        return None
    return record


def _copy_corpus(source: Run, target: Run) -> None:
    folders = [run.folder("corpus") for run in (source, target)]
    text, copy = map(select.tsv_path, folders)
    storage.remove(copy)
    copy_pairs(*folders)
    storage.copy(text, copy)


def _copy_encoder(source: Run, target: Run) -> None:
    with atomic_folder(target.made("embeddings")) as folder:
        shutil.copytree(remote.local(source.folder("embeddings")), folder, dirs_exist_ok=True)
    target.publish("embeddings")


def _copy_evaluation(source: Run, target: Run) -> None:
    storage.copy(evaluation_path(source), evaluation_path(target))


_COPY: dict[str, Callable[[Run, Run], None]] = {
    "corpus": _copy_corpus,
    "embeddings": _copy_encoder,
    "evaluate": _copy_evaluation,
}
