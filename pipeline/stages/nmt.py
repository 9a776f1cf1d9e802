"""nmt: train the translation model, unless `nmt.model` names one."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from paraloom.models.cpu import cores
from paraloom.models.errors import UserError
from paraloom.pipeline.config import Config
from paraloom.pipeline.run.records import NmtRecord, NmtTraining
from paraloom.pipeline.run.run import Run
from paraloom.pipeline.run.stage import folder_is_valid

is_valid = folder_is_valid


def fingerprint(run: Run) -> Any:
    """The options of the training; keys that are null do not count, so that new keys change no
    fingerprint."""
    options, languages = run.config.nmt.training, [run.input.source_language]
    if run.input.target_language != "en":
        languages.append(run.input.target_language)
    counted = {name: value for name, value in options.model_dump().items() if value is not None}
    return [counted, *languages, run.config.seed]


def make(run: Run, key: str) -> NmtRecord:
    """Train on the pairs of the input."""
    if find_spec("fairseq") is None:  # the training process would find out late, in its log
        raise ModuleNotFoundError("No module named 'fairseq'")
    from paraloom.models.nmt.train import train_nmt

    metrics = train_nmt(
        [Path(path) for path in run.local_files("ingest")],
        run.local_folder("nmt"),
        run.config.nmt.training,
        seed=run.config.seed,
        source_language=run.input.source_language,
        target_language=run.input.target_language,
        threads=cores(),
    )
    training = NmtTraining.model_validate(metrics)
    return NmtRecord(training=training, digest=run.publish("nmt"))


def check(config: Config) -> None:
    """Check that the two languages differ, since they name the files of the model."""
    source, target = config.languages.source, config.languages.target
    if source == target:
        raise UserError(
            f"input.source_language: is {source}, as input.target_language is; set both to train a "
            "translation model"
        )
