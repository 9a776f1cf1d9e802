"""embeddings: the sentence encoder."""

import shutil
from typing import Any

from beam_jobs.io import remote
from models.cpu import cores
from models.embeddings import tasks
from models.embeddings.tasks import READ_THE_CORPUS
from models.errors import UserError
from models.files import atomic_folder, digest
from pipeline.config import Config
from pipeline.records import TrainingRecord
from pipeline.stage import Run, Stage, folder_is_valid


def depends_on(config: Config) -> tuple[str, ...]:
    """The corpus; nothing for a task that has files of its own."""
    return ("corpus",) if config.embeddings.task in READ_THE_CORPUS else ()


def fingerprint(run: Run) -> Any:
    """The options that change the weights, and the content of the files they name."""
    from models.embeddings.tasks.paraphrases import weight_options

    options = run.config.embeddings
    values = weight_options(options)
    vectors = options.initial_vectors
    values["initial_vectors"] = digest(vectors) if vectors else None
    if options.section is None:
        return run.with_language([values, run.config.seed])
    files = {key: digest(path) for key, path in options.section.files().items()}
    values[options.task] = options.section.without_files()
    return run.with_language([values, files, run.config.seed])


def make(run: Run, key: str) -> TrainingRecord:
    """Train the encoder on its task."""
    metrics = tasks.train(
        run.config.embeddings,
        run.local_folder("embeddings"),
        shards=run.local_files("corpus") if "corpus" in depends_on(run.config) else [],
        seed=run.config.seed,
        language=run.language,
        threads=cores(),
    )
    return TrainingRecord(training=metrics, digest=run.publish("embeddings"))


def check(config: Config) -> None:
    """Check the options of the encoder.

    Raises:
        UserError: there is no such encoder, or options do not fit together.
    """
    from models.embeddings.encoders import check_encoder

    try:
        check_encoder(config.embeddings)
    except ValueError as error:
        raise UserError(f"embeddings.{error}") from error


def copy(source: Run, target: Run) -> None:
    """Copy the model folder."""
    with atomic_folder(target.local_folder("embeddings")) as folder:
        shutil.copytree(remote.localise(source.folder("embeddings")), folder, dirs_exist_ok=True)
    target.publish("embeddings")


STAGE = Stage(
    name="embeddings",
    depends_on=depends_on,
    fingerprint=fingerprint,
    make=make,
    is_valid=folder_is_valid,
    check=check,
    copy=copy,
)
