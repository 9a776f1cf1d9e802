"""How well cosines of sentence vectors agree with people: correlations, per data set and year."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from rich.table import Table
from scipy.stats import rankdata

from models.embeddings.similarity_data import LabelledPairs, missing, read_sick, read_sts
from models.errors import UserError

Embed = Callable[[pa.StringArray], np.ndarray]
"""Sentences [n] to their vectors, float [n, dim]."""


class Correlation(NamedTuple):
    """Agreement × 100; nan where it is undefined (one of the two sides is constant)."""

    pearson: float
    spearman: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """Several models on the same data sets."""

    models: list[str]
    data: list[LabelledPairs]
    correlations: list[list[Correlation]]
    """[models][data sets]"""

    def mean(self, model: int, group: str) -> Correlation:
        """Unweighted mean over the group's data sets; undefined if one of them is."""
        pairs = zip(self.data, self.correlations[model], strict=True)
        found = [correlation for data, correlation in pairs if data.group == group]
        return Correlation(*(float(column) for column in np.mean(found, axis=0)))

    def table(self) -> Table:
        """`Pearson / Spearman` of every model per data set, the means, what is not there."""
        table = Table("data set", "pairs", caption="Pearson / Spearman × 100")
        table.columns[1].justify = "right"
        for name in self.models:
            table.add_column(name, justify="right")
        lacking = missing(self.data)
        for group in self._groups():
            for i, data in enumerate(self.data):
                if data.group == group:
                    cells = (_cell(results[i]) for results in self.correlations)
                    table.add_row(f"{group} {data.name}", f"{len(data.first):,}", *cells)
            means = (_cell(self.mean(model, group)) for model in range(len(self.models)))
            if _is_year(group):
                table.add_row(f"{group} mean", "", *means, style="bold")
            if group in lacking:
                absent = f"{group} without {', '.join(lacking[group])} (not there)"
                table.add_row(absent, style="dim")
            table.add_section()
        return table

    def json(self) -> dict[str, Any]:
        """The same for programs; an undefined correlation is None.

        `groups.<group>.data_sets.<name>.models.<model>.pearson`, `groups.<year>.mean.<model>.…`
        """
        lacking = missing(self.data)
        groups: dict[str, Any] = {}
        for group in self._groups():
            groups[group] = {
                "data_sets": {
                    data.name: {
                        "pairs": len(data.first),
                        "unscored": data.unscored,
                        "models": self._by_model(results[i] for results in self.correlations),
                    }
                    for i, data in enumerate(self.data)
                    if data.group == group
                },
                "missing": lacking.get(group, []),
            }
            if _is_year(group):
                means = (self.mean(model, group) for model in range(len(self.models)))
                groups[group]["mean"] = self._by_model(means)
        return {"models": self.models, "groups": groups}

    def _groups(self) -> list[str]:
        return list(dict.fromkeys(data.group for data in self.data))

    def _by_model(self, correlations: Iterable[Correlation]) -> Mapping[str, Any]:
        return {
            name: {
                key: None if np.isnan(value) else round(value, 4)
                for key, value in correlation._asdict().items()
            }
            for name, correlation in zip(self.models, correlations, strict=True)
        }


def evaluate_models(
    models: Sequence[tuple[str, Embed]],
    sts: Path | str | None = None,
    sick: Path | str | None = None,
) -> Report:
    """Correlate every model's cosines with the labels in the folders `sts` and `sick`.

    Raises:
        UserError: a folder holds no data, or a row is broken; names the file and the row. Or two
            models have the same name.
    """
    names = [name for name, _ in models]
    for name in names:
        if names.count(name) > 1:
            raise UserError(f"{name}: stands twice among the models")
    data = [*(read_sts(sts) if sts else []), *(read_sick(sick) if sick else [])]
    return Report(
        models=names,
        data=data,
        correlations=[[agreement(embed, pairs) for pairs in data] for _, embed in models],
    )


def agreement(embed: Embed, data: LabelledPairs) -> Correlation:
    """Correlation of the cosines with the labels of one data set."""
    vectors = embed(pa.concat_arrays([data.first, data.second]))
    half = len(data.first)
    return correlation(cosines(vectors[:half], vectors[half:]), data.scores)


def cosines(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Row-wise cosines, float64 [n]; 0 where a vector is zero (a sentence without a token)."""
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    norms = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    products = np.einsum("ij,ij->i", a, b)
    return np.divide(products, norms, out=np.zeros_like(products), where=norms > 0)


def correlation(predicted: np.ndarray, labels: np.ndarray) -> Correlation:
    """Pearson's r and Spearman's ρ (ties share their mean rank), × 100.

    >>> correlation(np.array([0.1, 0.2, 0.9]), np.array([1.0, 2.0, 3.0])).spearman
    100.0
    """
    # Rounding alone must not pass for a signal: 1e-9 is far below what a float32 cosine resolves.
    if any(not np.ptp(side) > 1e-9 * np.abs(side).max() for side in (predicted, labels)):
        return Correlation(float("nan"), float("nan"))
    return Correlation(_pearson(predicted, labels), _pearson(rankdata(predicted), rankdata(labels)))


def _pearson(x: np.ndarray, y: np.ndarray) -> float:
    x, y = x - x.mean(), y - y.mean()
    return float(100 * np.clip(x @ y / np.sqrt((x @ x) * (y @ y)), -1, 1))


def _is_year(group: str) -> bool:
    return group.removeprefix("STS ").isdecimal()


def _cell(correlation: Correlation) -> str:
    # The two are undefined together.
    if np.isnan(correlation.pearson):
        return "undefined"
    return f"{correlation.pearson:.1f} / {correlation.spearman:.1f}"
