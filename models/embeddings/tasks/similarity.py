"""Labelled similarity by the KL objective (Tai et al. 2015; Wieting & Gimpel 2017, 4.3).

With `start`, the encoder is a trained one ("universal"), and `l2` and `l2_words` pull its weights
and its word vectors towards what they were; without, weights are pulled to zero, and word vectors
towards the initial ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from models.embeddings.datasets.splits import split
from models.embeddings.heads.distribution import Distribution
from models.embeddings.options import EmbeddingOptions
from models.embeddings.training.supervised import Training, new_model, report, trained_model
from models.embeddings.training.train import device_of


def train(
    options: EmbeddingOptions, folder: Path, *, shards: Sequence[str], seed: int
) -> dict[str, Any]:
    """Train on labelled pairs; the model predicts labels.

    Returns:
        pairs, development_pairs, development (Pearson × 100 of the chosen epoch), best_epoch,
        epochs, seconds, and test: Pearson, Spearman and mean squared error by data set.
    """
    section = options.similarity
    assert section is not None
    data = split(section.data, held_out=section.held_out)
    model = (
        trained_model(options, section.start)
        if section.start
        else new_model(options, [data.train.first, data.train.second], seed)
    )
    lowest, highest = data.train.scale
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        head = Distribution(dim=model.dim, units=section.units, lowest=lowest, highest=highest)
    model.head = head.to(device_of(options))
    training = Training(model, model.options, seed, keep=section.start is not None)
    training.fit(data.train, data.development)
    metrics = {
        "pairs": len(data.train.scores),
        "development_pairs": len(data.development.scores),
        **training.metrics(),
        "test": report(model, data.test),
    }
    model.save(folder, metrics={**metrics, "history": training.history})
    return metrics
