"""Stages `nmt` and `forward_nmt`: train translation models in both directions."""

from functools import partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow.parquet as pq

from paraloom.models.cpu import cores
from paraloom.models.errors import UserError
from paraloom.pipeline.config import Config
from paraloom.pipeline.run.records import TrainingRecord
from paraloom.pipeline.run.run import Run
from paraloom.pipeline.run.stage import Stage, folder_is_valid


def fingerprint(run: Run) -> Any:
    """Return the seed, the languages, and the training options that are not null."""
    options, languages = run.config.nmt.training, [run.input.source_language]
    if run.input.target_language != "en":
        languages.append(run.input.target_language)
    counted = {name: value for name, value in options.model_dump().items() if value is not None}
    return [counted, *languages, run.config.seed]


def make(stage: str, run: Run, key: str) -> TrainingRecord:
    """Train on the pairs of `ingest`. For `forward_nmt`, source and reference are exchanged."""
    if find_spec("fairseq") is None:  # the training reports this only in its log
        raise ModuleNotFoundError("No module named 'fairseq'")
    from paraloom.models.nmt.train import train_nmt

    languages = [run.input.source_language, run.input.target_language]
    forward = stage == "forward_nmt"
    source, target = reversed(languages) if forward else languages
    pairs = [Path(path) for path in run.local_files("ingest")]
    with TemporaryDirectory() as folder:
        metrics = train_nmt(
            swapped(pairs, Path(folder)) if forward else pairs,
            run.local_folder(stage),
            run.config.nmt.training,
            seed=run.config.seed,
            source_language=source,
            target_language=target,
            threads=cores(),
        )
    return TrainingRecord(training=metrics, digest=run.publish(stage))


def swapped(pairs: list[Path], folder: Path) -> list[Path]:
    """Write copies of part files in which source and reference are exchanged."""
    for path in pairs:
        table = pq.read_table(path, columns=["id", "reference", "source"])
        pq.write_table(table.rename_columns(["id", "source", "reference"]), folder / path.name)
    return [folder / path.name for path in pairs]


def check(config: Config) -> None:
    """Check that the two language codes differ, because the model's file names contain both."""
    source, target = config.languages.source, config.languages.target
    if source == target:
        raise UserError(
            f"input.source_language: equals input.target_language ({source}); set two "
            "different codes, because the names of the trained model's files contain them"
        )


STAGES = {
    stage: Stage.of(stage, globals() | {"make": partial(make, stage), "is_valid": folder_is_valid})
    for stage in ("nmt", "forward_nmt")
}
