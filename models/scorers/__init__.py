"""Scores of (reference, translation) pairs, one module a scorer.

A new scorer is a function from `PairText` (and a table of words, if it needs one) to float32 [n]
in a module of its own, and one line in `SCORERS`. Its values must depend on the row alone, to the
last bit, and not on the batch in which the row stands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from models.errors import UserError
from models.scorers.edit_distance import edit_distance
from models.scorers.encoder_similarity import encoder_similarity
from models.scorers.human_classifier import Classifier, open_classifier
from models.scorers.human_likeness import human_likeness
from models.scorers.length_ratio import length_ratio
from models.scorers.mean_idf import mean_idf
from models.scorers.paragram_similarity import paragram_similarity
from models.scorers.trigram_overlap import trigram_overlap
from models.scorers.unigram_f1 import unigram_f1
from models.scorers.word_order import word_order
from models.text.tokens import PairText
from models.text.vectors import WordVectors, open_vectors, read_vectors

if TYPE_CHECKING:
    from models.embeddings.model import SentenceEncoder

Table = Path | str | WordVectors
"""A number or a vector a word, or where they are: a text file, or a folder in the compact form."""


@dataclass(frozen=True)
class Scorer:
    """A function of `PairText` and, if `needs` names it, of a table or of a model."""

    function: Callable[..., np.ndarray]
    needs: str | None = None


ENCODER = "encoder_similarity"
"""The one that no first round has: its encoder is trained on what the others selected."""

SCORERS = {
    "trigram_overlap": Scorer(trigram_overlap),
    "paragram_similarity": Scorer(paragram_similarity, needs="paragram"),
    "length_ratio": Scorer(length_ratio),
    "unigram_f1": Scorer(unigram_f1),
    "edit_distance": Scorer(edit_distance),
    "word_order": Scorer(word_order),
    "mean_idf": Scorer(mean_idf, needs="idf"),
    "human_likeness": Scorer(human_likeness, needs="classifier"),
    ENCODER: Scorer(encoder_similarity, needs="encoder"),
}

_REMEDIES = {
    "paragram": "word vectors: set score.paragram to a file of them, or score.phrases to phrase "
    "pairs to train them on",
    "idf": "the words' IDF: set score.idf to a file of them, or count them on the corpus",
    "classifier": "its classifier, trained on the corpus",
    "encoder": "an encoder that was trained before",
}
_ROWS = 4096  # scored at once: large enough for numpy, small enough for the cache
_MOST_TOKENS = np.iinfo(np.int16).max


class PairScorer:
    """Scores two text columns with several scorers that share one tokenisation.

    `paragram` are the word vectors of `paragram_similarity`, `idf` is the table of `mean_idf`,
    `classifier` the one of `human_likeness`, or its folder; `encoder` that of `encoder_similarity`,
    or its folder.

    >>> scorer = PairScorer(["trigram_overlap"])
    >>> scores = scorer.score(pa.array(["a dog runs fast ."]), pa.array(["a dog runs ."]))
    >>> {name: values.tolist() for name, values in scores.items()}
    {'reference_tokens': [5], 'translation_tokens': [4], 'trigram_overlap': [0.5]}

    Raises:
        UserError: no scorer has such a name, or one lacks the table it needs.
    """

    def __init__(
        self,
        names: Iterable[str],
        *,
        paragram: Table | None = None,
        idf: Table | None = None,
        classifier: Path | str | Classifier | None = None,
        encoder: Path | str | SentenceEncoder | None = None,
    ) -> None:
        self.names = list(names)
        given = {"paragram": paragram, "idf": idf, "classifier": classifier, "encoder": encoder}
        self._needed: dict[str, dict[str, Any]] = {}
        for name in self.names:
            if name not in SCORERS:
                raise UserError(f"scorer {name!r} is unknown: choose from {', '.join(SCORERS)}")
            if needs := SCORERS[name].needs:
                what = given[needs]
                if what is None:
                    raise UserError(f"{name} needs {_REMEDIES[needs]}")
                self._needed[name] = {needs: _opened(needs, what)}

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
            scores[name] = SCORERS[name].function(pairs, **self._needed.get(name, {}))
        return scores


def _opened(needs: str, what: Any) -> Any:
    if not isinstance(what, (Path, str)):
        return what
    if needs == "classifier":
        return open_classifier(what)
    if needs == "encoder":
        from models.embeddings.model import load_encoder  # torch: only where it is asked for

        return load_encoder(what)
    return open_vectors(what) if Path(what).is_dir() else read_vectors(what)


def _int16(lengths: np.ndarray) -> np.ndarray:
    if len(lengths) and lengths.max() > _MOST_TOKENS:
        raise UserError(
            f"a text of {lengths.max():,} tokens: at most {_MOST_TOKENS:,} can be scored"
        )
    return lengths.astype(np.int16)
