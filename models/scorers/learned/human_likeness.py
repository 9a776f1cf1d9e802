"""Probability that a person wrote the translation (Wieting, Mallinson & Gimpel 2017)."""

import numpy as np

from paraloom.models.hashing import text_hashes
from paraloom.models.scorers.learned.human_classifier import Classifier, fold_of
from paraloom.models.text.tokens import PairText


def human_likeness(pairs: PairText, classifier: Classifier) -> np.ndarray:
    """P(human | translation) by a model that was not trained on either side of the pair.

    The reference only determines which model that is.

    Returns:
        float32 [n] in [0, 1].
    """
    fold = fold_of(pairs.reference_text)
    return classifier.probability(pairs.translation, text_hashes(pairs.vocabulary), fold)
