"""MaLSTM: an LSTM whose states of two sentences are compared by distance (Mueller & T. 2016).

Word vectors stay as they are. The LSTM starts from small Gaussian weights and open forget gates,
is trained on other labelled pairs first where there are some, then on the data and its synonyms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from torch import nn

from models.embeddings.applications.entailment import entailment
from models.embeddings.datasets.similarity import LabelledPairs, read_labelled
from models.embeddings.datasets.splits import pool, shares, split
from models.embeddings.datasets.synonyms import augmented, read_synonyms
from models.embeddings.heads.manhattan import Manhattan
from models.embeddings.model import SentenceEncoder
from models.embeddings.options import EmbeddingOptions
from models.embeddings.training.supervised import Training, new_model, report
from models.embeddings.training.train import device_of
from models.errors import UserError

_SCALE = 0.01  # standard deviation of the weights at the start; chosen on held-out pairs of SICK
_FORGET = 2.5  # bias of the forget gates at the start


def train(
    options: EmbeddingOptions, folder: Path, *, shards: Sequence[str], seed: int
) -> dict[str, Any]:
    """Train on labelled pairs; the model predicts labels.

    Returns:
        pairs, augmented, pretraining_pairs, development_pairs, development (Pearson × 100 of the
        chosen epoch), best_epoch, epochs, seconds, bandwidth (of the calibration), test (Pearson,
        Spearman and mean squared error by data set), uncalibrated (the same without calibration),
        and, of SICK, entailment.
    """
    section = options.malstm
    assert section is not None
    data = split(section.data, held_out=section.held_out)
    lowest, highest = data.train.scale
    other = [
        rescaled(pairs, data.train.scale) for p in section.pretrain for pairs in read_labelled(p)
    ]
    texts = [side for pairs in [data.train, *other] for side in (pairs.first, pairs.second)]
    model = new_model(options, texts, seed)
    head = Manhattan(lowest=lowest, highest=highest).to(device_of(options))
    model.head = head
    initialise(model.encoder, seed)
    if other:
        rest, chooses = shares(pool(other), (1 - section.held_out, section.held_out))
        _training(model, seed, section.patience).fit(rest, chooses)
    pairs = data.train
    if section.synonyms:
        synonyms = read_synonyms(section.synonyms)
        more = augmented(data.train, synonyms, section.augmented, seed=seed)
        pairs = pool([replace(data.train, entailment=None), more])
    training = _training(model, seed, section.patience)
    training.fit(pairs, data.development)
    metrics = {
        "pairs": len(data.train.scores),
        "augmented": len(pairs.scores) - len(data.train.scores),
        "pretraining_pairs": sum(len(pairs.scores) for pairs in other),
        "development_pairs": len(data.development.scores),
        **training.metrics(),
    }
    everything = pool([data.train, data.development])
    if section.calibrate:
        metrics["uncalibrated"] = report(model, data.test)
        metrics["bandwidth"] = head.calibrate(*_vectors(model, everything), everything.scores)
    metrics["test"] = report(model, data.test)
    if everything.entailment is not None and section.entailment:
        metrics["entailment"] = entailment(model.embed, everything, data.test, seed=seed)
    model.save(folder, metrics={**metrics, "history": training.history})
    return metrics


def initialise(encoder: nn.Module, seed: int) -> None:
    """Small Gaussian weights, biases of zero, and forget gates that are open.

    Raises:
        UserError: the encoder has no LSTM.
    """
    generator = torch.Generator().manual_seed(seed)
    networks = [part for part in encoder.modules() if isinstance(part, nn.LSTM)]
    if not networks:
        raise UserError(
            "embeddings.model: MaLSTM needs an encoder with an LSTM in it, such as lstm"
        )
    with torch.no_grad():
        for network in networks:
            from_input, recurrent, bias, other_bias = network.all_weights[0]
            for weight in (from_input, recurrent):
                weight.copy_(torch.randn(weight.shape, generator=generator) * _SCALE)
            other_bias.zero_()
            bias.zero_()
            bias[network.hidden_size : 2 * network.hidden_size] = _FORGET  # i, f, g, o


def rescaled(data: LabelledPairs, scale: tuple[float, float]) -> LabelledPairs:
    """A data set with its labels on another scale."""
    shares = (data.scores - data.scale[0]) / (data.scale[1] - data.scale[0])
    scores = scale[0] + shares * (scale[1] - scale[0])
    return replace(data, scores=scores, scale=scale, entailment=None)


def _training(model: SentenceEncoder, seed: int, patience: int) -> Training:
    return Training(model, model.options, seed, optimiser="adadelta", patience=patience)


def _vectors(model: SentenceEncoder, data: LabelledPairs) -> tuple[np.ndarray, np.ndarray]:
    vectors = model.embed(pa.concat_arrays([data.first, data.second]))
    return vectors[: len(data.first)], vectors[len(data.first) :]
