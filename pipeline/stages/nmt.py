"""nmt and forward_nmt: train the translation models that no key names, one a direction."""

from functools import partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow.parquet as pq

from paraloom.models.cpu import cores
from paraloom.models.errors import UserError
from paraloom.pipeline.config import Config
from paraloom.pipeline.run.records import NmtRecord, NmtTraining
from paraloom.pipeline.run.run import Run
from paraloom.pipeline.run.stage import Stage, folder_is_valid, needed_by_scorers


def fingerprint(run: Run) -> Any:
    """The options of the training; keys that later versions added count where they are set."""
    options, languages = run.config.nmt.training, [run.input.source_language]
    if run.input.target_language != "en":
        languages.append(run.input.target_language)
    counted = {name: value for name, value in options.model_dump().items() if value is not None}
    return [counted, *languages, run.config.seed]


def make(run: Run, key: str, *, forward: bool = False) -> NmtRecord:
    """Train on the pairs of the input; `forward`: from the language of the references."""
    if find_spec("fairseq") is None:  # a process of its own would find it out late, in its log
        raise ModuleNotFoundError("No module named 'fairseq'")
    from paraloom.models.nmt.train import train_nmt

    languages = [run.input.source_language, run.input.target_language]
    source, target = reversed(languages) if forward else languages
    pairs, name = [Path(path) for path in run.local_files("ingest")], _NAMES[forward]
    with TemporaryDirectory() as folder:
        metrics = train_nmt(
            swapped(pairs, Path(folder)) if forward else pairs,
            run.local_folder(name),
            run.config.nmt.training,
            seed=run.config.seed,
            source_language=source,
            target_language=target,
            threads=cores(),
        )
    training = NmtTraining.model_validate(metrics)
    return NmtRecord(training=training, digest=run.publish(name))


def swapped(pairs: list[Path], folder: Path) -> list[Path]:
    """Copies of part files in which source and reference have each other's place."""
    for path in pairs:
        table = pq.read_table(path, columns=["id", "reference", "source"])
        pq.write_table(table.rename_columns(["id", "source", "reference"]), folder / path.name)
    return [folder / path.name for path in pairs]


def check(config: Config) -> None:
    """Check that the two languages differ, which name the files of the model."""
    source, target = config.languages.source, config.languages.target
    if source == target:
        raise UserError(
            f"input.source_language: is {source}, as input.target_language is; set both to train a "
            "translation model"
        )


def _trains_forward(config: Config) -> bool:
    return config.nmt.forward_model is None and needed_by_scorers("forward_model")(config)


_NAMES = ("nmt", "forward_nmt")
STAGES = {
    name: Stage(
        name=name,
        fingerprint=fingerprint,
        make=make_one,
        is_valid=folder_is_valid,
        check=check,
        enabled=enabled,
    )
    for name, make_one, enabled in (
        (_NAMES[0], make, lambda config: config.nmt.model is None and config.translates),
        (_NAMES[1], partial(make, forward=True), _trains_forward),
    )
}
