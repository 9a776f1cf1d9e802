"""A trial: a small encoder trained on pairs in memory, judged by a labelled sample."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import pyarrow as pa
import torch

from models.embeddings.applications.evaluation import agreement
from models.embeddings.datasets.similarity import LabelledPairs
from models.embeddings.encoders import build_encoder, kinds
from models.embeddings.model import SentenceEncoder
from models.embeddings.options import EmbeddingOptions
from models.embeddings.training.data import Memory, learnable
from models.embeddings.training.train import first_vectors, with_words_of
from models.embeddings.training.trainer import Trainer
from models.embeddings.vocabulary import Kind, Vocabulary
from models.text.vectors import WordVectors, read_vectors


def trial(
    left: pa.StringArray,
    right: pa.StringArray,
    options: EmbeddingOptions,
    labelled: Sequence[LabelledPairs],
    *,
    seed: int,
) -> float:
    """Train on n pairs and give the mean Pearson × 100 over the labelled data sets.

    As `train_embeddings` would train, but in memory and without a trace. A data set on which the
    encoder says the same of every pair (it knows none of the words) counts as 0.

    Raises:
        UserError: there is nothing to train on, or the initial vectors cannot be read.
    """
    initial = _vectors(options.initial_vectors) if options.initial_vectors else None
    vocabularies: dict[Kind, Vocabulary] = {}
    for kind in kinds(options.model):
        vocabularies[kind] = Vocabulary.build(
            [left, right],
            kind=kind,
            max_size=options.max_vocabulary,
            min_count=options.min_count,
            tags=options.tags,
        )
    if initial is not None and "words" in vocabularies:
        words = with_words_of(initial, vocabularies["words"], options.max_vocabulary)
        vocabularies["words"] = words
    vectors = {
        kind: first_vectors(vocabulary, options, initial if kind == "words" else None, seed)
        for kind, vocabulary in vocabularies.items()
    }
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        encoder = build_encoder(options, vectors)
    pairs = learnable(left, right, vocabularies)
    trainer = Trainer(encoder, Memory(pairs, f"{len(left):,} pairs"), options, seed)
    trainer.fit()
    trainer.settle()
    embed = SentenceEncoder(encoder, vocabularies, options).embed
    return float(np.mean(np.nan_to_num([agreement(embed, data).pearson for data in labelled])))


@lru_cache(maxsize=1)
def _vectors(path: str) -> WordVectors:
    """Read once in a process, which makes many trials."""
    return read_vectors(path)
