"""Computes two scores in plain Python, pair by pair, as a baseline for the vectorised scorers.

The code calls the tokeniser once per sentence, counts trigrams with `collections.Counter`, and
averages the word vectors of a sentence with numpy. Tests use it as the definition of the scores.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import numpy as np

Tokenizer = Callable[[str], list[str]]


def fast_tokenizer() -> Tokenizer:
    """Return Moses' tokeniser in C++, with lower-cased tokens."""
    from mosestokenizer import MosesTokenizer

    moses = MosesTokenizer("en")
    return lambda text: [token.lower() for token in moses.tokenize(text)]


def trigram_overlap(reference: Sequence[str], translation: Sequence[str]) -> float:
    """Return the share of shared trigrams among the trigrams of the side with fewer trigrams.

    The share is 0 if a side has no trigrams.
    """
    trigrams = [
        Counter(zip(tokens, tokens[1:], tokens[2:], strict=False))
        for tokens in (reference, translation)
    ]
    fewer = min(counter.total() for counter in trigrams)
    return (trigrams[0] & trigrams[1]).total() / fewer if fewer else 0.0


def paragram_similarity(
    reference: Sequence[str], translation: Sequence[str], vectors: Mapping[str, np.ndarray]
) -> float:
    """Return the cosine of the mean vectors of known words, or 0 if a side has no known words."""
    sides = [
        [vectors[token] for token in tokens if token in vectors]
        for tokens in (reference, translation)
    ]
    if not all(sides):
        return 0.0
    r, t = (np.mean(side, axis=0) for side in sides)
    norms = math.sqrt(float(r @ r) * float(t @ t))
    return float(r @ t) / norms if norms else 0.0


def score(
    references: Sequence[str],
    translations: Sequence[str],
    vectors: Mapping[str, np.ndarray],
    tokenize: Tokenizer,
) -> dict[str, list[float]]:
    """Compute columns of `paraloom.models.scorers.PairScorer` as lists."""
    rows = [(tokenize(r), tokenize(t)) for r, t in zip(references, translations, strict=True)]
    return {
        "reference_tokens": [len(r) for r, _ in rows],
        "translation_tokens": [len(t) for _, t in rows],
        "trigram_overlap": [trigram_overlap(r, t) for r, t in rows],
        "paragram_similarity": [paragram_similarity(r, t, vectors) for r, t in rows],
    }
