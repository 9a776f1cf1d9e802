"""The stages of a run and of its derived runs, and their keys.

With `loop.rounds`, selection and training are repeated. Each round is a derived run in
`rounds/<n>/`. The first round uses the scores and deciles of the run. In a later round, the encoder
of the previous round scores the pairs (ParaNMT, footnote 2). After all rounds, the stage `loop`
evaluates the encoders on the labelled pairs. The results of the best round are then copied to the
run's stages `select`, `embeddings` and `evaluate`.
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
    """A stage, with the run that makes it."""

    run: Run
    stage: Stage

    @property
    def path(self) -> str:
        """The stage's name with the subfolder of a derived run, such as `rounds/2/score`."""
        return self.run.path(self.stage.name)

    def reads(self) -> dict[str, tuple[Run, str]]:
        """Return the run and name of each stage that this stage reads, by name or path."""
        names = self.stage.dependencies(self.run.config)
        there = [name for name in names if stages()[name].enabled(self.run.config)]
        own = {name: (self.run.owner(name), name) for name in there}
        return own | {run.path(name): (run, name) for run, name in self.stage.others}

    def key(self) -> str:
        """Compute the digest of everything on which the result depends, except the run's folder."""
        digests = {
            folder_of(known): run.digest(name) if name in run.records else None
            for known, (run, name) in self.reads().items()
        }
        values = self.stage.fingerprint(self.run)
        return content_key(folder_of(self.stage.name), self.stage.version, values, digests)

    def is_up_to_date(self, key: str) -> bool:
        """Whether the stage is finished with this key and has valid files."""
        record = self.run.records.get(self.stage.name)
        current = record is not None and record.key == key
        return current and self.stage.is_valid(self.run, self.stage.name)


def in_round(stage: Stage, run: Run) -> Stage:
    """Return the stage for a round. In a later round, `score` adds a column to the run's scores."""
    if run.before is None or stage.name != "score":
        return stage
    assert run.base
    return replace(stage, depends_on=(), others=((run.base, "score"), (run.before, "embeddings")))


def best_of(stage: Stage, rounds: Sequence[Run]) -> Stage:
    """Return a stage that copies the result of the best round."""

    def make(run: Run, key: str) -> StageRecord:
        number = run.record(LoopRecord).best
        best = rounds[number - 1]
        assert stage.copy is not None
        stage.copy(best, run)
        return best.records[stage.name].model_copy(update={"round": number, "peak_memory": 0})

    return replace(
        stage,
        depends_on=("loop",),
        others=tuple((of, stage.name) for of in rounds),
        version=1,
        fingerprint=lambda run: None,
        make=make,
    )


def plan(run: Run) -> list[PlannedStage]:
    """List all stages of the configuration in their order, with the stages of derived runs."""
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
    """List the steps of `targets` and all steps on which they depend, in the order of `steps`."""
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
    """Find finished stages that the current configuration would not reuse.

    A stage is outdated if it is not in `steps`, if its key has changed or cannot be computed, or if
    it needs an outdated or unfinished stage.
    """
    runs = dict.fromkeys(step.run for step in steps)
    found = {run.path(name) for run in runs for name in run.records}
    finished = set(found)
    for step in steps:
        if (path := step.path) in found:
            needed = {other.path for other in closure([path], steps)} - {path}
            with suppress(UserError):  # an input file is missing
                record = step.run.records[step.stage.name]
                if needed <= finished - found and record.key == step.key():
                    found.remove(path)
    return found


def copy_finished(stage: Stage, run: Run, key: str) -> StageRecord | None:
    """Copy a result with this key from `rounds/1` to the run's folder, or the other way round.

    Both folders use the same keys, so a change of `loop.rounds` repeats no work. Return the
    result's record, or None if there is no such result.
    """
    if stage.copy is None or run.place not in ("", "rounds/1"):
        return None
    there = run.base if run.base and run.place else run.derived("rounds/1")
    record = there.records.get(stage.name)
    try:
        if record is None or record.key != key or not stage.is_valid(there, stage.name):
            return None
        stage.copy(there, run)
    except DamagedError:
        return None
    return record
