"""Scores of (reference, translation) pairs, one module a scorer.

A new scorer is a function from `PairText` to float32 [n] in a module of its own, and one line in
`SCORERS`. Its values must depend on the row alone, not on the batch in which it stands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa

from models.errors import UserError
from models.scorers.paragram_similarity import paragram_similarity
from models.scorers.trigram_overlap import trigram_overlap
from models.tokens import PairText
from models.vectors import WordVectors, open_vectors, read_vectors

SCORERS: dict[str, Callable[..., np.ndarray]] = {
    "trigram_overlap": trigram_overlap,
    "paragram_similarity": paragram_similarity,  # with paragram=WordVectors
}

_ROWS = 4096  # scored at once: large enough for numpy, small enough for the cache
_MOST_TOKENS = np.iinfo(np.int16).max


class PairScorer:
    """Scores two text columns with several scorers that share one tokenisation.

    `paragram` is word vectors, or where they are: a text file, or a folder in the compact form.

    >>> scorer = PairScorer(["trigram_overlap"])
    >>> scores = scorer.score(pa.array(["a dog runs fast ."]), pa.array(["a dog runs ."]))
    >>> {name: values.tolist() for name, values in scores.items()}
    {'reference_tokens': [5], 'translation_tokens': [4], 'trigram_overlap': [0.5]}

    Raises:
        UserError: no scorer has such a name, or one lacks the vectors it needs.
    """

    def __init__(
        self, names: Iterable[str], *, paragram: Path | str | WordVectors | None = None
    ) -> None:
        self.names = list(names)
        for name in self.names:
            if name not in SCORERS:
                raise UserError(f"scorer {name!r} is unknown: choose from {', '.join(SCORERS)}")
        self._resources: dict[str, dict[str, WordVectors]] = {}
        if "paragram_similarity" in self.names:
            if paragram is None:
                raise UserError(
                    "paragram_similarity needs word vectors: set score.paragram to a file of them, "
                    "or score.phrases to phrase pairs to train them on"
                )
            self._resources["paragram_similarity"] = {"paragram": _vectors(paragram)}

    def score(self, reference: pa.Array, translation: pa.Array) -> dict[str, np.ndarray]:
        """Token counts (int16 [n]) of both sides and every scorer's values (float32 [n]).

        Raises:
            UserError: a text has more tokens than int16 can count.
        """
        blocks = [
            self._score(
                PairText(reference[start : start + _ROWS], translation[start : start + _ROWS])
            )
            for start in range(0, max(len(reference), 1), _ROWS)
        ]
        return {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}

    def _score(self, pairs: PairText) -> dict[str, np.ndarray]:
        scores = {
            "reference_tokens": _int16(pairs.reference.lengths),
            "translation_tokens": _int16(pairs.translation.lengths),
        }
        for name in self.names:
            scores[name] = SCORERS[name](pairs, **self._resources.get(name, {}))
        return scores


def _vectors(paragram: Path | str | WordVectors) -> WordVectors:
    if isinstance(paragram, WordVectors):
        return paragram
    return open_vectors(paragram) if Path(paragram).is_dir() else read_vectors(paragram)


def _int16(lengths: np.ndarray) -> np.ndarray:
    if len(lengths) and lengths.max() > _MOST_TOKENS:
        raise UserError(
            f"a text of {lengths.max():,} tokens: at most {_MOST_TOKENS:,} can be scored"
        )
    return lengths.astype(np.int16)
