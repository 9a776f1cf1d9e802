"""The interface of a scorer: a function of pairs and its properties."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np


@dataclass(frozen=True, kw_only=True)
class Resource:
    """Data that a scorer needs besides the texts, such as word vectors or a model."""

    name: str
    """Also the name of the function's parameter, of the keyword argument of `PairScorer`, and of
    the stage that makes the resource. For a plug-in, the name is a key in `score.resources`."""
    open: Callable[[Path], Any]  # loads the resource from a file or folder
    remedy: str  # end of the message "<scorer> needs …" if the resource is missing
    open_int8: Callable[[Path], Any] | None = None  # loads a model with 8-bit weights on a CPU
    is_model: bool = False
    """Whether the resource is a neural model, which uses all cores or the GPU. While it computes,
    scorers without a model score the next shard."""


class Outcome(NamedTuple):
    """The result of a scorer's function if some pairs have no value."""

    values: np.ndarray  # float32 [n]; the value of a pair with a reason is ignored
    reasons: np.ndarray | None = None
    """Text [n]: the reason why a pair has no value and is rejected, or "" for a pair with a value.
    None means that all pairs have values."""


@dataclass(frozen=True, kw_only=True)
class Scorer:
    """A function that scores pairs, and its properties."""

    function: Callable[..., np.ndarray | Outcome]
    """Function from n pairs (`paraloom.models.text.tokens.PairText`) to float32 [n], or to an
    `Outcome` if some pairs have no value. The resource is passed as a keyword argument."""
    meaning: str  # one-line definition for the report and the data card
    unit: str  # title of the axis in plots
    range: tuple[float | None, float | None] = (0.0, 1.0)
    """Lowest and highest possible value; None means no bound. A row with a value outside the range
    is rejected."""
    failure: str = ""
    """Only for checks: the reason that is stored with a pair if `select.where` rejects the pair
    because of the check."""
    higher_is_better: bool = True  # whether pairs with higher values are better paraphrases
    reads: tuple[str, ...] = ("reference", "translation")
    """Columns that the function reads. If `source`, `id` or `translation_score` is not
    listed, it may be None."""
    resource: Resource | None = None
    version: int = 1
    """Increase this number when the function's values change. The column is then computed again."""
    whole_shard: bool = False
    """Whether the function receives a whole shard instead of blocks of 16,384 rows. Set this for
    models that make their own batches."""

    @property
    def resource_name(self) -> str | None:
        """Name of the resource, if any."""
        return self.resource.name if self.resource else None


Function = TypeVar("Function", bound=Callable[..., np.ndarray | Outcome])

DECLARED: dict[str, Scorer] = {}  # by name, from the modules imported so far


def scorer(**properties: Any) -> Callable[[Function], Function]:
    """Declare a function as one of Paraloom's scorers, under the function's name. `properties` are
    fields of `Scorer`. Plug-ins create a `Scorer` instead."""

    def declare(function: Function) -> Function:
        DECLARED[function.__name__] = Scorer(function=function, **properties)
        return function

    return declare


def check(passes: str, failure: str, **properties: Any) -> Callable[[Function], Function]:
    """Declare a scorer whose value is 1 for pairs that pass and 0 for pairs that fail. `passes`
    describes a pair that passes. `failure` and `properties` are fields of `Scorer`."""
    meaning = f"1 where {passes}, else 0"
    return scorer(meaning=meaning, unit="passes", failure=failure, **properties)
