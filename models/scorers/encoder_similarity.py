"""How close a trained encoder finds the two sides (ParaNMT, footnote 2: it can rank the corpus)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from models.text.tokens import PairText

if TYPE_CHECKING:
    from models.embeddings.model import SentenceEncoder


def encoder_similarity(pairs: PairText, encoder: SentenceEncoder) -> np.ndarray:
    """Cosine of the sides' sentence vectors: float32 [n] in [-1, 1]; 0 where a side has no token.

    Of averages a row's value depends on that row alone. Recurrent encoders multiply matrices whose
    last bits depend on how many rows are in them: there it depends on the block of rows as well.
    """
    from models.embeddings.applications.evaluation import (
        cosines,  # torch is there if the encoder is
    )

    sides = (pairs.reference_text, pairs.translation_text)
    cosine = cosines(*map(encoder.embed, sides))
    return cosine.astype(np.float32).clip(-1.0, 1.0)
