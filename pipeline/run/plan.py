"""The stages of a run and its derived runs, their keys, and whether they are up to date.

With `loop.rounds`, selection and training are repeated, and the best round is the result. The first
round's scores, deciles and automatic selection are in the run's own folders, as in a run with one
round. Derived runs in `rounds/<n>/` make the other stages of the first round, and the later rounds.
A round after the first ranks pairs by similarity according to the previous round's encoder
(ParaNMT, footnote 2), and trains its own encoder from scratch, with the same options and seed.

After all rounds, the stage `loop` evaluates their encoders on the labelled pairs. The run's own
`select`, `embeddings` and `evaluate` are then copies from the best round.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

from paraloom.beam_jobs.engine.shards import DamagedError, content_key
from paraloom.models.errors import UserError
from paraloom.pipeline.run.records import LoopRecord, StageRecord
from paraloom.pipeline.run.run import Run
from paraloom.pipeline.run.stage import Stage, stages
from paraloom.pipeline.stages import RESULTS, folder_of


class PlannedStage(NamedTuple):
    """A stage, and the run that makes it."""

    run: Run
    stage: Stage

    @property
    def path(self) -> str:
        """The stage's name, preceded by the place of a derived run: `score`, `rounds/2/score`."""
        return self.run.path(self.stage.name)

    def reads(self) -> dict[str, tuple[Run, str]]:
        """The run and name of each stage that this stage reads, by its name in the key."""
        names = self.stage.dependencies(self.run.config)
        there = [name for name in names if stages()[name].enabled(self.run.config)]
        own = {name: (self.run.owner(name), name) for name in there}
        return own | {run.path(name): (run, name) for run, name in self.stage.others}

    def key(self) -> str:
        """The digest of everything that the result depends on, except the folder, so that a first
        round has the same keys as a run with one round."""
        digests = {
            folder_of(known): run.digest(name) if name in run.records else None
            for known, (run, name) in self.reads().items()
        }
        values = self.stage.fingerprint(self.run)
        return content_key(folder_of(self.stage.name), self.stage.version, values, digests)

    def is_up_to_date(self, key: str) -> bool:
        """Whether the stage is finished with this key, and its files are valid."""
        record = self.run.records.get(self.stage.name)
        current = record is not None and record.key == key
        return current and self.stage.is_valid(self.run, self.stage.name)


def in_round(stage: Stage, run: Run) -> Stage:
    """The stage as a round makes it; after the first, `score` adds a column to the run's scores."""
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


def plan(run: Run) -> list[PlannedStage]:
    """All stages of the configuration, in order, including those of derived runs."""
    found: list[PlannedStage] = []
    rounds = [child for place, child in run.children.items() if place.startswith("rounds/")]
    selections = [child for child in run.children.values() if child not in rounds]
    for name, stage in stages().items():
        if name == "loop":
            found += [PlannedStage(r, in_round(stages()[n], r)) for r in rounds for n in r.own]
            stage = replace(stage, others=tuple((r, "embeddings") for r in rounds))
        elif rounds and name in RESULTS:
            stage = best_of(stage, rounds)
        elif name == "embeddings" and run.trained_on is not run:
            stage = replace(stage, others=((run.trained_on, "select"),))
        if name in run.own:
            found.append(PlannedStage(run, stage))
        if name == "select":
            found += [PlannedStage(of, stages()[n]) for of in selections for n in of.own]
    return [step for step in found if step.stage.enabled(step.run.config)]


def closure(targets: Iterable[str], steps: Sequence[PlannedStage]) -> list[PlannedStage]:
    """The steps of `targets`, and all steps that they depend on, even indirectly, in order."""
    by_path = {step.path: step for step in steps}
    found: set[str] = set()

    def add(path: str) -> None:
        if path not in found and path in by_path:
            found.add(path)
            for run, name in by_path[path].reads().values():
                add(run.path(name))

    for target in targets:
        add(target)
    return [step for step in steps if step.path in found]


def outdated(steps: Sequence[PlannedStage]) -> set[str]:
    """The finished stages that another configuration made, and the stages that read them."""
    runs = dict.fromkeys(step.run for step in steps)
    found = {run.path(name) for run in runs for name in run.records}
    finished = set(found)
    for step in steps:
        if (path := step.path) in found:
            needed = {other.path for other in closure([path], steps)} - {path}
            with suppress(UserError):  # a file that it reads is gone
                record = step.run.records[step.stage.name]
                if needed <= finished - found and record.key == step.key():
                    found.remove(path)
    return found


def copy_finished(stage: Stage, run: Run, key: str) -> StageRecord | None:
    """Copy a result with the same key, so that it is not made again. Return its record; None if no
    such result exists.

    A first round and a run with one round have the same keys, but different folders. So after a
    change of `loop.rounds`, results may exist in the other folder.
    """
    if stage.copy is None or run.place not in ("", "rounds/1"):
        return None
    there = run.base if run.base and run.place else run.derived("rounds/1")
    record = there.records.get(stage.name)
    try:
        if record is None or record.key != key or not stage.is_valid(there, stage.name):
            return None
        stage.copy(there, run)
    except DamagedError:  # then the caller makes it
        return None
    return record
