"""Probe encoders: small encoders trained on pairs in memory, evaluated on a labelled sample."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import pyarrow as pa
import torch

from models.embeddings.applications.evaluation import agreement
from models.embeddings.datasets.similarity import LabelledPairs
from models.embeddings.options import EmbeddingOptions
from models.embeddings.training.data import learnable
from models.embeddings.training.initial_model import new_model
from models.embeddings.training.pair_trainer import PairTrainer
from models.embeddings.training.trainer import Memory
from models.text.vectors import WordVectors, read_vectors


def run_probe(
    left: pa.StringArray,
    right: pa.StringArray,
    options: EmbeddingOptions,
    labelled: Sequence[LabelledPairs],
    *,
    seed: int,
) -> float:
    """Train on n pairs; return the mean Pearson × 100 over the labelled data sets.

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
