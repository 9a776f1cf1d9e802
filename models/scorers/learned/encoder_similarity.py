"""Similarity of the two sides according to a trained encoder (ParaNMT, footnote 2)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from paraloom.models.embeddings.comparison import cosines
from paraloom.models.scorers.base import Resource, scorer
from paraloom.models.text.tokens import PairText

if TYPE_CHECKING:
    from paraloom.models.embeddings.model import SentenceEncoder

ENCODER = "encoder_similarity"
"""Name of the scorer. The first round cannot use it, because no encoder is trained yet."""


def open_encoder(folder: Path) -> SentenceEncoder:
    """Load an encoder from its folder."""
    from paraloom.models.embeddings.model import load_encoder  # imports torch

    return load_encoder(folder)


@scorer(
    meaning="cosine of the two sides under the encoder of the previous round",
    unit="cosine",
    range=(-1.0, 1.0),
    resource=Resource(name="encoder", open=open_encoder, remedy="an encoder of a previous round"),
)
def encoder_similarity(pairs: PairText, encoder: SentenceEncoder) -> np.ndarray:
    """Return the cosine of both sides' sentence vectors: float32 [n] in [-1, 1]. A side without
    tokens gives 0. With recurrent encoders, the last bits depend on the other pairs in the call."""
    cosine = cosines(*map(encoder.embed, (pairs.reference_text, pairs.translation_text)))
    return cosine.astype(np.float32).clip(-1.0, 1.0)
