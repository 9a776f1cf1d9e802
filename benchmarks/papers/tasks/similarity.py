"""Labelled similarity by the KL objective (Tai et al. 2015; Wieting & Gimpel 2017, 4.3).

With `start`, the encoder is a trained one ("universal"), and `lambda_c` and `lambda_w` pull its
weights and its word vectors towards their initial values. Without `start`, weights are pulled
towards zero, and word vectors towards the initial ones.
"""

from pathlib import Path
from typing import Any

import torch

from paraloom.models.embeddings.encoders.ragged_batches import Input
from paraloom.models.embeddings.model import SentenceEncoder, load_encoder
from paraloom.models.embeddings.options import EmbeddingOptions
from paraloom.models.embeddings.tasks import RunInputs
from paraloom.models.embeddings.training.initial_model import device_of, new_model
from paraloom.models.errors import UserError
from paraloom.papers.datasets.splits import split
from paraloom.papers.heads import Distribution
from paraloom.papers.label_trainer import LabelTrainer, label_errors
from paraloom.papers.options import SystemOptions

SHAPE = ("model", "dim", "hidden", "cell", "combine", "mix", "tags")
"""The options that an encoder's weights depend on."""


def train(
    options: SystemOptions, folder: Path, *, run: RunInputs, seed: int, language: str
) -> dict[str, Any]:
    """Train a model that predicts labels on labelled pairs."""
    section = options.similarity
    assert section is not None
    data = split(section.data, held_out=section.held_out)
    texts = [data.train.first, data.train.second]
    if section.start:
        model = trained_model(options, section.start)
    else:
        model = new_model(options, texts, seed, language=language)
    lowest, highest = data.train.scale
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        head = Distribution(dim=model.dim, units=section.units, lowest=lowest, highest=highest)
    model.head = head.to(device_of(options))
    anchored = section.start is not None
    trainer = LabelTrainer(model, data.train, data.development, seed, anchored=anchored)
    trainer.fit()
    metrics = {
        "pairs": len(data.train),
        "development_pairs": len(data.development),
        **trainer.metrics(),
        "test": label_errors(model.named("model"), data.test),
    }
    model.save(folder, metrics={**metrics, "history": trainer.progress.evaluations}, texts=texts)
    return metrics


def trained_model(options: EmbeddingOptions, folder: str) -> SentenceEncoder:
    """Return the encoder of a model folder, to be trained further with `options`."""
    if options.vector_file:
        raise UserError(
            f"embeddings.initial_vectors: the model {folder} brings its own vectors; take one away"
        )
    found = load_encoder(folder, device=str(device_of(options)))
    shape = {name: getattr(found.options, name) for name in SHAPE}
    for module in found.encoder.modules():
        if isinstance(module, Input):
            module.dropout, module.word_dropout = options.dropout, options.word_dropout
    return SentenceEncoder(found.encoder, found.vocabularies, options.replace(**shape))
