"""`loop.rounds`: repeated selection and training, of which the best round is the result.

The first round's scores, deciles and automatic selection are where a run with one round has them;
everything else of a round is in `rounds/<n>/`, a run that is derived from it. A round after the
first ranks pairs by the similarity that the encoder of the round before gives (ParaNMT, footnote
2), and trains its encoder from scratch, with the same options and seed.

After all rounds, the stage `loop` evaluates their encoders on the labelled pairs. `select`,
`embeddings` and `evaluate` are then copies of the best round's, where every run has its result.
"""

from collections.abc import Sequence
from dataclasses import replace

from paraloom.beam_jobs.engine.shards import DamagedError
from paraloom.pipeline.run.records import LoopRecord, StageRecord
from paraloom.pipeline.run.run import Run
from paraloom.pipeline.run.stage import Stage


def in_round(stage: Stage, run: Run) -> Stage:
    """A stage of a round: after the first, `score` adds a column to the first round's pairs."""
    if run.before is None or stage.name != "score":
        return stage
    assert run.base
    return replace(stage, depends_on=(), others=((run.base, "score"), (run.before, "embeddings")))


def best_of(stage: Stage, rounds: Sequence[Run]) -> Stage:
    """The stage that copies the result of the best round."""

    def make(run: Run, key: str) -> StageRecord:
        number = run.record(LoopRecord).best
        best = rounds[number - 1]
        assert stage.copy is not None
        stage.copy(best, run)
        return best.records[stage.name].model_copy(update={"round": number, "peak_memory": 0})

    others = tuple((of, stage.name) for of in rounds)
    return replace(
        stage,
        depends_on=("loop",),
        others=others,
        version=1,
        fingerprint=lambda run: None,
        make=make,
    )


def copy_finished(stage: Stage, run: Run, key: str) -> StageRecord | None:
    """Copy a result with the same key, so that it is not made again.

    A first round has the keys of a run with one round, but other folders. If the number of rounds
    changes, the result is in the one and needed in the other. Returns its record, if there is one.
    """
    if stage.copy is None or run.place not in ("", "rounds/1"):
        return None
    there = run.base if run.base and run.place else run.derived("rounds/1")
    record = there.records.get(stage.name)
    try:
        if record is None or record.key != key or not stage.is_valid(there, stage.name):
            return None
        stage.copy(there, run)
    except DamagedError:  # then it is made
        return None
    return record
