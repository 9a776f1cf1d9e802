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
from models.embeddings.datasets.similarity import LabelledPairs, read_sts
from models.embeddings.model import SentenceEncoder, load_weights
from models.embeddings.options import EmbeddingOptions
from models.embeddings.training.checkpoint import TrainingFolder
from models.embeddings.training.data import Shards, learnable
from models.embeddings.training.initial_model import new_model
from models.embeddings.training.pair_trainer import PairTrainer
from models.embeddings.training.trainer import Memory, Progress, better
from models.errors import UserError
from models.text.vectors import WordVectors, read_vectors

_RUNTIME = ("checkpoint_every", "loaders", "device")


def train(
    options: EmbeddingOptions, folder: Path, *, shards: Sequence[str], seed: int
) -> dict[str, Any]:
    """Train on the pairs of the corpus."""
    return train_embeddings(shards, folder, options, seed=seed)


def weight_options(options: EmbeddingOptions) -> dict[str, Any]:
    """The options that change the trained weights, for JSON."""
    return {name: value for name, value in options.chosen().items() if name not in _RUNTIME}


def train_embeddings(
    shards: Sequence[str],
    folder: Path,
    options: EmbeddingOptions,
    *,
    seed: int,
    threads: int | None = None,
    development: Path | None = None,
    columns: tuple[str, str] = ("reference", "translation"),
) -> dict[str, Any]:
    """Train an encoder on pairs of sentences in Parquet files and write its folder.

    Pairs with equal sides (after tokenisation) or an empty side are skipped and counted. While
    training, checkpoints and metrics are in `<folder>.training`. After an interruption, a call with
    the same arguments resumes from the last checkpoint, and ends with the same weights (on a CPU).

    With a folder of STS data as `development`, the model with the best mean Pearson over its data
    sets is kept, else the last one. Returns the trainer's metrics, `vocabulary` (sizes), and with
    `development` its best score.

    Raises:
        UserError: no pairs, a broken shard, vectors or checkpoint, a loss that is not finite.
            `folder` is not written then.
    """
    if threads is not None:
        torch.set_num_threads(threads)
    source = Shards(shards, columns, seed=seed, loaders=options.loaders)
    data = read_sts(development) if development else []
    key = _fingerprint(shards, options, seed, columns, development)
    work = TrainingFolder(folder.with_name(f"{folder.name}.training"), key)
    model = new_model(options, source.texts(), seed, folder=work.folder)
    source.vocabularies = model.vocabularies

    def evaluate(best: float | None) -> float:
        score = development_score(model, data)
        if better(score, best):
            model.save(work.best)
        return score

    trainer = PairTrainer(
        model.encoder, source, options, seed, folder=work, evaluate=evaluate if data else None
    )
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
    if trainer.progress.best is not None:
        load_weights(model.encoder, work.best / "model.safetensors")
        metrics["development"] = trainer.progress.best
    model.save(folder, metrics=metrics, log=work.folder / "metrics.jsonl")
    work.remove()
    return metrics


def development_score(model: SentenceEncoder, data: Sequence[LabelledPairs]) -> float:
    """Mean Pearson × 100 over data sets."""
    return float(np.mean([agreement(model.embed, pairs).pearson for pairs in data]))


def _fingerprint(
    shards: Sequence[str],
    options: EmbeddingOptions,
    seed: int,
    columns: tuple[str, str],
    development: Path | None,
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
        "columns": list(columns),
        "development": str(development) if development else None,
    }


def run_probe(
    left: pa.StringArray,
    right: pa.StringArray,
    options: EmbeddingOptions,
    labelled: Sequence[LabelledPairs],
    *,
    seed: int,
) -> float:
    """Train a small encoder on n pairs; return the mean Pearson × 100 over labelled data sets.

    Trains like `train_embeddings`, but in memory, on the CPU and without files. A data set on which
    all predictions are equal (the encoder knows none of the words) counts as 0.

    Raises:
        UserError: there is nothing to train on, or the initial vectors cannot be read.
    """
    initial = _vectors(options.initial_vectors) if options.initial_vectors else None
    cpu = torch.device("cpu")
    model = new_model(options, [left, right], seed, initial=initial, device=cpu)
    pairs = Memory(learnable(left, right, model.vocabularies), f"{len(left):,} pairs")
    PairTrainer(model.encoder, pairs, options, seed).fit()
    return float(np.mean(np.nan_to_num([agreement(model.embed, d).pearson for d in labelled])))


@lru_cache(maxsize=1)
def _vectors(path: str) -> WordVectors:
    """Read once per process, which runs many probes."""
    return read_vectors(path)
