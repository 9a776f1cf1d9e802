"""`loop.rounds`: selection and training are repeated, and the result is the best round.

The first round's scores, deciles and automatic selection are in the run's own folders, as in a run
with one round; its other stages, and later rounds, are in `rounds/<n>/`, derived runs. A round
after the first ranks pairs by the similarity of the encoder before (ParaNMT, footnote 2), and
trains its encoder from scratch, with the same options and seed.

After all rounds, the stage `loop` evaluates their encoders on the labelled pairs. The run's own
`select`, `embeddings` and `evaluate` are then copies from the best round.
"""

from collections.abc import Sequence
from dataclasses import replace

from paraloom.beam_jobs.engine.shards import DamagedError
from paraloom.pipeline.run.records import LoopRecord, StageRecord
from paraloom.pipeline.run.run import Run
from paraloom.pipeline.run.stage import Stage


def in_round(stage: Stage, run: Run) -> Stage:
    """The stage in a round; after the first round, `score` adds a column to the run's scores."""
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
    """Copy a result with the same key, so that it is not made again; returns its record, if there
    is one.

    A first round has the same keys as a run with one round, but other folders. After a change of
    `loop.rounds`, one has the results that the other needs.
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
