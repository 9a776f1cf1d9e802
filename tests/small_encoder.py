"""A small encoder of given words, which is not trained."""

from collections.abc import Iterable
from typing import Any

import torch

from paraloom.models.embeddings.encoders import build_encoder
from paraloom.models.embeddings.model import SentenceEncoder
from paraloom.models.embeddings.options import read_options
from paraloom.models.embeddings.vocabulary import Vocabulary


def small_encoder(words: Iterable[str], model: str = "word-avg", **options: Any) -> SentenceEncoder:
    """An encoder whose vectors have four dimensions, if `options` do not say otherwise."""
    chosen = read_options({"model": model, "dim": 4, **options})
    vocabulary = Vocabulary([*words], tags=chosen.tags)
    torch.manual_seed(0)
    vectors = torch.randn(len(vocabulary), chosen.dim)
    encoder = build_encoder(chosen, {"words": vectors}).eval()
    return SentenceEncoder(encoder, {"words": vocabulary}, chosen)


NUMBERED = [f"w{i}" for i in range(30)]
