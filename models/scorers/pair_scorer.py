"""Scoring of pairs with several scorers."""

import copy
import time
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from functools import partial
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from threading import Lock
from typing import Any, Self

import numpy as np
import pyarrow as pa

from paraloom.models.errors import UserError
from paraloom.models.languages import ENGLISH
from paraloom.models.scorers import checks, learned, tokens
from paraloom.models.scorers.base import DECLARED, Outcome, Scorer
from paraloom.models.scorers.plugins import ScorerSource, in_plugin
from paraloom.models.text.tokens import PairText

_ROWS = 16_384  # rows per block
_MOST_TOKENS = np.iinfo(np.int16).max
_ROUNDING = 1e-5  # a value is clipped if it exceeds the range by at most this difference

TOKEN_COUNTS = ("reference_tokens", "translation_tokens")

SCORERS: dict[str, Scorer] = {}  # Paraloom's scorers by name
for _folder in (tokens, checks, learned):
    for _module in iter_modules(_folder.__path__):  # the order does not depend on other imports
        _name = import_module(f"{_folder.__name__}.{_module.name}").__name__
        SCORERS |= {n: of for n, of in DECLARED.items() if of.function.__module__ == _name}


class Scores(dict[str, np.ndarray]):
    """The values of n pairs, [n], by column. `reasons` contains, by column, the reasons for missing
    values (`Outcome.reasons`) and for token counts that are too large. `waited` is the time in
    seconds spent waiting for other threads."""

    def __init__(self) -> None:
        super().__init__()
        self.reasons: dict[str, np.ndarray] = {}
        self.waited = 0.0


class PairScorer:
    """Scores two text columns with several scorers that share one tokenisation.

    >>> scorer = PairScorer(["trigram_overlap"])
    >>> scores = scorer.score(pa.array(["a dog runs fast ."]), pa.array(["a dog runs ."]))
    >>> {name: values.tolist() for name, values in scores.items()}
    {'reference_tokens': [5], 'translation_tokens': [4], 'trigram_overlap': [0.5]}

    `sources` load scorers that are not in `SCORERS`. Each resource is a keyword argument with the
    resource's name. The value is a path, an open resource, or a `functools.partial` object that
    opens the resource at its first use.

    Several threads may call `score`. One thread then runs models while another thread runs scorers
    without a model.
    """

    def __init__(
        self,
        names: Iterable[str],
        *,
        sources: Iterable[ScorerSource] = (),
        language: str = ENGLISH,
        **resources: Any,
    ) -> None:
        self.names, self.language = list(names), language
        self._counts = True
        self._plugins = {source.name for source in sources}
        known = SCORERS | {source.name: source.load() for source in sources}
        kinds = {scorer.resource.name for scorer in known.values() if scorer.resource}
        if unknown := resources.keys() - kinds:
            raise UserError(
                f"no resource {unknown.pop()!r}: choose from {', '.join(sorted(kinds))}"
            )
        self.scorers: dict[str, Scorer] = {}
        self._resources: dict[str, Any] = {}  # by name; copies share resources and locks
        self._locks = Lock(), Lock()  # for scorers without a model, and for scorers with a model
        for name in self.names:
            if name not in known:
                raise UserError(f"scorer {name!r} is unknown: choose from {', '.join(known)}")
            scorer = self.scorers[name] = known[name]
            if resource := scorer.resource:
                given = resources.get(resource.name)
                if given is None:
                    raise UserError(f"{name} needs {resource.remedy}")
                if resource.name not in self._resources:  # scorers may share a resource
                    is_path = isinstance(given, Path | str)
                    opened = resource.open(Path(given)) if is_path else given
                    self._resources[resource.name] = opened

    def reads(self, column: str) -> bool:
        """Return whether any of the scorers reads a column."""
        return any(column in self.scorers[name].reads for name in self.names)

    def only(self, columns: Sequence[str]) -> Self:
        """Return a copy that computes only some columns. The resources stay open."""
        part = copy.copy(self)
        part.names = [name for name in self.names if name in columns]
        part._counts = not set(TOKEN_COUNTS).isdisjoint(columns)
        return part

    def score(
        self,
        reference: pa.Array,
        translation: pa.Array,
        source: pa.Array | None = None,
        ids: pa.Array | None = None,
        translation_score: pa.Array | None = None,
    ) -> Scores:
        """Compute token counts (int16 [n]) and scores (float32 [n]). Some scorers need `source`,
        `ids` or `translation_score`. A count above 32,767 becomes 32,767 and gets a reason."""
        needed = {"source": source, "id": ids, "translation_score": translation_score}
        for column, given in needed.items():
            if given is None and self.reads(column):
                names = [name for name in self.names if column in self.scorers[name].reads]
                raise UserError(f"{', '.join(names)}: the pairs have no {column}")
        columns = reference, translation, source, ids, translation_score
        whole = PairText(*columns, language=self.language)
        blocks = [whole[at : at + _ROWS] for at in range(0, max(len(whole), 1), _ROWS)]
        scores = Scores()
        for have_model, lock in enumerate(self._locks):
            asked = time.monotonic()
            with lock:
                scores.waited += time.monotonic() - asked
                if self._counts and not have_model:
                    _add_token_counts(scores, blocks)
                for name in self.names:
                    resource = self.scorers[name].resource
                    if have_model == (resource is not None and resource.is_model):
                        parts = [whole] if self.scorers[name].whole_shard else blocks
                        self._add(scores, name, parts)
        for name in self.names:  # restore the order of the names
            scores[name] = scores.pop(name)
        return scores

    def _add(self, scores: Scores, name: str, parts: Sequence[PairText]) -> None:
        values, reasons = zip(*(self._scored(name, part) for part in parts), strict=True)
        scores[name] = np.concatenate(values)
        if any(map(np.any, reasons)):  # at least one row has no value
            scores.reasons[name] = np.concatenate(reasons)

    def _scored(self, name: str, pairs: PairText) -> tuple[np.ndarray, np.ndarray]:
        scorer = self.scorers[name]
        if not len(pairs):  # do not call the function, which may not accept empty input
            return np.zeros(0, np.float32), np.zeros(0, object)
        foreign = name in self._plugins
        with in_plugin(f"{name}: the scorer failed") if foreign else nullcontext():
            found = scorer.function(pairs, **self._resource(scorer))
            values, reasons = found if isinstance(found, Outcome) else (found, None)
            values = np.asarray(values, np.float32)
            reasons = np.asarray([""] * len(pairs) if reasons is None else reasons, object)
        for what, given in (("values", values), ("reasons", reasons)):
            if given.shape != (len(pairs),):
                raise UserError(
                    f"{name}: the scorer gave {what} of shape {list(given.shape)} for {len(pairs)} "
                    f"pairs; it must give {what} of shape [{len(pairs)}]"
                )
        return _clipped(values, scorer), reasons

    def _resource(self, scorer: Scorer) -> dict[str, Any]:
        name = scorer.resource_name
        if name is None:
            return {}
        if isinstance(opening := self._resources[name], partial):
            self._resources[name] = opening()
        return {name: self._resources[name]}


def _add_token_counts(scores: Scores, blocks: Sequence[PairText]) -> None:
    for name, side in zip(TOKEN_COUNTS, ("reference", "translation"), strict=True):
        lengths = np.concatenate([getattr(block, side).lengths for block in blocks])
        scores[name] = np.minimum(lengths, _MOST_TOKENS).astype(np.int16)
        if (beyond := lengths > _MOST_TOKENS).any():
            scores.reasons[name] = np.where(beyond, f"more than {_MOST_TOKENS:,}", "").astype(
                object
            )


def outside(values: np.ndarray, scorer: Scorer) -> np.ndarray:
    """Mark values outside the scorer's range: bool [n]. NaN does not count as outside."""
    low, high = (np.nan if bound is None else bound for bound in scorer.range)
    return (values < low) | (values > high)


def _clipped(values: np.ndarray, scorer: Scorer) -> np.ndarray:
    beyond = outside(values, scorer)
    if beyond.any():
        low, high = (None if bound is None else np.float32(bound) for bound in scorer.range)
        inside = np.clip(values, low, high)
        values = np.where(beyond & (np.abs(values - inside) <= _ROUNDING), inside, values)
    return values
