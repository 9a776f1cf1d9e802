"""Probability of the reference under the translation model: low where a pair is no translation."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from paraloom.models.text.tokens import PairText

if TYPE_CHECKING:
    from paraloom.models.nmt.translate import Translator


def reference_score(pairs: PairText, translation_model: Translator) -> np.ndarray:
    """log p(reference | source) per subword, end of sentence included: float32 [n], at most 0.

    Natural logarithm, as `translation_score`. Equal pairs of source and reference, such as those of
    several translations of a source, are scored once. NaN where a side is empty or has more
    subwords than the model takes. As with every model in batches, the last bits of a value depend
    on the other rows of a block.
    """
    assert pairs.source_text is not None
    keys = pa.table({"source": pairs.source_text, "reference": pairs.reference_text})
    codes = [column.combine_chunks().dictionary_encode().indices for column in keys.columns]
    source, reference = (code.to_numpy().astype(np.int64) for code in codes)
    _, first, back = np.unique(
        source * len(pairs) + reference, return_index=True, return_inverse=True
    )
    distinct = keys.take(pa.array(first))
    scores = translation_model.score(*(column.to_pylist() for column in distinct.columns))
    return np.minimum(scores, np.float32(0))[back]


def open_translation_model(folder: Path) -> Translator:
    """Load a model with the default options."""
    from paraloom.models.nmt.translate import Translator

    return Translator(folder)
