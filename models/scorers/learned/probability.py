"""Probabilities of the reference and of the source according to translation models."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa

from paraloom.models.scorers.base import Resource, scorer
from paraloom.models.text.tokens import PairText

if TYPE_CHECKING:
    from paraloom.models.nmt.translate import Translator


def open_translation_model(folder: Path) -> Translator:
    """Load a translation model with default options."""
    from paraloom.models.nmt.translate import Translator

    return Translator(folder)


@scorer(
    meaning="log p(reference | source) per subword of the reference (natural logarithm), by the "
    "translation model",
    unit="log p per subword",
    range=(None, 0.0),
    resource=Resource(
        name="translation_model",
        open=open_translation_model,
        remedy="the model that translates the sources",
        is_model=True,
    ),
    reads=("source", "reference", "translation"),
)
def reference_score(pairs: PairText, translation_model: Translator) -> np.ndarray:
    """Return log p(reference | source) per subword, as defined by `log_probability`: float32 [n].
    Use this scorer to find pairs whose reference does not fit the source."""
    assert pairs.source_text is not None
    return log_probability(pairs.source_text, pairs.reference_text, translation_model)


_found: WeakKeyDictionary[PairText, tuple[Translator, np.ndarray]] = WeakKeyDictionary()
"""The model and the results of `source_score` for each `PairText`. `dual_score` reuses them."""


_FORWARD_MODEL = Resource(
    name="forward_model",
    open=open_translation_model,
    remedy="a model in the other direction: set `nmt.forward_model` to a model, or to null to "
    "train a model on the input",
    is_model=True,
)


@scorer(
    meaning="log p(source | translation) per subword of the source (natural logarithm), by a "
    "model in the other direction",
    unit="log p per subword",
    range=(None, 0.0),
    resource=_FORWARD_MODEL,
    reads=("source", "translation"),
)
def source_score(pairs: PairText, forward_model: Translator) -> np.ndarray:
    """Return log p(source | translation) per subword, as defined by `log_probability`: float32 [n].
    Use this scorer to find wrong translations, which rarely make the source probable."""
    assert pairs.source_text is not None
    model, values = _found.get(pairs, (None, None))
    if values is None or model is not forward_model:
        values = log_probability(pairs.translation_text, pairs.source_text, forward_model)
        _found[pairs] = forward_model, values
    return values


@scorer(
    meaning="agreement of both directions: 1 if p(translation | source) and "
    "p(source | translation) are 1, less if they are smaller or differ",
    unit="agreement",
    resource=_FORWARD_MODEL,
    reads=("source", "translation", "translation_score"),
)
def dual_score(pairs: PairText, forward_model: Translator) -> np.ndarray:
    """Return the agreement of both translation directions: float32 [n], from 0 to 1.

    The score is exp(−(|a − b| + (a + b) / 2)). Here a is the cross-entropy of the translation given
    the source, −`translation_score`, and b is the cross-entropy of the source given the
    translation. The score is high if a and b are small and nearly equal (Junczys-Dowmunt 2018,
    "Dual Conditional Cross-Entropy Filtering of Noisy Parallel Corpora", section 2.1).
    """
    assert pairs.translation_score is not None
    there = -pairs.translation_score.to_numpy(zero_copy_only=False)
    back = -source_score(pairs, forward_model)
    return np.asarray(np.exp(-(np.abs(there - back) + (there + back) / 2)), np.float32)


def log_probability(given: pa.Array, wanted: pa.Array, model: Translator) -> np.ndarray:
    """Return log p(wanted | given) per subword for two columns of text: float32 [n], at most 0.

    The subwords include the end of sentence. The value is NaN if `Translator.score` has no value,
    for example for an empty text. The last bits depend on the other rows.
    """
    distinct, back = distinct_pairs(given, wanted)
    scores = model.score(*map(list, zip(*distinct, strict=True)))
    return np.asarray(np.minimum(scores, np.float32(0))[back])


def distinct_pairs(first: pa.Array, second: pa.Array) -> tuple[list[tuple[str, str]], np.ndarray]:
    """Return the distinct pairs of texts in two columns, and the index of each row's pair, [n]."""
    codes = (column.dictionary_encode().indices.to_numpy() for column in (first, second))
    one, other = (code.astype(np.int64) for code in codes)
    _, rows, back = np.unique(one * len(first) + other, return_index=True, return_inverse=True)
    texts = (column.take(pa.array(rows)).to_pylist() for column in (first, second))
    return list(zip(*texts, strict=True)), back
