"""`input.where`: conditions on a pair before its translation, such as `source_tokens <= 60`."""

import difflib
from collections.abc import Callable, Collection, Sequence

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
    """One side of n pairs."""

    def __init__(self, text: pa.Array, language: str | None = None) -> None:
        self.text, self.language = text, language or ENGLISH

    @property
    def tokens(self) -> np.ndarray:
        """Moses tokens: int [n]."""
        return np.diff(moses_tokens(self.text, self.language).offsets.to_numpy())

    @property
    def characters(self) -> np.ndarray:
        """Characters: int [n]."""
        return np.asarray(pc.utf8_length(self.text).to_numpy())

    @property
    def letters(self) -> np.ndarray:
        """Letters (and their combining marks) among the characters that are no space: [0, 1]."""
        letters = pc.utf8_length(pc.replace_substring_regex(self.text, r"[^\p{L}\p{M}]+", ""))
        visible = pc.utf8_length(pc.replace_substring_regex(self.text, r"\s+", ""))
        return np.asarray(letters.to_numpy() / np.maximum(visible.to_numpy(), 1))

    @property
    def is_final(self) -> np.ndarray:
        """Whether it ends in sentence-final punctuation: bool [n]."""
        found = pc.match_substring_regex(self.text, _FINAL)
        return np.asarray(found.to_numpy(zero_copy_only=False))

    @property
    def plain(self) -> pa.Array:
        """The letters and digits, without case."""
        return normalised(self.text)


Read = Callable[[Side, Side], np.ndarray]
"""Reads a column of n pairs from their sources and references."""

NUMBERS: dict[str, Read] = {
    "source_tokens": lambda source, reference: source.tokens,
    "reference_tokens": lambda source, reference: reference.tokens,
    "source_characters": lambda source, reference: source.characters,
    "reference_characters": lambda source, reference: reference.characters,
    "token_ratio": lambda source, reference: source.tokens / np.maximum(reference.tokens, 1),
    "character_ratio": lambda source, reference: (
        source.characters / np.maximum(reference.characters, 1)
    ),
    "source_letters": lambda source, reference: source.letters,
    "reference_letters": lambda source, reference: reference.letters,
}
"""Columns that are compared with numbers; a ratio divides the source by the reference."""

FLAGS: dict[str, Read] = {
    "source_final_punctuation": lambda source, reference: source.is_final,
    "reference_final_punctuation": lambda source, reference: reference.is_final,
    "same_final_punctuation": lambda source, reference: source.is_final == reference.is_final,
    "identical": lambda source, reference: np.asarray(pc.equal(source.plain, reference.plain)),
}
"""Columns that are `= yes` or `= no`."""

LANGUAGE_COLUMNS = ("source_language", "reference_language")
"""The columns that are compared with language codes."""

COLUMNS = (*NUMBERS, *FLAGS, *LANGUAGE_COLUMNS)
"""All columns that are computed."""

TOKEN_COLUMNS = ("source_tokens", "reference_tokens", "token_ratio")
"""The columns that depend on how the languages of the two sides are tokenised."""

FAILED = "not"
"""Beginning of a reason of rejection that a condition follows."""


def parse_condition(text: str, kept: Collection[str] = ()) -> Predicate:
    """Parse and check a condition; `Predicate.check_type` checks one on a kept column.

    >>> print(parse_condition("token_ratio in 0.5..1.25"))
    token_ratio in 0.5..1.25
    >>> print(parse_condition("source_language=cs"))
    source_language = cs
    """
    condition = Predicate.parse(text, words=True)
    name, known = condition.column, (*COLUMNS, *kept)
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
        raise ValueError(f"{name} is no column of untranslated pairs; {hint}")
    word = condition.value if isinstance(condition.value, str) else None
    if name in LANGUAGE_COLUMNS:
        if word is None:
            raise ValueError(f"'{text}': write `{name} = en` (or !=)")
        check_language(word)
    elif name in FLAGS and (word not in ("yes", "no") or condition.operator != "="):
        raise ValueError(f"'{text}': write `{name} = yes` or `{name} = no`")
    elif name in NUMBERS and word is not None:
        raise ValueError(f"'{text}': {name} is compared with a number by <=, >=, <, > or in")
    return condition


def reasons(
    source: pa.Array,
    reference: pa.Array,
    conditions: Sequence[Predicate],
    languages: Languages | None = None,
    kept: pa.RecordBatch | pa.Table | None = None,
) -> np.ndarray:
    """The first condition that each pair fails, as `not <condition>`; "" if none: object [n].

    Args:
        languages: by which the two sides are tokenised; None: both as English.
        kept: the columns that conditions may be on besides.
    """
    codes = (languages.source, languages.target) if languages else (None, None)
    found = np.full(len(source), "", object)
    rows = np.arange(len(source))
    for condition in conditions:
        sides = [
            Side(texts.take(pa.array(rows)), code)
            for texts, code in zip((source, reference), codes, strict=True)
        ]
        if condition.column in COLUMNS:
            fails = ~_holds(condition, *sides)
        else:
            assert kept is not None
            fails = ~condition.holds_in(kept[condition.column].take(pa.array(rows)))
        found[rows[fails]] = f"{FAILED} {condition}"
        rows = rows[~fails]
    return found


def _holds(condition: Predicate, source: Side, reference: Side) -> np.ndarray:
    name, value = condition.column, condition.value
    if not isinstance(value, str):
        return condition.holds(NUMBERS[name](source, reference))
    if name in FLAGS:
        return np.asarray(FLAGS[name](source, reference) == (value == "yes"))
    side = source if name == "source_language" else reference
    return np.asarray(may_be(side.text, value) == (condition.operator == "="))
