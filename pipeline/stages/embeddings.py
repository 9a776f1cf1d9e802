"""Stage `embeddings`: trains the sentence encoder."""

import shutil
from pathlib import Path
from typing import Any

from paraloom.beam_jobs.storage import remote
from paraloom.models.cpu import cores
from paraloom.models.embeddings import tasks
from paraloom.models.embeddings.options import AUTO
from paraloom.models.errors import UserError
from paraloom.models.files import atomic_folder, digest
from paraloom.models.languages import short_code
from paraloom.pipeline.config import Config
from paraloom.pipeline.pages.shown import last_name
from paraloom.pipeline.run import notices
from paraloom.pipeline.run.records import InputFile, PairsRecord, TrainingRecord
from paraloom.pipeline.run.run import Run
from paraloom.pipeline.run.stage import folder_is_valid
from paraloom.pipeline.stages import TABLE
from paraloom.pipeline.stages.resources import paragram

is_valid = folder_is_valid


def depends_on(config: Config) -> tuple[str, ...]:
    """List the stages whose results the training reads: `select`, `paragram`, both or neither."""
    options = config.embeddings
    corpus = ("select",) if options.reads_the_corpus and not options.selection else ()
    return (*corpus, "paragram") if _uses_own_vectors(config) else corpus


def _uses_own_vectors(config: Config) -> bool:
    """Whether `embeddings.initial_vectors: auto` means the vectors of the stage `paragram`."""
    options, score = config.embeddings, config.score
    wanted = options.initial_vectors == AUTO and options.task == "paraphrases"
    trained = score.phrases is not None and score.training.dim == options.dim
    # For vectors from a file, `tasks.train` checks the dimension later.
    return wanted and TABLE["paragram"].when(config) and (score.paragram is not None or trained)


def fingerprint(run: Run) -> Any:
    """Return the seed, the language, and the options that affect the weights."""
    values = run.config.embeddings.of_weights()
    if _uses_own_vectors(run.config):
        values["initial_vectors"] = AUTO
    language = short_code(run.config.embeddings.language or run.language)
    return [values, run.config.seed, language]


def make(run: Run, key: str) -> TrainingRecord:
    """Train the encoder."""
    from paraloom.models.embeddings.training.checkpoint import remove_checkpoints

    needed, corpus = depends_on(run.config), run.trained_on
    on_corpus = run.config.embeddings.reads_the_corpus
    if on_corpus:
        pairs = corpus.record(PairsRecord, "select").rows_out
        notices.notify(notices.of_training(run.config, pairs, own_vectors="paragram" in needed))
    vectors = None
    if "paragram" in needed:
        vectors = str(Path(remote.localise(run.folder("paragram"))) / paragram.resource)
    metrics = tasks.train(
        run.config.embeddings,
        run.local_folder("embeddings"),
        shards=corpus.local_files("select") if on_corpus else [],
        vectors=vectors,
        seed=run.config.seed,
        language=short_code(run.config.embeddings.language or run.language),
        threads=cores(),
    )
    record = TrainingRecord(
        training=metrics,
        files={
            f"embeddings.{key}": InputFile(path=last_name(path), sha256=digest(path))
            for key, path in run.config.embeddings.files().items()
        },
        digest=run.publish("embeddings"),
    )
    remove_checkpoints(run.local_folder("embeddings"))
    return record


def check(config: Config) -> None:
    """Check the options of the encoder."""
    from paraloom.models.embeddings.encoders import check_encoder

    try:
        check_encoder(config.embeddings)
    except ValueError as error:
        raise UserError(f"embeddings.{error}") from error


def copy(source: Run, target: Run) -> None:
    """Copy the model folder."""
    with atomic_folder(target.local_folder("embeddings")) as folder:
        shutil.copytree(remote.localise(source.folder("embeddings")), folder, dirs_exist_ok=True)
    target.publish("embeddings")
