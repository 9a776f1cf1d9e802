"""Probability of the source under a model of the other direction: low if a translation is wrong.

Most scores compare two sentences in one language. These compare the translation with its source.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np

from paraloom.models.scorers.base import Resource, scorer
from paraloom.models.scorers.learned.reference_score import log_probability, open_translation_model
from paraloom.models.text.tokens import PairText

if TYPE_CHECKING:
    from paraloom.models.nmt.translate import Translator

_found: WeakKeyDictionary[PairText, tuple[Translator, np.ndarray]] = WeakKeyDictionary()
"""The model and its scores for the pairs being scored, so that two scorers use them."""


_FORWARD_MODEL = Resource(
    name="forward_model",
    open=open_translation_model,
    remedy="a model in the other direction: name one in `nmt.forward_model`, or train it on the "
    "input",
    is_model=True,
)


@scorer(
    meaning="log p(source | translation) divided by its subwords (natural logarithm), by a "
    "model in the other direction",
    unit="log p per subword",
    range=(None, 0.0),
    resource=_FORWARD_MODEL,
    reads=("source", "translation"),
)
def source_score(pairs: PairText, forward_model: Translator) -> np.ndarray:
    """log p(source | translation) per subword, with the end of sentence: float32 [n], at most 0.

    Computed by `log_probability`. Use it to find wrong translations: from these, the model seldom
    recovers the source.
    """
    assert pairs.source_text is not None
    model, values = _found.get(pairs, (None, None))
    if values is None or model is not forward_model:
        values = log_probability(pairs.translation_text, pairs.source_text, forward_model)
        _found[pairs] = forward_model, values
    return values


@scorer(
    meaning="agreement of both directions: 1 if translation and source have probability 1 "
    "given each other; lower if they are less probable, or not equally probable",
    unit="agreement",
    resource=_FORWARD_MODEL,
    reads=("source", "translation", "translation_score"),
)
def dual_score(pairs: PairText, forward_model: Translator) -> np.ndarray:
    """Agreement of both directions: float32 [n], from 0 to 1.

    exp(−(|a − b| + (a + b) / 2)), where a is the cross-entropy of the translation given the source,
    which is −`translation_score`, and b the cross-entropy of the source given the translation.
    High if a and b are small and nearly equal (Junczys-Dowmunt 2018, "Dual
    Conditional Cross-Entropy Filtering of Noisy Parallel Corpora", section 2.1).
    """
    assert pairs.translation_score is not None
    there = -pairs.translation_score.to_numpy(zero_copy_only=False)
    back = -source_score(pairs, forward_model)
    return np.asarray(np.exp(-(np.abs(there - back) + (there + back) / 2)), np.float32)
