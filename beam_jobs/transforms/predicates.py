"""Predicates on the columns of a pair, as users write them: `trigram_overlap <= 0.5`."""

import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paraloom.beam_jobs.io import schema
from paraloom.models.errors import UserError

_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
    "==": operator.eq,
}
_NUMBER = r"[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d{1,2})?"
_PREDICATE = re.compile(
    rf"\s*(?P<column>[\w.]+)\s*(?:(?P<compare><=|>=|==|<|>)\s*(?P<value>{_NUMBER})"
    rf"|\s+in\s+(?P<low>{_NUMBER})\s*\.\.\s*(?P<high>{_NUMBER}))\s*"
)
_BARE = r"[\w.:/+-]+"
_WORD = re.compile(rf"\s*(?P<column>[\w.]+)\s*(?P<compare>!?=)\s*(?P<word>{_BARE}|\"[^\"]*\")\s*")
_TOKENS = ("reference_tokens", "translation_tokens")


@dataclass(frozen=True, slots=True)
class Predicate:
    """`column operator value`; with `in` the value is (lowest, highest), both inclusive.

    With `=` and `!=` it is a word, for columns that are no scores.

    >>> print(Predicate.parse("unigram_f1_decile in 2..7"))
    unigram_f1_decile in 2..7
    """

    column: str
    operator: str  # <=, >=, <, >, == or in; = or != with a word
    value: float | tuple[float, float] | str

    @classmethod
    def parse(cls, text: str, *, words: bool = False) -> Self:
        """Parse a predicate; with `words` it may compare with a word."""
        found = _PREDICATE.fullmatch(text)
        if words and (compared := _WORD.fullmatch(text)):
            return cls(compared["column"], compared["compare"], compared["word"].strip('"'))
        if not found:
            examples = (
                "`source_tokens <= 60` (or <, >=, >), `token_ratio in 0.5..2`, "
                "`source_language = cs` (or !=) or `identical = no`"
                if words
                else "`trigram_overlap <= 0.5` (or <, >=, >, ==) or `unigram_f1_decile in 2..7`"
            )
            further = "; what must hold besides is a further item of the list"
            raise ValueError(
                f"{text!r} is no condition; write it as {examples}"
                + (further if re.search(r"\band\b", text) else "")
            )
        if found["compare"]:
            return cls(found["column"], found["compare"], float(found["value"]))
        low, high = float(found["low"]), float(found["high"])
        if low > high:
            raise ValueError(f"{text!r} holds for nothing: {low:g} is more than {high:g}")
        return cls(found["column"], "in", (low, high))

    @property
    def numbers(self) -> tuple[float, ...]:
        """The value, or both ends of the range; none of a word."""
        if isinstance(self.value, str):
            return ()
        return self.value if isinstance(self.value, tuple) else (self.value,)

    def check(self, scorers: Sequence[str], kept: Sequence[str] = ()) -> None:
        """Check that pairs scored with `scorers` have the column, and that deciles are valid."""
        deciles = [schema.decile(score) for score in scorers]
        if self.column in kept:
            return
        if self.column not in (*scorers, *deciles, *_TOKENS):
            known = ", ".join((*scorers, *_TOKENS, *kept))
            raise ValueError(
                f"{self.column} is no column of the pairs; there are {known}, and the deciles of "
                f"the scores ({deciles[0]} …): a score must be among score.scorers"
            )
        if isinstance(self.value, str):
            raise ValueError(f"'{self}': {self.column} is compared by <=, >=, <, > or in")
        if self.column in deciles and not all(n in range(10) for n in self.numbers):
            raise ValueError(f"'{self}': deciles are whole numbers from 0 to 9")

    def holds(self, values: np.ndarray) -> np.ndarray:
        """Which values satisfy the predicate: bool [n].

        Values are compared in their own type: `<= 0.1` holds for a float32 0.1.
        """
        with np.errstate(over="ignore"):  # 1e99 is infinite as a float32, which compares correctly
            if isinstance(self.value, tuple):
                low, high = self.value
                return np.asarray((values >= low) & (values <= high))
            return np.asarray(_COMPARE[self.operator](values, self.value))

    def check_type(self, kind: pa.DataType) -> None:
        """Check that a kept column of this type can be compared so."""
        try:
            number = kind in (pa.int64(), pa.float64())
            fits = self._word(kind).is_valid if isinstance(self.value, str) else number
        except pa.ArrowInvalid:
            fits = False
        if not fits:
            raise UserError(f"'{self}': the values of {self.column} are of the type {kind}")

    def _word(self, kind: pa.DataType) -> pa.Scalar:
        words = {"yes": "true", "no": "false"} if kind == pa.bool_() else {}
        return pa.scalar(words.get(str(self.value), self.value)).cast(kind)

    def holds_in(self, column: pa.Array | pa.ChunkedArray) -> np.ndarray:
        """`holds` for a column of any type; no value equals nothing and is in no range."""
        if not isinstance(self.value, str):
            return self.holds(column.to_numpy(zero_copy_only=False))
        equal = pc.equal(column, self._word(column.type)).fill_null(False)
        return np.asarray(equal.to_numpy(zero_copy_only=False) == (self.operator == "="))

    def __str__(self) -> str:
        if isinstance(self.value, str):
            bare = re.fullmatch(_BARE, self.value)
            return f"{self.column} {self.operator} " + (self.value if bare else f'"{self.value}"')
        numbers = (repr(number).removesuffix(".0") for number in self.numbers)
        return f"{self.column} {self.operator} {'..'.join(numbers)}"
