"""The paraphrases of the corpus, by the margin loss; probes of it without files."""

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch

from models.embeddings.applications.evaluation import agreement
from models.embeddings.datasets.similarity import LabelledPairs
from models.embeddings.options import EmbeddingOptions
from models.embeddings.training.checkpoint import TrainingFolder
from models.embeddings.training.data import Shards, learnable
from models.embeddings.training.initial_model import new_model
from models.embeddings.training.pair_trainer import PairTrainer
from models.embeddings.training.trainer import Memory, Progress
from models.errors import UserError
from models.languages import ENGLISH
from models.text.vectors import WordVectors, read_vectors

_COLUMNS = ("reference", "translation")
_RUNTIME = ("checkpoint_every", "loaders", "device")


def weight_options(options: EmbeddingOptions) -> dict[str, Any]:
    """The options that change the trained weights, for JSON."""
    return {name: value for name, value in options.chosen().items() if name not in _RUNTIME}


def train(
    options: EmbeddingOptions, folder: Path, *, shards: Sequence[str], seed: int, language: str
) -> dict[str, Any]:
    """Train on the pairs of the corpus, which are in Parquet files.

    Pairs with equal sides (after tokenisation) or an empty side are skipped and counted. While
    training, checkpoints and metrics are in `<folder>.training`. After an interruption, a call with
    the same arguments resumes from the last checkpoint, and ends with the same weights (on a CPU).
    The metrics are those of the trainer, and `vocabulary` (sizes).

    Raises:
        UserError: no pairs, a broken shard, vectors or checkpoint, a loss that is not finite.
            `folder` is not written then.
    """
    source = Shards(shards, _COLUMNS, seed=seed, loaders=options.loaders)
    key = _fingerprint(shards, options, seed, language)
    work = TrainingFolder(folder.with_name(f"{folder.name}.training"), key)
    model = new_model(options, source.texts(), seed, language=language, folder=work.folder)
    source.vocabularies = model.vocabularies
    trainer = PairTrainer(model.encoder, source, options, seed, folder=work)
    if (last := work.last()) is not None:
        state, tensors = last
        try:
            trainer.restore(Progress(**state), tensors)
        except (KeyError, TypeError, ValueError) as error:
            raise UserError(
                f"{work.folder}: its checkpoint does not fit its vocabulary or encoder ({error}); "
                "remove the folder to start afresh"
            ) from error
    work.truncate_log(trainer.progress.lines)
    trainer.fit()

    metrics = trainer.metrics()
    metrics["vocabulary"] = {kind: len(words) for kind, words in model.vocabularies.items()}
    log = work.folder / "metrics.jsonl"
    model.save(folder, metrics=metrics, log=log, texts=source.texts())
    work.remove()
    return metrics


def _fingerprint(
    shards: Sequence[str], options: EmbeddingOptions, seed: int, language: str
) -> dict[str, Any]:
    """The inputs of the weights; shards by size and footer, which describes their row groups."""
    sizes = hashlib.sha256()
    for shard in shards:
        with Path(shard).open("rb") as stream:
            stream.seek(0, 2)
            sizes.update(f"{shard} {stream.tell()}".encode())
            stream.seek(max(0, stream.tell() - (1 << 16)))
            sizes.update(stream.read())
    return {
        "options": weight_options(options),
        "seed": seed,
        "shards": sizes.hexdigest(),
        "columns": list(_COLUMNS),
        "development": None,  # of earlier versions, which go on with the same folders
        **({"language": language} if language != ENGLISH else {}),
    }


def run_probe(
    left: pa.StringArray,
    right: pa.StringArray,
    options: EmbeddingOptions,
    labelled: Sequence[LabelledPairs],
    *,
    seed: int,
    language: str = ENGLISH,
) -> float:
    """Train a small encoder on n pairs; return the mean Pearson × 100 over labelled data sets.

    Trains like `train`, but in memory, on the CPU and without files. A data set on which
    all predictions are equal (the encoder knows none of the words) counts as 0.

    Raises:
        UserError: there is nothing to train on, or the initial vectors cannot be read.
    """
    initial = _vectors(options.initial_vectors) if options.initial_vectors else None
    cpu = torch.device("cpu")
    model = new_model(options, [left, right], seed, language=language, initial=initial, device=cpu)
    pairs = Memory(learnable(left, right, model.vocabularies), f"{len(left):,} pairs")
    PairTrainer(model.encoder, pairs, options, seed).fit()
    return float(np.mean(np.nan_to_num([agreement(model.embed, d).pearson for d in labelled])))


@lru_cache(maxsize=1)
def _vectors(path: str) -> WordVectors:
    """Read once per process, which runs many probes."""
    return read_vectors(path)
