"""`loop.rounds`: repeated selection and training, of which the best round is the result.

The first round's scores, deciles and automatic selection are where a run with one round has them;
everything else of a round is in `rounds/<n>/`. A round after the first ranks pairs by the
similarity that the encoder of the round before gives (ParaNMT, footnote 2), and trains its encoder
from scratch, with the same options and seed.

After all rounds, the stage `loop` evaluates their encoders on the labelled pairs. `select`,
`embeddings` and `evaluate` are then copies of the best round's, where every run has its result.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from paraloom.beam_jobs.engine.shards import DamagedError, content_key
from paraloom.beam_jobs.storage import remote
from paraloom.pipeline.config import Config
from paraloom.pipeline.names import RANKING, RESULTS, stage_path
from paraloom.pipeline.records import LoopRecord, StageRecord
from paraloom.pipeline.stage import Run, Stage
from paraloom.pipeline.stages.selection import auto_select


def repeat_rounds(stages: Sequence[Stage], rounds: int) -> tuple[Stage, ...]:
    """The stages of a run with several rounds, from the stages of a run with one."""
    by_name = {stage.name: stage for stage in stages}
    first = list(by_name).index("select")
    of_rounds = [
        _of_round(by_name[name], number)
        for number in range(1, rounds + 1)
        for name in (RESULTS if number == 1 else (*RANKING, *RESULTS))
    ]
    loop = Stage(
        name="loop",
        depends_on=tuple(stage_path("embeddings", number + 1) for number in range(rounds)),
        fingerprint=auto_select.labelled_digests,
        make=make_loop,
        check=auto_select.check_labelled,
    )
    rest = [_of_best(s, rounds) if s.name in RESULTS else s for s in stages[first:]]
    return (*stages[:first], *of_rounds, loop, *rest)


def _of_round(stage: Stage, number: int) -> Stage:
    """The stage of a round, which reads the other stages of the round."""

    def depends_on(config: Config) -> tuple[str, ...]:
        if stage.name == "score":
            return ("score", stage_path("embeddings", number - 1))
        return tuple(stage_path(name, number) for name in stage.dependencies(config))

    return replace(stage, name=stage_path(stage.name, number), round=number, depends_on=depends_on)


def _of_best(stage: Stage, rounds: int) -> Stage:
    """The stage that copies the result of the best round."""

    def make(run: Run, key: str) -> StageRecord:
        best = run.at(run.record(LoopRecord).best)
        assert stage.copy is not None
        stage.copy(best, run)
        record = best.manifest.stages[stage_path(stage.name, best.round)]
        return record.model_copy(update={"round": best.round, "peak_memory": 0})

    depends_on = ("loop", *(stage_path(stage.name, number + 1) for number in range(rounds)))
    return replace(stage, depends_on=depends_on, version=1, fingerprint=lambda run: None, make=make)


def make_loop(run: Run, key: str) -> LoopRecord:
    """Evaluate the encoder of every round on the labelled pairs.

    A score is Pearson × 100, the mean over the data sets; a data set on which an encoder gives all
    pairs the same similarity counts as 0. Of equally good rounds the first is best.
    """
    from paraloom.models.embeddings.applications.evaluation import agreement
    from paraloom.models.embeddings.model import load_encoder

    labelled = auto_select.read_labelled(run.config.select.labelled_paths)
    scores = []
    for number in range(1, run.config.loop.rounds + 1):
        embed = load_encoder(remote.localise(run.at(number).folder("embeddings"))).embed
        found = [agreement(embed, data).pearson for data in labelled]
        scores.append(round(float(np.mean(np.nan_to_num(found))), 4))
    best = 1 + scores.index(max(scores))
    return LoopRecord(
        labelled=scores,
        data_sets=len(labelled),
        pairs=sum(len(data.first) for data in labelled),
        best=best,
        digest=content_key(scores, best),
    )


def copy_finished(stage: Stage, run: Run, key: str) -> StageRecord | None:
    """Copy a result with the same key, so that it is not made again.

    A first round has the keys of a run with one round, but other folders. If the number of rounds
    changes, the result is in the one and needed in the other. Returns its record, if there is one.
    """
    if stage.copy is None or stage.round > 1:
        return None
    there, here = run.at(1 - stage.round), run.at(stage.round)
    record = run.manifest.stages.get(stage_path(stage.kind, there.round))
    try:
        if record is None or record.key != key or not stage.is_valid(there, stage.kind):
            return None
        stage.copy(there, here)
    except DamagedError:  # then it is made
        return None
    return record
