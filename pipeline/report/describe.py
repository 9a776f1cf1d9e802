"""The pair record and the selection in words: the report and the data card say the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from beam_jobs.io import schema


class Score(NamedTuple):
    """A score: what it measures, and what stands on its axis."""

    meaning: str
    unit: str


_SCORES = {
    "translation_score": Score(
        "log p(translation | source) over its subwords (natural logarithm)", "log p per subword"
    ),
    "trigram_overlap": Score(
        "token trigrams both sides share, over those of the side with fewer", "share of trigrams"
    ),
    "paragram_similarity": Score(
        "cosine of the mean PARAGRAM word vectors of the two sides", "cosine"
    ),
    "length_ratio": Score("tokens of the shorter side over those of the longer", "ratio"),
    "unigram_f1": Score("harmonic mean of precision and recall of the tokens", "F1"),
    "edit_distance": Score(
        "Levenshtein distance in tokens over the tokens of the longer side", "share of tokens"
    ),
    "word_order": Score(
        "Kendall's tau of the positions of the tokens that both sides share", "Kendall's tau"
    ),
    "mean_idf": Score("mean inverse document frequency of both sides' tokens", "IDF"),
    "human_likeness": Score(
        "P(written by a person | translation), by a classifier that did not see the pair",
        "probability",
    ),
    "encoder_similarity": Score(
        "cosine of the two sides by the encoder of the round before", "cosine"
    ),
}

_TEXTS = {
    "id": "unique in the run; the bitext's own where it has one",
    "source": "sentence in the foreign language",
    "reference": "its English side in the bitext",
    "translation": "English translation of `source` by the model",
    "translation_subwords": "subwords of `translation`, end of sentence included",
    "reference_tokens": "Moses tokens of `reference`",
    "translation_tokens": "Moses tokens of `translation`",
}


def score(name: str) -> Score:
    """What is known of a score; of one that is not known here, that it is a score.

    >>> score("paragram_similarity").unit
    'cosine'
    """
    return _SCORES.get(name, Score(f"score of the scorer {name}", "score"))


def meaning(column: str) -> str:
    """One line for a column of the pair record."""
    suffix = schema.decile("")
    if column.endswith(suffix):
        return f"tenth of all pairs by `{column.removesuffix(suffix)}`: 0 lowest, 9 highest"
    return _TEXTS.get(column) or score(column).meaning


def spoken(name: str) -> str:
    """A name as it stands in running text: `trigram_overlap` → `trigram overlap`."""
    return name.replace("_", " ")


def selection(select: dict[str, Any]) -> str:
    """What a pair must be to be in the corpus, as the section `select` of a configuration has it.

    >>> where = ["unigram_f1 <= 0.8"]
    >>> select = {"by": "trigram_overlap", "deciles": [1, 2, 4], "max_tokens": 30, "size": None}
    >>> selection({**select, "where": where})
    'deciles 1–2 and 4 of `trigram_overlap`, `unigram_f1 <= 0.8`, at most 30 tokens a side'
    """
    parts = []
    if select["deciles"] is not None:
        parts.append(f"{deciles_in_words(select['deciles'])} of `{select['by']}`")
    parts += [f"`{condition}`" for condition in select["where"]]
    if select["max_tokens"] is not None:
        parts.append(f"at most {select['max_tokens']} tokens a side")
    if select["size"] is not None:
        parts.append(f"{select['size']:,} of them drawn at random")
    return ", ".join(parts) or "every pair"


def selected(select: dict[str, Any], stages: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The section `select` of a configuration, with what was chosen in place of `auto`."""
    if select["by"] != "auto" or "choice" not in stages:
        return select
    chosen = stages["choice"]["chosen"]
    return {**select, "by": chosen["scorer"], "deciles": chosen["deciles"]}


def deciles_in_words(deciles: Sequence[int]) -> str:
    """Runs of deciles.

    >>> deciles_in_words([4, 1, 2])
    'deciles 1–2 and 4'
    """
    chosen = sorted(set(deciles))
    starts = [d for d in chosen if d - 1 not in chosen]
    ends = [d for d in chosen if d + 1 not in chosen]
    runs = [f"{a}" if a == b else f"{a}–{b}" for a, b in zip(starts, ends, strict=True)]
    words = " and ".join([", ".join(runs[:-1]), runs[-1]] if runs[1:] else runs)
    return f"decile {words}" if len(chosen) == 1 else f"deciles {words}"
