"""What a scorer is: a function of pairs, and what it declares about itself."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np


@dataclass(frozen=True, kw_only=True)
class Resource:
    """What a scorer reads besides the texts."""

    name: str
    """of the function's parameter, of `PairScorer`'s keyword, and of the stage that makes it; of a
    plug-in, the key in `score.resources` that names its file or folder"""
    open: Callable[[Path], Any]  # loads it from a file or folder
    remedy: str  # continues the message "<scorer> needs …" if the resource is missing
    is_model: bool = False
    """Whether it is a neural model that uses all cores or the GPU: it is loaded once a machine."""


class Outcome(NamedTuple):
    """What a scorer's function may return instead of values, if some of the pairs have none.

    >>> outcome = Outcome(np.zeros(2, np.float32), np.array(["", "no verb"], object))
    """

    values: np.ndarray  # float32 [n]; of a pair with a reason, any number
    reasons: np.ndarray | None = None
    """Text [n]: why a pair has no value, in few words; empty for a pair that has one. The pair is
    rejected with this reason, after the scorer's name. None: every pair has a value."""


@dataclass(frozen=True, kw_only=True)
class Scorer:
    """A scorer: the function, and what Paraloom must know of it.

    >>> scorer = Scorer(function=lambda pairs: pairs.reference.lengths, meaning="length", unit="")
    >>> scorer.range, scorer.higher_is_better, scorer.reads
    ((0.0, 1.0), True, ('reference', 'translation'))
    """

    function: Callable[..., np.ndarray | Outcome]
    """From n pairs (`paraloom.models.text.tokens.PairText`: Arrow columns of texts, and their
    tokens), and the resource by its name, to float32 [n]; or to an `Outcome`, if some pairs have no
    value."""
    meaning: str  # the definition in one line, for the report and the data card
    unit: str  # title of the axis in plots
    range: tuple[float | None, float | None] = (0.0, 1.0)
    """Of the values; None: no bound. A row with a value outside is rejected."""
    failure: str = ""
    """Of a check (1: passes, 0: fails) of Paraloom's, why `select.where` rejects what fails it."""
    higher_is_better: bool = True  # whether pairs with higher values are better paraphrases
    reads: tuple[str, ...] = ("reference", "translation")
    """The columns that the function reads; `source` and `id` are passed only if named here."""
    resource: Resource | None = None
    version: int = 1
    """Raise it when the values change for the same pairs: the column is then computed again."""
    whole_shard: bool = False
    """Whether the function gets all rows of a shard at once, rather than blocks of 16,384: for
    models that make batches of their own."""

    @property
    def resource_name(self) -> str | None:
        """The name of its resource, if it has one."""
        return self.resource.name if self.resource else None


def check(
    function: Callable[..., np.ndarray], passes: str, failure: str, resource: Resource | None = None
) -> Scorer:
    """A scorer that is 1 where a pair passes, and 0 where it fails, with the reason `failure`."""
    meaning = f"1 where {passes}, else 0"
    return Scorer(
        function=function, meaning=meaning, unit="passes", failure=failure, resource=resource
    )
