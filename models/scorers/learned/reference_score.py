"""Probability of the reference under the translation model: low if it does not fit the source."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from paraloom.models.scorers.base import Resource, scorer
from paraloom.models.text.tokens import PairText

if TYPE_CHECKING:
    from paraloom.models.nmt.translate import Translator


def open_translation_model(folder: Path) -> Translator:
    """Load a model with the default options."""
    from paraloom.models.nmt.translate import Translator

    return Translator(folder)


@scorer(
    meaning="log p(reference | source) divided by its subwords (natural logarithm), by the "
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
    """log p(reference | source) per subword, including the end of sentence: float32 [n], at most 0.

    Computed by `log_probability`. Use it to find pairs whose reference does not fit its source.
    """
    assert pairs.source_text is not None
    return log_probability(pairs.source_text, pairs.reference_text, translation_model)


def log_probability(given: pa.Array, wanted: pa.Array, model: Translator) -> np.ndarray:
    """log p(wanted | given) per subword of two columns of text: float32 [n], at most 0.

    Natural logarithm, as in `translation_score`. Repeated pairs, such as candidates for one source,
    are scored once. NaN if a side is empty or has more subwords than the model accepts. As with
    every batched model, the last bits of a value depend on the other rows in a block.
    """
    distinct, back = distinct_pairs(given, wanted)
    scores = model.score(*map(list, zip(*distinct, strict=True)))
    return np.asarray(np.minimum(scores, np.float32(0))[back])


def distinct_pairs(first: pa.Array, second: pa.Array) -> tuple[list[tuple[str, str]], np.ndarray]:
    """Distinct pairs of texts in two columns, and each row's index among them: int [n]."""
    codes = (column.dictionary_encode().indices.to_numpy() for column in (first, second))
    one, other = (code.astype(np.int64) for code in codes)
    _, rows, back = np.unique(one * len(first) + other, return_index=True, return_inverse=True)
    texts = (column.take(pa.array(rows)).to_pylist() for column in (first, second))
    return list(zip(*texts, strict=True)), back
