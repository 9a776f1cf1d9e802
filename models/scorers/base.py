"""The interface of a scorer: a function of pairs, and its declared properties."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np


@dataclass(frozen=True, kw_only=True)
class Resource:
    """An input of a scorer besides the texts."""

    name: str
    """Also the name of the function's parameter, of `PairScorer`'s keyword, and of the stage that
    makes the resource; for plug-ins, the key in `score.resources`, with a file or folder."""
    open: Callable[[Path], Any]  # loads it from a file or folder
    remedy: str  # ends the message "<scorer> needs …" if the resource is missing
    open_int8: Callable[[Path], Any] | None = None  # loads it with 8-bit weights, on a CPU
    is_model: bool = False
    """Whether it is a neural model that uses all cores or the GPU: it is loaded once per process,
    and works while the other scorers score the next shard."""


class Outcome(NamedTuple):
    """Returned by a scorer's function instead of values, if some pairs have none.

    >>> outcome = Outcome(np.zeros(2, np.float32), np.array(["", "no verb"], object))
    """

    values: np.ndarray  # float32 [n]; any number for a pair with a reason
    reasons: np.ndarray | None = None
    """Text [n]: a short reason if a pair has no value, else empty. The pair is rejected with the
    scorer's name and this reason. None: every pair has a value."""


@dataclass(frozen=True, kw_only=True)
class Scorer:
    """A scorer: the function, and its properties.

    >>> scorer = Scorer(function=lambda pairs: pairs.reference.lengths, meaning="length", unit="")
    >>> scorer.range, scorer.higher_is_better, scorer.reads
    ((0.0, 1.0), True, ('reference', 'translation'))
    """

    function: Callable[..., np.ndarray | Outcome]
    """Maps n pairs (`paraloom.models.text.tokens.PairText`: Arrow columns of texts, and their
    tokens) to float32 [n], or to an `Outcome` if some pairs have no value. The resource, if any, is
    passed as a keyword argument."""
    meaning: str  # one-line definition for the report and the data card
    unit: str  # title of the axis in plots
    range: tuple[float | None, float | None] = (0.0, 1.0)
    """Bounds of the values; None: no bound. A row with a value outside is rejected."""
    failure: str = ""
    """For Paraloom's checks (1: pass, 0: fail), why `select.where` rejects a failing pair."""
    higher_is_better: bool = True  # whether pairs with higher values are better paraphrases
    reads: tuple[str, ...] = ("reference", "translation")
    """Columns that the function reads; `source`, `id` and `translation_score` are passed only if
    named here."""
    resource: Resource | None = None
    version: int = 1
    """Increase it when the values change for the same pairs, so that the column is computed again.
    """
    whole_shard: bool = False
    """Whether the function gets a whole shard instead of blocks of 16,384 rows: for models that
    make their own batches."""

    @property
    def resource_name(self) -> str | None:
        """Name of its resource, if it has one."""
        return self.resource.name if self.resource else None


Function = TypeVar("Function", bound=Callable[..., np.ndarray | Outcome])

DECLARED: dict[str, Scorer] = {}
"""Paraloom's scorers in the modules imported so far, by name."""


def scorer(**properties: Any) -> Callable[[Function], Function]:
    """Declare a function as one of Paraloom's scorers, under the function's name and with these
    properties of `Scorer`. A plug-in makes a `Scorer` itself."""

    def declare(function: Function) -> Function:
        DECLARED[function.__name__] = Scorer(function=function, **properties)
        return function

    return declare


def check(
    passes: str, failure: str, resource: Resource | None = None
) -> Callable[[Function], Function]:
    """Declare a scorer with the value 1 for pairs that pass and 0 for pairs that fail; `failure` is
    the reason for rejecting failing pairs."""
    meaning = f"1 where {passes}, else 0"
    return scorer(meaning=meaning, unit="passes", failure=failure, resource=resource)
