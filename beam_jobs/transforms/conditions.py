"""`input.where`: conditions on a pair before its translation, such as `source_tokens <= 60`."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paraloom.beam_jobs.transforms.duplicates import normalised
from paraloom.beam_jobs.transforms.predicates import Predicate
from paraloom.models.languages import ENGLISH
from paraloom.models.nmt.families.base import Languages
from paraloom.models.text.language_identifier import check_language, may_be
from paraloom.models.text.tokens import moses_tokens

# A full stop, question or exclamation mark of any script, then closing quotes and brackets.
_FINAL = r"[.!?…。！？．؟۔।॥։።][\"'”’“‘»«›)\]）」』\s]*$"


class Side:
    """One side of n pairs; what several conditions read is computed once."""

    def __init__(self, text: pa.Array, language: str | None = None) -> None:
        self.text, self.language = text, language or ENGLISH

    @cached_property
    def tokens(self) -> np.ndarray:
        """Moses tokens: int [n]."""
        return np.diff(moses_tokens(self.text, self.language).offsets.to_numpy())

    @cached_property
    def characters(self) -> np.ndarray:
        """Characters: int [n]."""
        return np.asarray(pc.utf8_length(self.text).to_numpy())

    @property
    def letters(self) -> np.ndarray:
        """Letters (and their combining marks) among the characters that are no space: [0, 1]."""
        letters = pc.utf8_length(pc.replace_substring_regex(self.text, r"[^\p{L}\p{M}]+", ""))
        visible = pc.utf8_length(pc.replace_substring_regex(self.text, r"\s+", ""))
        return np.asarray(letters.to_numpy() / np.maximum(visible.to_numpy(), 1))

    @cached_property
    def is_final(self) -> np.ndarray:
        """Whether it ends in sentence-final punctuation: bool [n]."""
        found = pc.match_substring_regex(self.text, _FINAL)
        return np.asarray(found.to_numpy(zero_copy_only=False))


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Pairs whose columns a condition reads."""

    source: Side
    reference: Side

    @property
    def are_identical(self) -> np.ndarray:
        """Whether both sides have the same letters and digits: bool [n]."""
        same = pc.equal(normalised(self.source.text), normalised(self.reference.text))
        return np.asarray(same.to_numpy(zero_copy_only=False))


@dataclass(frozen=True, slots=True)
class Column:
    """What a condition can name.

    Attributes:
        kind: number: compared with numbers; flag: `= yes` or `= no`.
    """

    meaning: str
    kind: Literal["number", "flag"]
    read: Callable[[Pairs], np.ndarray]


def _ratio(source: np.ndarray, reference: np.ndarray) -> np.ndarray:
    return np.asarray(source / np.maximum(reference, 1))


COLUMNS = {
    "source_tokens": Column("Moses tokens", "number", lambda p: p.source.tokens),
    "reference_tokens": Column("Moses tokens", "number", lambda p: p.reference.tokens),
    "source_characters": Column("characters", "number", lambda p: p.source.characters),
    "reference_characters": Column("characters", "number", lambda p: p.reference.characters),
    "token_ratio": Column(
        "tokens of the source divided by those of the reference",
        "number",
        lambda p: _ratio(p.source.tokens, p.reference.tokens),
    ),
    "character_ratio": Column(
        "characters of the source divided by those of the reference",
        "number",
        lambda p: _ratio(p.source.characters, p.reference.characters),
    ),
    "source_letters": Column(
        "share of letters among characters that are no space", "number", lambda p: p.source.letters
    ),
    "reference_letters": Column(
        "share of letters among characters that are no space",
        "number",
        lambda p: p.reference.letters,
    ),
    "source_final_punctuation": Column(
        "ends in `.`, `!`, `?`, `…` or their like, quotes and brackets aside",
        "flag",
        lambda p: p.source.is_final,
    ),
    "reference_final_punctuation": Column(
        "the same of the reference", "flag", lambda p: p.reference.is_final
    ),
    "same_final_punctuation": Column(
        "both sides end in such a mark, or neither",
        "flag",
        lambda p: p.source.is_final == p.reference.is_final,
    ),
    "identical": Column(
        "both sides have the same letters and digits, case aside",
        "flag",
        lambda p: p.are_identical,
    ),
}
"""The columns of numbers and flags, by name."""

TOKEN_COLUMNS = ("source_tokens", "reference_tokens", "token_ratio")
"""The columns that depend on how the languages of the two sides are tokenised."""

LANGUAGE_COLUMNS = ("source_language", "reference_language")
"""The columns that are compared with language codes."""


FAILED = "not"
"""Beginning of a reason of rejection that a condition follows."""


def parse_condition(text: str) -> Predicate:
    """Parse and check a condition.

    >>> print(parse_condition("token_ratio in 0.5..1.25"))
    token_ratio in 0.5..1.25
    >>> print(parse_condition("source_language=cs"))
    source_language = cs
    """
    condition = Predicate.parse(text, words=True)
    name = condition.column
    if name not in (*COLUMNS, *LANGUAGE_COLUMNS):
        known = (*COLUMNS, *LANGUAGE_COLUMNS)
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
        raise ValueError(f"{name} is no column of untranslated pairs; {hint}")
    word = condition.value if isinstance(condition.value, str) else None
    if name in LANGUAGE_COLUMNS:
        if word is None:
            raise ValueError(f"'{text}': write `{name} = en` (or !=)")
        check_language(word)
    elif COLUMNS[name].kind == "flag":
        if word not in ("yes", "no") or condition.operator != "=":
            raise ValueError(f"'{text}': write `{name} = yes` or `{name} = no`")
    elif word is not None:
        raise ValueError(f"'{text}': {name} is compared with a number by <=, >=, <, > or in")
    return condition


def reasons(
    source: pa.Array,
    reference: pa.Array,
    conditions: Sequence[Predicate],
    languages: Languages | None = None,
) -> np.ndarray:
    """The first condition that each pair fails, as `not <condition>`; "" if none: object [n].

    Args:
        languages: by which the two sides are tokenised; None: both as English.
    """
    of_source, of_reference = (languages.source, languages.target) if languages else (None, None)
    found = np.full(len(source), "", object)
    rows = np.arange(len(source))
    for condition in conditions:
        pairs = Pairs(
            Side(source.take(pa.array(rows)), of_source),
            Side(reference.take(pa.array(rows)), of_reference),
        )
        fails = ~_holds(condition, pairs)
        found[rows[fails]] = f"{FAILED} {condition}"
        rows = rows[~fails]
    return found


def _holds(condition: Predicate, pairs: Pairs) -> np.ndarray:
    name, value = condition.column, condition.value
    if not isinstance(value, str):
        return condition.holds(COLUMNS[name].read(pairs))
    if name not in LANGUAGE_COLUMNS:
        return np.asarray(COLUMNS[name].read(pairs) == (value == "yes"))
    side = pairs.source if name == "source_language" else pairs.reference
    return np.asarray(may_be(side.text, value) == (condition.operator == "="))
