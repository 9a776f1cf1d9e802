"""Predicates on the columns of a pair, as users write them: `trigram_overlap <= 0.5`."""

import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from paraloom.beam_jobs.io import schema

_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
    "==": operator.eq,
}
_NUMBER = r"[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d{1,2})?"
_PREDICATE = re.compile(
    rf"\s*(?P<column>\w+)\s*(?:(?P<compare><=|>=|==|<|>)\s*(?P<value>{_NUMBER})"
    rf"|\s+in\s+(?P<low>{_NUMBER})\s*\.\.\s*(?P<high>{_NUMBER}))\s*"
)
_WORD = re.compile(r"\s*(?P<column>\w+)\s*(?P<compare>!?=)\s*(?P<word>[A-Za-z]+)\s*")
_TOKENS = ("reference_tokens", "translation_tokens")


@dataclass(frozen=True, slots=True)
class Predicate:
    """`column operator value`; with `in` the value is (lowest, highest), both inclusive.

    With `=` and `!=` it is a word, which only conditions on untranslated pairs have.

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
            return cls(compared["column"], compared["compare"], compared["word"])
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

    def check(self, scorers: Sequence[str]) -> None:
        """Check that pairs scored with `scorers` have the column, and that deciles are valid."""
        deciles = [schema.decile(score) for score in scorers]
        if self.column not in (*scorers, *deciles, *_TOKENS):
            known = ", ".join((*scorers, *_TOKENS))
            raise ValueError(
                f"{self.column} is no column of the pairs; there are {known}, and the deciles of "
                f"the scores ({deciles[0]} …): a score must be among score.scorers"
            )
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

    def __str__(self) -> str:
        if isinstance(self.value, str):
            return f"{self.column} {self.operator} {self.value}"
        numbers = (repr(number).removesuffix(".0") for number in self.numbers)
        return f"{self.column} {self.operator} {'..'.join(numbers)}"
