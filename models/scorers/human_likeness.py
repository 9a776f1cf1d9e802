"""Whether the translation reads like human text (Wieting, Mallinson & Gimpel 2017)."""

from __future__ import annotations

import numpy as np

from models.scorers.human_classifier import Classifier, fold_of, token_hashes
from models.text.tokens import PairText


def human_likeness(pairs: PairText, classifier: Classifier) -> np.ndarray:
    """P(human | translation) by the model that saw neither side of the pair: float32 [n] in [0, 1].

    The reference says which model that is, and nothing else.
    """
    fold = fold_of(pairs.reference_text)
    return classifier.probability(pairs.translation, token_hashes(pairs.vocabulary), fold)
