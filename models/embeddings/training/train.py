"""From Parquet shards to the folder of a trained encoder."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from models.embeddings.applications.evaluation import agreement
from models.embeddings.datasets.similarity import LabelledPairs, read_sts
from models.embeddings.encoders import INITIAL_SCALE, build_encoder, kinds, random_vectors
from models.embeddings.model import SentenceEncoder, load_weights
from models.embeddings.options import EmbeddingOptions
from models.embeddings.training.checkpoint import TrainingFolder
from models.embeddings.training.data import Shards
from models.embeddings.training.trainer import Progress, Trainer, better
from models.embeddings.vocabulary import Kind, Vocabulary
from models.errors import UserError
from models.text.vectors import UNKNOWN, WordVectors, read_vectors

HOW = ("checkpoint_every", "loaders", "device")
"""Options that do not change what is trained."""


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

    Pairs whose sides are the same after tokenisation, or of which one has no token, are skipped
    and counted. Checkpoints and metrics are kept in `<folder>.training` until the model is there;
    called again with the same arguments after it was killed, training goes on from the last one,
    and ends with the weights it would have had (on a CPU).

    Args:
        shards: the Parquet files.
        folder: where the model goes; appears when it is whole.
        options: the encoder and how to train it.
        seed: the same seed and shards give the same weights on a CPU.
        threads: torch's threads; None leaves them as they are.
        development: folder of STS data (`<year>/<set>.tsv`). With it the model that was best by the
            mean Pearson over its data sets is kept, else the last one.
        columns: the two text columns.

    Returns:
        pairs (that an epoch trains on), identical, empty, steps, seconds, pairs_per_second, loss
        (mean of the last steps), vocabulary (sizes), and with `development` its best score.

    Raises:
        UserError: no pairs, a broken shard, vectors or checkpoint, a loss that is no number.
            Nothing is written to `folder` then.
    """
    if threads is not None:
        torch.set_num_threads(threads)
    source = Shards(shards, columns, seed=seed, loaders=options.loaders)
    data = read_sts(development) if development else []
    key = _key(shards, options, seed, columns, development)
    work = TrainingFolder(folder.with_name(f"{folder.name}.training"), key)
    initial = read_vectors(options.initial_vectors) if options.initial_vectors else None
    vocabularies = _vocabularies(source, options, initial, work)
    source.vocabularies = vocabularies

    vectors = {
        kind: first_vectors(vocabulary, options, initial if kind == "words" else None, seed)
        for kind, vocabulary in vocabularies.items()
    }
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        encoder = build_encoder(options, vectors).to(device_of(options))
    del vectors, initial
    model = SentenceEncoder(encoder, vocabularies, options)

    def evaluate(best: float | None) -> float:
        score = development_score(model, data)
        if better(score, best):
            model.save(work.best)
        return score

    trainer = Trainer(encoder, source, options, seed, work, evaluate if data else None)
    if (last := work.last()) is not None:
        state, tensors = last
        try:
            trainer.restore(Progress(**state), tensors)
        except (KeyError, TypeError, ValueError) as error:
            raise UserError(
                f"{work.folder}: its checkpoint does not fit its vocabulary or encoder ({error}); "
                "remove the folder to start afresh"
            ) from error
    work.keep_lines(trainer.at.lines)
    at = trainer.fit()

    metrics = trainer.metrics()
    metrics["vocabulary"] = {kind: len(words) for kind, words in vocabularies.items()}
    trainer.settle()
    if at.best is not None:
        load_weights(encoder, work.best / "model.safetensors")
        metrics["development"] = at.best
    model.save(folder, metrics=metrics, log=work.folder / "metrics.jsonl")
    work.remove()
    return metrics


def development_score(model: SentenceEncoder, data: Sequence[LabelledPairs]) -> float:
    """Mean Pearson × 100 over data sets."""
    return float(np.mean([agreement(model.embed, pairs).pearson for pairs in data]))


def _vocabularies(
    source: Shards, options: EmbeddingOptions, initial: WordVectors | None, work: TrainingFolder
) -> dict[Kind, Vocabulary]:
    """What a killed run left, or else counted: the corpus's words, then those of the vectors."""
    vocabularies: dict[Kind, Vocabulary] = {}
    for kind in kinds(options.model):
        path = work.folder / f"{kind}.txt"
        if not path.exists():
            built = Vocabulary.build(
                source.texts(),
                kind=kind,
                max_size=options.max_vocabulary,
                min_count=options.min_count,
                tags=options.tags,
            )
            if kind == "words" and initial is not None:
                built = with_words_of(initial, built, options.max_vocabulary)
            built.save(path)
        vocabularies[kind] = Vocabulary.load(path)
    return vocabularies


def with_words_of(initial: WordVectors, vocabulary: Vocabulary, max_size: int | None) -> Vocabulary:
    """A vocabulary's words, then those that vectors to start from have besides."""
    first = 3 if vocabulary.tags else 1
    words = dict.fromkeys(vocabulary.words[first:])
    words.update(dict.fromkeys(word for word in initial.words.to_pylist() if word != UNKNOWN))
    return Vocabulary(list(words)[:max_size], tags=vocabulary.tags)


def first_vectors(
    vocabulary: Vocabulary, options: EmbeddingOptions, initial: WordVectors | None, seed: int
) -> Tensor:
    """Vectors to start from, [size, dim]: those of `initial`, random ones where it has none.

    Raises:
        UserError: they have another length than the options say.
    """
    vectors = random_vectors(len(vocabulary), options.dim, seed)
    if initial is not None:
        if initial.dim != options.dim:
            raise UserError(
                f"{options.initial_vectors}: vectors of {initial.dim} dimensions, "
                f"but embeddings.dim is {options.dim}"
            )
        # Words that have none get random ones as long as those that have.
        vectors *= float(initial.matrix.std()) / INITIAL_SCALE
        rows = torch.from_numpy(initial.rows([UNKNOWN, *vocabulary.words[1:]]))
        vectors[rows >= 0] = torch.from_numpy(initial.matrix[rows[rows >= 0].numpy()])
    return vectors


def device_of(options: EmbeddingOptions) -> torch.device:
    """Where to train."""
    there = torch.cuda.is_available()
    if options.device == "cuda" and not there:
        raise UserError("embeddings.device is cuda, but torch finds no GPU: set it to auto or cpu")
    return torch.device("cuda" if there and options.device != "cpu" else "cpu")


def _key(
    shards: Sequence[str],
    options: EmbeddingOptions,
    seed: int,
    columns: tuple[str, str],
    development: Path | None,
) -> dict[str, Any]:
    """What the weights depend on; shards by size and footer, which tells their row groups."""
    chosen = {name: value for name, value in options.chosen().items() if name not in HOW}
    sizes = hashlib.sha256()
    for shard in shards:
        with Path(shard).open("rb") as stream:
            stream.seek(0, 2)
            sizes.update(f"{shard} {stream.tell()}".encode())
            stream.seek(max(0, stream.tell() - (1 << 16)))
            sizes.update(stream.read())
    return {
        "options": chosen,
        "seed": seed,
        "shards": sizes.hexdigest(),
        "columns": list(columns),
        "development": str(development) if development else None,
    }
