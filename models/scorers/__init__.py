"""Scores of (reference, translation) pairs, one module per scorer.

A new scorer is a module with a function from `PairText` (and the scorer's resource, if it has one)
to float32 [n], and one entry in `SCORERS`. The value of a row must depend on that row alone, to the
last bit, and not on the batch that the row is in.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from models.errors import UserError
from models.languages import ENGLISH
from models.scorers.edit_distance import edit_distance
from models.scorers.encoder_similarity import encoder_similarity, open_encoder
from models.scorers.human_classifier import open_classifier
from models.scorers.human_likeness import human_likeness
from models.scorers.length_ratio import length_ratio
from models.scorers.mean_idf import mean_idf
from models.scorers.paragram_similarity import paragram_similarity
from models.scorers.reference_score import open_translation_model, reference_score
from models.scorers.trigram_overlap import trigram_overlap
from models.scorers.unigram_f1 import unigram_f1
from models.scorers.word_order import word_order
from models.text.tokens import PairText
from models.text.vectors import load_vectors


@dataclass(frozen=True, kw_only=True)
class Resource:
    """What a scorer reads besides the texts."""

    name: str
    """of the function's parameter, of `PairScorer`'s keyword, and of the stage that makes it"""
    open: Callable[[Path], Any]  # loads it from a file or folder
    remedy: str  # continues the message "<scorer> needs …" if the resource is missing


@dataclass(frozen=True, kw_only=True)
class Scorer:
    """A scorer."""

    function: Callable[..., np.ndarray]  # from `PairText` (and the resource) to float32 [n]
    meaning: str  # the definition in one line, for the report and the data card
    unit: str  # title of the axis in plots
    range: tuple[float | None, float | None] = (0.0, 1.0)  # of the values; None: no bound
    resource: Resource | None = None
    reads_source: bool = False  # whether the function reads `PairText.source_text`

    @property
    def resource_name(self) -> str | None:
        """The name of its resource, if it has one."""
        return self.resource.name if self.resource else None


ENCODER = "encoder_similarity"
"""The scorer that the first round does not have: its encoder is trained in the round before."""

SCORERS = {
    "trigram_overlap": Scorer(
        function=trigram_overlap,
        meaning="shared token trigrams, divided by those of the side with fewer trigrams",
        unit="share of trigrams",
    ),
    "paragram_similarity": Scorer(
        function=paragram_similarity,
        meaning="cosine of the mean PARAGRAM word vectors of the two sides",
        unit="cosine",
        range=(-1.0, 1.0),
        resource=Resource(
            name="paragram",
            open=load_vectors,
            remedy="word vectors: set score.paragram to a file of them, or score.phrases to "
            "phrase pairs to train them on",
        ),
    ),
    "length_ratio": Scorer(
        function=length_ratio,
        meaning="tokens of the shorter side divided by those of the longer",
        unit="ratio",
    ),
    "unigram_f1": Scorer(
        function=unigram_f1,
        meaning="harmonic mean of precision and recall of the tokens",
        unit="F1",
    ),
    "edit_distance": Scorer(
        function=edit_distance,
        meaning="Levenshtein distance in tokens, divided by the tokens of the longer side",
        unit="share of tokens",
    ),
    "word_order": Scorer(
        function=word_order,
        meaning="Kendall's tau of the positions of the shared tokens",
        unit="Kendall's tau",
        range=(-1.0, 1.0),
    ),
    "mean_idf": Scorer(
        function=mean_idf,
        meaning="mean inverse document frequency of the tokens of both sides",
        unit="IDF",
        range=(None, None),
        resource=Resource(
            name="idf",
            open=load_vectors,
            remedy="the words' IDF: set score.idf to a file of them, or count them on the corpus",
        ),
    ),
    "human_likeness": Scorer(
        function=human_likeness,
        meaning="P(written by a person | translation), by a classifier that was not trained on "
        "the pair",
        unit="probability",
        resource=Resource(
            name="classifier",
            open=open_classifier,
            remedy="its classifier, trained on the corpus",
        ),
    ),
    "reference_score": Scorer(
        function=reference_score,
        meaning="log p(reference | source) divided by its subwords (natural logarithm), by the "
        "model that translated",
        unit="log p per subword",
        range=(None, 0.0),
        resource=Resource(
            name="translation_model",
            open=open_translation_model,
            remedy="the model that translates the sources",
        ),
        reads_source=True,
    ),
    ENCODER: Scorer(
        function=encoder_similarity,
        meaning="cosine of the two sides under the encoder of the round before",
        unit="cosine",
        range=(-1.0, 1.0),
        resource=Resource(
            name="encoder", open=open_encoder, remedy="an encoder that was trained before"
        ),
    ),
}

_ROWS = 4096  # scored at once: large enough for numpy, small enough for the cache
_MOST_TOKENS = np.iinfo(np.int16).max


class PairScorer:
    """Scores two text columns with several scorers that share one tokenisation.

    >>> scorer = PairScorer(["trigram_overlap"])
    >>> scores = scorer.score(pa.array(["a dog runs fast ."]), pa.array(["a dog runs ."]))
    >>> {name: values.tolist() for name, values in scores.items()}
    {'reference_tokens': [5], 'translation_tokens': [4], 'trigram_overlap': [0.5]}

    Args:
        names: of the scorers.
        language: of both sides.
        resources: by the names of `Resource`, each as a path or already open.

    Raises:
        UserError: no scorer has such a name, or its resource is missing.
    """

    def __init__(self, names: Iterable[str], *, language: str = ENGLISH, **resources: Any) -> None:
        self.names, self.language = list(names), language
        self._resources: dict[str, dict[str, Any]] = {}
        for name in self.names:
            if name not in SCORERS:
                raise UserError(f"scorer {name!r} is unknown: choose from {', '.join(SCORERS)}")
            if resource := SCORERS[name].resource:
                given = resources.get(resource.name)
                if given is None:
                    raise UserError(f"{name} needs {resource.remedy}")
                is_path = isinstance(given, Path | str)
                opened = resource.open(Path(given)) if is_path else given
                self._resources[name] = {resource.name: opened}

    @property
    def reads_source(self) -> bool:
        """Whether a scorer needs the sources."""
        return any(SCORERS[name].reads_source for name in self.names)

    def score(
        self, reference: pa.Array, translation: pa.Array, source: pa.Array | None = None
    ) -> dict[str, np.ndarray]:
        """Token counts (int16 [n]) of both sides and every scorer's values (float32 [n]).

        Args:
            source: only for scorers that read it.

        Raises:
            UserError: a text has more tokens than int16 can count, or the source is missing.
        """
        if source is None and self.reads_source:
            names = [name for name in self.names if SCORERS[name].reads_source]
            raise UserError(f"{', '.join(names)}: needs the sources of the pairs")
        blocks = []
        for start in range(0, max(len(reference), 1), _ROWS):
            rows = slice(start, start + _ROWS)
            given = None if source is None else source[rows]
            texts = reference[rows], translation[rows]
            blocks.append(self._score(PairText(*texts, source=given, language=self.language)))
        return {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}

    def _score(self, pairs: PairText) -> dict[str, np.ndarray]:
        scores = {
            "reference_tokens": _int16(pairs.reference.lengths),
            "translation_tokens": _int16(pairs.translation.lengths),
        }
        for name in self.names:
            scores[name] = SCORERS[name].function(pairs, **self._resources.get(name, {}))
        return scores


def _int16(lengths: np.ndarray) -> np.ndarray:
    if len(lengths) and lengths.max() > _MOST_TOKENS:
        raise UserError(
            f"a text of {lengths.max():,} tokens: at most {_MOST_TOKENS:,} can be scored"
        )
    return lengths.astype(np.int16)
