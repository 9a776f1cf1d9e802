"""Running the stages of a run in order, each one only if it is not finished."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from beam_jobs import storage
from models.errors import UserError
from pipeline.config import Config
from pipeline.manifest import Manifest, locked
from pipeline.stages import Run, after, closure
from pipeline.summary import show_start, show_summary


def run_stages(
    config: Config, targets: Sequence[str], arguments: Sequence[str] = (), *, force: bool = False
) -> Run:
    """Bring a run up to `targets`, doing only what is not done.

    Args:
        targets: names of stages; what they need is run before.
        arguments: for Beam, as they stand on the command line after `--`.
        force: run the targets' stages even if they are finished.

    Raises:
        UserError: bad input, or a disk that is full; what was finished stays finished.
    """
    check(config)
    with locked(config.run):
        run = Run(config=config, manifest=Manifest(config.run), arguments=arguments)
        run.manifest.begin(config)
        stages = list(dict.fromkeys(s for target in targets for s in closure(target, config)))
        ran = set()
        for stage in stages:
            forced = force and stage.name in targets
            key = stage.key(run)
            if not forced and stage.finished(run):
                continue
            show_start(stage.name)
            run.manifest.forget(after({stage.name}))
            if forced:
                _unfinish(run.folder(stage.name))
            account = stage.make(run, key)
            run.manifest.finish(stage.name, {"key": key, **account})
            ran.add(stage.name)
        show_summary(run, [stage.name for stage in stages], ran)
        return run


def check(config: Config) -> None:
    """See that the files a configuration names are there, before hours of work depend on them.

    Raises:
        UserError: names the key and the path.
    """
    written = Path(config.sample.folder).resolve() if config.sample else None
    paths = {
        "nmt.model": config.nmt.model,
        "score.paragram": config.score.paragram,
        "score.phrases": config.score.phrases,
        "evaluate.sts": config.evaluate.sts,
        "evaluate.sick": config.evaluate.sick,
    }
    for key, path in paths.items():
        if path is None or (written and Path(path).resolve().is_relative_to(written)):
            continue
        if not Path(path).exists():
            raise UserError(f"{key}: {path} is not there")


def _unfinish(folder: str) -> None:
    place = storage.join(folder, "receipts")
    for name in storage.names(place):
        storage.remove(storage.join(place, name))
