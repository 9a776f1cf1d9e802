"""Training on paraphrase pairs with the margin loss."""

import hashlib
from collections.abc import Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from paraloom.models.embeddings.applications.evaluation import agreement
from paraloom.models.embeddings.datasets.similarity import LabelledPairs, read_ranking
from paraloom.models.embeddings.model import SentenceEncoder
from paraloom.models.embeddings.options import AUTO, EmbeddingOptions
from paraloom.models.embeddings.tasks import RunInputs
from paraloom.models.embeddings.training.checkpoint import TrainingFolder, checkpoints_of
from paraloom.models.embeddings.training.data import PairSource, learnable
from paraloom.models.embeddings.training.initial_model import new_model
from paraloom.models.embeddings.training.pair_files import columns_of, copy_pairs
from paraloom.models.embeddings.training.pair_trainer import PairTrainer
from paraloom.models.embeddings.training.trainer import Memory, Progress
from paraloom.models.errors import reading
from paraloom.models.files import digest
from paraloom.models.languages import ENGLISH
from paraloom.models.printing import say
from paraloom.models.text.vectors import WordVectors, load_vectors


def train(
    options: EmbeddingOptions,
    folder: Path,
    *,
    run: RunInputs,
    seed: int,
    language: str,
    trainer: type[PairTrainer] = PairTrainer,
) -> dict[str, Any]:
    """Train on the pairs of the corpus, or on `options.pairs`, and write the encoder to `folder`.

    Pairs with an empty side, or with equal tokens on both sides, are skipped. A call with the same
    arguments resumes an interrupted training from `<folder>.training`. This function does not
    remove that folder. On a CPU, an interruption does not change the weights. Return the metrics
    and evaluations of the training.
    """
    files = options.development_files  # read first, so that an error deletes no checkpoint
    sets = read_ranking(files, "embeddings.development") if files else []
    initial = _initial(options, run.vectors)
    key = _fingerprint(run, options, seed, language, own_vectors=initial is not None)
    work = TrainingFolder(checkpoints_of(folder), key)
    if options.pairs:
        copies = copy_pairs(options.pairs, work.folder / "pairs")
        source = PairSource(copies, columns_of(options.pairs), seed=seed)
        source.name = ", ".join(path for pairs in options.pairs for path in pairs.paths)
    else:
        source = PairSource(run.shards, ("reference", "translation"), seed=seed)
    model = new_model(
        options, source.texts(), seed, language=language, initial=initial, folder=work.folder
    )
    source.vocabularies = model.vocabularies
    evaluate = partial(mean_agreement, model, sets) if sets else None
    training = trainer(model.encoder, source, options, seed, folder=work, evaluate=evaluate)
    with reading(f"{work.folder}: remove it to start again"):
        if (last := work.last()) is not None:
            state, tensors = last
            training.restore(Progress(**state), tensors)
    work.continue_log(training.progress.lines, folder)
    training.fit()

    metrics = training.metrics()
    metrics["vocabulary"] = {kind: len(words) for kind, words in model.vocabularies.items()}
    if initial is not None and "words" in model.vocabularies:
        metrics["initial_vectors"] = "PARAGRAM vectors of the run"
    if sets:
        pairs = f"{sum(map(len, sets)):,} labelled pairs of {len(sets)} data sets"
        metrics["development_data"] = f"{pairs}, mean Pearson × 100"
        metrics |= training.evaluations()
    log = work.folder / "metrics.jsonl"
    model.save(folder, metrics=metrics, log=log, texts=source.texts())
    work.close()
    return metrics


def _initial(options: EmbeddingOptions, path: str | None) -> WordVectors | None:
    if options.initial_vectors != AUTO or path is None:
        return None
    vectors = load_vectors(Path(path))
    if vectors.dim == options.dim:
        return vectors
    say(
        f"paraloom: embeddings.initial_vectors: the run's PARAGRAM vectors have {vectors.dim} "
        f"dimensions, but embeddings.dim is {options.dim}; training starts from random vectors"
    )
    return None


def _fingerprint(
    run: RunInputs, options: EmbeddingOptions, seed: int, language: str, *, own_vectors: bool
) -> dict[str, Any]:
    """Return everything that the weights depend on. Shards are represented by a digest."""
    sizes = hashlib.sha256()
    for shard in run.shards:
        with Path(shard).open("rb") as stream:  # hash the name, the size and the footer
            stream.seek(0, 2)
            sizes.update(f"{shard} {stream.tell()}".encode())
            stream.seek(max(0, stream.tell() - (1 << 16)))
            sizes.update(stream.read())
    values = options.of_weights()
    if run.vectors and own_vectors:
        values["initial_vectors"] = digest(run.vectors)
    return {"options": values, "seed": seed, "shards": sizes.hexdigest(), "language": language}


def run_probe(
    left: pa.StringArray,
    right: pa.StringArray,
    options: EmbeddingOptions,
    labelled: Sequence[LabelledPairs],
    *,
    seed: int,
    language: str = ENGLISH,
) -> float:
    """Train a small encoder on pairs in memory, and return its `mean_agreement`."""
    initial = _vectors(options.vector_file) if options.vector_file else None
    options = options.replace(device="cpu")
    model = new_model(options, [left, right], seed, language=language, initial=initial)
    pairs = Memory(learnable(left, right, model.vocabularies), f"{len(left):,} pairs")
    PairTrainer(model.encoder, pairs, options, seed).fit()
    return mean_agreement(model, labelled)


def mean_agreement(model: SentenceEncoder, sets: Sequence[LabelledPairs]) -> float:
    """Return the mean Pearson × 100 over data sets, where an undefined correlation counts as 0."""
    found = [agreement(model.embed, data, model.compare).pearson for data in sets]
    return float(np.mean(np.nan_to_num(found)))


@lru_cache(maxsize=1)
def _vectors(path: str) -> WordVectors:
    return load_vectors(Path(path))
