"""Conditions on pairs: `input.where` (before translation) and `select.where` (after scoring)."""

import difflib
import operator
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paraloom.beam_jobs.engine import schema
from paraloom.beam_jobs.transforms.equal_texts import normalised
from paraloom.models.errors import UserError
from paraloom.models.languages import ENGLISH, short_code
from paraloom.models.nmt.families.base import Languages
from paraloom.models.text.language_identifier import OwnIdentifier, check_language, may_be
from paraloom.models.text.tokens import moses_tokens

_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
    "==": operator.eq,
}
_NUMBER = r"[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d{1,2})?"
_BARE = r"[\w.:/+-]+"
_CONDITION = re.compile(
    rf"\s*(?P<column>[\w.]+)\s*(?:(?P<compare><=|>=|==|<|>)\s*(?P<value>{_NUMBER})"
    rf"|\s+in\s+(?P<low>{_NUMBER})\s*\.\.\s*(?P<high>{_NUMBER})"
    rf"|(?P<equals>!?=)\s*(?P<word>{_BARE}|\"[^\"]*\"))\s*"
)
_TOKENS = ("reference_tokens", "translation_tokens")
_BY = "by <=, >=, <, >, == or in"


@dataclass(frozen=True, slots=True)
class Predicate:
    """A condition `column operator value`.

    The value is a number, a range (lowest, highest) that includes both ends, or a word.

    >>> print(Predicate.parse("unigram_f1_decile in 2..7"), Predicate.parse("domain=news"))
    unigram_f1_decile in 2..7 domain = news
    """

    column: str
    operator: str  # number: <=, >=, <, >, ==; range: in; word: =, !=
    value: float | tuple[float, float] | str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a condition."""
        if not (found := _CONDITION.fullmatch(text)):
            further = "; give each further condition as an item of the list"
            raise ValueError(
                f"{text!r} is not a condition; write `source_tokens <= 60` (or <, >=, >, ==), "
                "`unigram_f1_decile in 2..7`, `source_language = cs` (or !=) or `identical = no`"
                + (further if re.search(r"\band\b", text) else "")
            )
        column = found["column"]
        if found["word"]:
            return cls(column, found["equals"], found["word"].strip('"'))
        if found["compare"]:
            return cls(column, found["compare"], _number(found["value"]))
        low, high = _number(found["low"]), _number(found["high"])
        if low > high:
            raise ValueError(f"{text!r} can never be true: {low:g} is more than {high:g}")
        return cls(column, "in", (low, high))

    @property
    def numbers(self) -> tuple[float, ...]:
        """The number, or both ends of the range, or nothing if the value is a word."""
        if isinstance(self.value, str):
            return ()
        return self.value if isinstance(self.value, tuple) else (self.value,)

    def check(self, scorers: Sequence[str], kept: Sequence[str] = ()) -> None:
        """Raise ValueError if the condition is not possible for pairs with `scorers` and `kept`."""
        deciles = [schema.decile(score) for score in scorers]
        if self.column in kept:
            return
        if self.column not in (*scorers, *deciles, *_TOKENS):
            known = ", ".join((*scorers, *_TOKENS, *kept))
            raise ValueError(
                f"{self.column} is not a column of the pairs; choose {known}, or a decile such as "
                f"{deciles[0]}; scores must be named in score.scorers"
            )
        if isinstance(self.value, str):
            raise ValueError(f"'{self}': {self.column} is compared {_BY}")
        if self.column in deciles and not all(n in range(10) for n in self.numbers):
            raise ValueError(f"'{self}': deciles are whole numbers from 0 to 9")

    def check_untranslated(self, kept: Collection[str] = (), own: bool = False) -> None:
        """Raise ValueError if the condition is not possible for untranslated pairs.

        `own` says whether a function of the user identifies languages.
        """
        name, known = self.column, (*COLUMNS, *kept)
        word = self.value if isinstance(self.value, str) else None
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"choose among {', '.join(known)}"
            raise ValueError(f"{name} is not a column of untranslated pairs; {hint}")
        if name in _LANGUAGES:
            if word is None:
                raise ValueError(f"'{self}': write `{name} = en` (or !=)")
            check_language(word, own)
        elif name in _FLAGS and (word not in ("yes", "no") or self.operator != "="):
            raise ValueError(f"'{self}': write `{name} = yes` or `{name} = no`")
        elif name in _NUMBERS and word is not None:
            raise ValueError(f"'{self}': {name} is compared with a number {_BY}")

    def check_type(self, kind: pa.DataType) -> None:
        """Raise UserError if the value cannot be compared with values of this type."""
        try:
            number = kind in (pa.int64(), pa.float64())
            fits = self._word(kind).is_valid if isinstance(self.value, str) else number
        except pa.ArrowInvalid:
            fits = False
        if not fits:
            hint = "; only Parquet and JSON Lines have numbers" * (kind == pa.string())
            raise UserError(f"'{self}': {self.column} has values of type {kind}{hint}")

    def _word(self, kind: pa.DataType) -> pa.Scalar:
        words = {"yes": "true", "no": "false"} if kind == pa.bool_() else {}
        return pa.scalar(words.get(str(self.value), self.value)).cast(kind)

    def holds(self, values: np.ndarray) -> np.ndarray:
        """Return whether each of n numbers meets the condition, bool [n]."""
        with np.errstate(over="ignore"):  # in float32, 1e99 is inf, which compares correctly
            if isinstance(self.value, tuple):
                low, high = self.value
                return np.asarray((values >= low) & (values <= high))
            return np.asarray(_COMPARE[self.operator](values, self.value))

    def holds_in(self, column: pa.Array | pa.ChunkedArray) -> np.ndarray:
        """Return whether each value of a column meets the condition, bool [n]."""
        if not isinstance(self.value, str):
            # Arrow would convert integers with nulls to floats, which would round large integers.
            values = column.fill_null(0).to_numpy(zero_copy_only=False)
            valid = column.is_valid().to_numpy(zero_copy_only=False)
            return np.asarray(self.holds(values) & valid)
        equal = pc.equal(column, self._word(column.type)).fill_null(False)
        return np.asarray(equal.to_numpy(zero_copy_only=False) == (self.operator == "="))

    def __str__(self) -> str:
        if isinstance(self.value, str):
            bare = re.fullmatch(_BARE, self.value)
            return f"{self.column} {self.operator} " + (self.value if bare else f'"{self.value}"')
        numbers = (repr(number).removesuffix(".0") for number in self.numbers)
        return f"{self.column} {self.operator} {'..'.join(numbers)}"


def _number(text: str) -> float:
    """Return a number. An integer stays an integer, because a float would round large integers."""
    return int(text) if re.fullmatch(r"[+-]?\d{1,19}", text) else float(text)


_SPACE = r"\s\p{Z}"  # RE2's \s contains neither no-break spaces nor U+3000
# A full stop, question mark or exclamation mark of any script. Quotes, closing brackets, spaces and
# invisible marks of the direction of writing may follow.
_FINAL = ".!?…‽⁇⁈⁉。！？．｡﹒﹖﹗؟۔।॥։።፧፨။។៕།༎꯫᱾᱿᠃᠉"
_AFTER = rf"[\"'\p{{Pi}}\p{{Pf}}\p{{Pe}}\p{{Cf}}{_SPACE}]*$"


def _final_punctuation(text: pa.Array, language: str) -> np.ndarray:
    final = _FINAL + ";\u037e" * (short_code(language) == "el")  # Greek question marks
    found = pc.match_substring_regex(text, f"[{final}]{_AFTER}")
    return np.asarray(found.to_numpy(zero_copy_only=False))


def _letters(text: pa.Array, language: str) -> np.ndarray:
    letters = pc.utf8_length(pc.replace_substring_regex(text, r"[^\p{L}\p{M}]+", ""))
    visible = pc.utf8_length(pc.replace_substring_regex(text, f"[{_SPACE}]+", ""))
    return np.asarray(letters.to_numpy() / np.maximum(visible.to_numpy(), 1))


_OF_A_SIDE: dict[str, Callable[[pa.Array, str], np.ndarray]] = {
    "tokens": lambda text, language: np.diff(moses_tokens(text, language).offsets.to_numpy()),
    "characters": lambda text, language: pc.utf8_length(text).to_numpy(),
    "letters": _letters,
    "final_punctuation": _final_punctuation,
}
"""Functions that compute the columns `source_<key>` and `reference_<key>` from texts: [n]."""

TOKEN_COLUMNS = ("source_tokens", "reference_tokens", "token_ratio")
"""Columns that depend on the tokenisers."""
_NUMBERS = (
    *TOKEN_COLUMNS,
    *("source_characters", "reference_characters", "character_ratio"),
    *("source_letters", "reference_letters"),
)
_FLAGS = (
    *("source_final_punctuation", "reference_final_punctuation", "same_final_punctuation"),
    "identical",
)
_LANGUAGES = ("source_language", "reference_language")

COLUMNS = (*_NUMBERS, *_FLAGS, *_LANGUAGES)  # columns of untranslated pairs

FAILED = "not"  # first word of the reason for rejection


def reasons(
    source: pa.Array,
    reference: pa.Array,
    conditions: Sequence[Predicate],
    languages: Languages | None = None,
    kept: pa.RecordBatch | pa.Table | None = None,
    own: OwnIdentifier | None = None,
) -> np.ndarray:
    """Return a reason for each pair, object [n]: `not <condition>` for the first condition that the
    pair fails, or "" if it fails none.

    `kept` has further columns. `own` identifies languages. By default, fastText identifies them.
    """
    spoken = languages or Languages()
    codes = {"source": spoken.source or ENGLISH, "reference": spoken.target or ENGLISH}
    found, rows = np.full(len(source), "", object), np.arange(len(source))
    for condition in conditions:
        here, name = pa.array(rows), condition.column
        if name in COLUMNS:
            texts = {"source": source.take(here), "reference": reference.take(here)}
            fails = ~_holds(condition, texts, codes, own)
        else:
            assert kept is not None
            fails = ~condition.holds_in(kept[name].take(here))
        found[rows[fails]] = f"{FAILED} {condition}"
        rows = rows[~fails]
    return found


def _holds(
    condition: Predicate, texts: dict[str, pa.Array], codes: dict[str, str], own: Any
) -> np.ndarray:
    name, value = condition.column, condition.value
    side, _, what = name.partition("_")
    if name in _LANGUAGES:
        return np.asarray(may_be(texts[side], str(value), own) == (condition.operator == "="))

    def both(what: str) -> list[np.ndarray]:
        return [_OF_A_SIDE[what](text, codes[side]) for side, text in texts.items()]

    if name == "identical":
        column = pc.equal(*map(normalised, texts.values())).to_numpy(zero_copy_only=False)
    elif side == "same":
        column = np.equal(*both(what))
    elif what == "ratio":
        dividend, divisor = both(f"{side}s")
        column = dividend / np.maximum(divisor, 1)
    else:
        column = _OF_A_SIDE[what](texts[side], codes[side])
    return condition.holds(column) if name in _NUMBERS else np.equal(column, value == "yes")
