"""The scorers of Paraloom by name; their columns have the same names."""

from typing import Any

from paraloom.models.scorers.base import Resource, Scorer
from paraloom.models.scorers.checks.antonyms import no_antonyms
from paraloom.models.scorers.checks.names import same_names
from paraloom.models.scorers.checks.negation import same_negation
from paraloom.models.scorers.checks.numbers import same_numbers
from paraloom.models.scorers.checks.roles import same_roles
from paraloom.models.scorers.learned.encoder_similarity import encoder_similarity, open_encoder
from paraloom.models.scorers.learned.paragram_similarity import paragram_similarity
from paraloom.models.scorers.learned.reference_score import open_translation_model, reference_score
from paraloom.models.scorers.learned.sentence_similarity import (
    cross_encoder,
    open_cross_encoder,
    open_sentence_model,
    sentence_similarity,
)
from paraloom.models.scorers.tokens.content_overlap import content_overlap
from paraloom.models.scorers.tokens.edit_distance import edit_distance, length_ratio
from paraloom.models.scorers.tokens.mean_idf import mean_idf
from paraloom.models.scorers.tokens.ngrams import trigram_overlap, unigram_f1
from paraloom.models.scorers.tokens.word_order import word_order
from paraloom.models.text.parses import Parser
from paraloom.models.text.vectors import load_vectors
from paraloom.models.text.wordnet import open_antonyms

ENCODER = "encoder_similarity"
"""The scorer that the first round does not have: its encoder is trained in the round before."""

_WORDNET = Resource(
    name="wordnet", open=open_antonyms, remedy="WordNet: set score.wordnet to /usr/share/wordnet"
)
_SPACY = Resource(name="spacy", open=Parser, remedy="a spaCy pipeline: name it in score.spacy")


def _check(function: Any, passes: str, failure: str, resource: Resource | None = None) -> Scorer:
    more: Any = {"unit": "passes", "failure": failure, "resource": resource}
    return Scorer(function=function, meaning=f"1 where {passes}, else 0", **more)


SCORERS = {
    "trigram_overlap": Scorer(
        function=trigram_overlap,
        meaning="shared token trigrams, divided by all trigrams of the side with fewer",
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
        meaning="tokens of the shorter side, divided by tokens of the longer",
        unit="ratio",
    ),
    "unigram_f1": Scorer(
        function=unigram_f1,
        meaning="harmonic mean of precision and recall of the tokens",
        unit="F1",
    ),
    "content_overlap": Scorer(
        function=content_overlap,
        meaning="F1 of the stems of the content words; inflection and function words do not count",
        unit="F1 of stems",
    ),
    "edit_distance": Scorer(
        function=edit_distance,
        meaning="Levenshtein distance in tokens, divided by the tokens of the longer side",
        unit="share of tokens",
        higher_is_better=False,
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
    "same_numbers": _check(same_numbers, "both sides have the same numbers", "numbers differ"),
    "same_names": _check(same_names, "each side has the names of the other", "names differ"),
    "same_negation": _check(same_negation, "both sides are negated or none is", "negation differs"),
    "no_antonyms": _check(
        no_antonyms, "no content word became its antonym", "a word became its antonym", _WORDNET
    ),
    "same_roles": _check(
        same_roles, "no subject and object are swapped", "subject and object swapped", _SPACY
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
            is_model=True,
        ),
        reads=("source", "reference", "translation"),
    ),
    "sentence_similarity": Scorer(
        function=sentence_similarity,
        meaning="cosine of the two sides under a model of sentence-transformers",
        unit="cosine",
        range=(-1.0, 1.0),
        resource=Resource(
            name="sentence_model",
            open=open_sentence_model,
            remedy="a model: set score.sentence_model to its folder or its name on the Hub",
            is_model=True,
        ),
        whole_shard=True,
    ),
    "cross_encoder": Scorer(
        function=cross_encoder,
        meaning="score of the pair by a cross-encoder of sentence-transformers",
        unit="score",
        range=(None, None),
        resource=Resource(
            name="cross_encoder_model",
            open=open_cross_encoder,
            remedy="a model: set score.cross_encoder_model to its folder or its name on the Hub",
            is_model=True,
        ),
        whole_shard=True,
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
