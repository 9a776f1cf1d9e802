"""The stages of a configuration, their keys, and which of them are up to date."""

from contextlib import suppress
from dataclasses import replace

from paraloom.beam_jobs.engine.shards import content_key
from paraloom.models.errors import UserError
from paraloom.pipeline.config import Config
from paraloom.pipeline.names import SELECTED, folder_of, stage_path
from paraloom.pipeline.rounds import repeat_rounds
from paraloom.pipeline.stage import Run, Stage
from paraloom.pipeline.stages import STAGES


def plan(config: Config) -> tuple[Stage, ...]:
    """All stages that a run may have, in order."""
    if config.loop.rounds > 1:
        return repeat_rounds(STAGES, config.loop.rounds)
    named = [
        _of_selection(stage, name)
        for name in config.select.selections
        for stage in STAGES
        if stage.name in SELECTED
    ]
    before = 1 + [stage.name for stage in STAGES].index("select")
    return (*STAGES[:before], *named, *STAGES[before:])


def _of_selection(stage: Stage, name: str) -> Stage:
    """The stage of a named selection: as of a run that has only this selection."""

    def depends_on(config: Config) -> tuple[str, ...]:
        return tuple(stage_path(n, name) for n in stage.dependencies(config.selected(name)))

    return replace(
        stage,
        name=stage_path(stage.name, name),
        selection=name,
        depends_on=depends_on,
        enabled=lambda config: stage.enabled(config.selected(name)),
        check=lambda config: stage.check(config.selected(name)),
        copy=None,
    )


def key_of(stage: Stage, run: Run) -> str:
    """The key of all that a stage's result depends on.

    The key ignores the folder, so round 1 has the key of a single-round run.
    """
    names = stage.dependencies(run.config)
    needed = [other.name for other in closure(stage.name, run.config) if other.name in names]
    records = run.manifest.stages
    digests = {
        folder_of(n.removeprefix(stage.prefix)): records[n].digest if n in records else None
        for n in needed
    }
    values = stage.fingerprint(run.seen_by(stage))
    return content_key(folder_of(stage.kind), stage.version, values, digests)


def is_up_to_date(stage: Stage, run: Run, key: str = "") -> bool:
    """Whether the stage is finished, with its present key, and its files are valid.

    `key` is the present key if it is known: digests of models take long.
    """
    record = run.manifest.stages.get(stage.name)
    current = record is not None and record.key == (key or key_of(stage, run))
    return current and stage.is_valid(run.seen_by(stage), stage.kind)


def outdated(run: Run) -> set[str]:
    """The finished stages that are not of the run's configuration, and those that read them."""
    records, found = run.manifest.stages, set(run.manifest.stages)
    for stage in plan(run.config):
        if stage.name in found and stage.enabled(run.config):
            needed = {other.name for other in closure(stage.name, run.config)[:-1]}
            with suppress(UserError):  # a file that it reads is gone
                key = key_of(stage, run) if needed <= records.keys() - found else None
                if records[stage.name].key == key:
                    found.remove(stage.name)
    return found


def closure(target: str, config: Config) -> list[Stage]:
    """The stages that `target` depends on, directly or not, and itself, in order."""
    stages = plan(config)
    by_name = {stage.name: stage for stage in stages}
    found: set[str] = set()

    def add(name: str) -> None:
        if name not in found and by_name[name].enabled(config):
            found.add(name)
            for dependency in by_name[name].dependencies(config):
                add(dependency)

    add(target)
    return [stage for stage in stages if stage.name in found]


def dependents(names: set[str], config: Config) -> list[str]:
    """The stages that depend on `names`, directly or not, and `names` themselves."""
    found = set(names)
    for stage in plan(config):
        if found & set(stage.dependencies(config)):
            found.add(stage.name)
    return sorted(found)
