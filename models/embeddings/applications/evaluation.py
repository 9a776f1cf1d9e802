"""Evaluation on labelled pairs: correlations of scores with labels, per data set and year."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from rich.table import Table
from scipy.stats import rankdata

from models.embeddings.datasets.similarity import LabelledPairs, missing, read_sick, read_sts
from models.errors import UserError

Vectors = NDArray[np.floating]
"""Of n sentences, [n, dim]."""
Scores = NDArray[np.float64]
"""Of n pairs, [n]."""
Embed = Callable[[pa.StringArray], Vectors]
"""Sentences [n] to their vectors."""
Compare = Callable[[Vectors, Vectors], Scores]
"""Vectors of n first and n second sentences to scores of the pairs."""


def cosines(a: Vectors, b: Vectors) -> Scores:
    """Row-wise cosines; 0 where a vector is zero (a sentence without a token)."""
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    norms = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    products = np.einsum("ij,ij->i", a, b)
    found: Scores = np.divide(products, norms, out=np.zeros_like(products), where=norms > 0)
    return found


def dots(a: Vectors, b: Vectors) -> Scores:
    """Row-wise dot products."""
    found: Scores = np.einsum("ij,ij->i", np.asarray(a, np.float64), np.asarray(b, np.float64))
    return found


COMPARE: dict[str, Compare] = {"cosine": cosines, "dot": dots}
"""The functions that compare two vectors, by name."""


class Model(NamedTuple):
    """A model to evaluate."""

    name: str
    embed: Embed
    compare: Compare = cosines
    scale: tuple[float, float] | None = None
    """The ends of the scale, if the scores are predicted labels."""


class Correlation(NamedTuple):
    """Correlation × 100; NaN if it is undefined (one of the two sides is constant)."""

    pearson: float
    spearman: float
    mse: float = np.nan
    """Mean squared error of predicted labels; NaN if there are none."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """Results of several models on the same data sets."""

    models: list[str]
    data: list[LabelledPairs]
    correlations: list[list[Correlation]]  # [models][data sets]

    def mean(self, model: int, group: str) -> Correlation:
        """Unweighted mean over the group's data sets; undefined if one of them is undefined."""
        pairs = zip(self.data, self.correlations[model], strict=True)
        found = [correlation[:2] for data, correlation in pairs if data.group == group]
        return Correlation(*(float(column) for column in np.mean(found, axis=0)))

    def table(self) -> Table:
        """`Pearson / Spearman` of every model by data set, the means, and the missing data sets."""
        caption = "Pearson / Spearman × 100"
        if not np.isnan([each.mse for of in self.correlations for each in of]).all():
            caption += ", mean squared error of predicted labels"
        table = Table("data set", "pairs", caption=caption)
        table.columns[1].justify = "right"
        for name in self.models:
            table.add_column(name, justify="right")
        for group, found in self._by_group(_cell).items():
            for name, results in found["data_sets"].items():
                cells = results["models"].values()
                table.add_row(f"{group} {name}", f"{results['pairs']:,}", *cells)
            if "mean" in found:
                table.add_row(f"{group} mean", "", *found["mean"].values(), style="bold")
            if found["missing"]:
                absent = f"{group} without {', '.join(found['missing'])} (not there)"
                table.add_row(absent, style="dim")
            table.add_section()
        return table

    def json(self) -> dict[str, Any]:
        """The results for programs; an undefined correlation is None.

        `groups.<group>.data_sets.<name>.models.<model>.pearson`, `groups.<year>.mean.<model>.…`
        """
        return {"models": self.models, "groups": self._by_group(_numbers)}

    def _by_group(self, show: Callable[[Correlation], Any]) -> dict[str, Any]:
        lacking = missing(self.data)
        groups: dict[str, Any] = {}
        for data, *of_models in zip(self.data, *self.correlations, strict=True):
            new = {"data_sets": {}, "missing": lacking.get(data.group, [])}
            groups.setdefault(data.group, new)["data_sets"][data.name] = {
                "pairs": len(data),
                "unscored": data.unscored,
                "models": dict(zip(self.models, map(show, of_models), strict=True)),
            }
        for group in filter(_is_year, groups):
            means = (show(self.mean(model, group)) for model in range(len(self.models)))
            groups[group]["mean"] = dict(zip(self.models, means, strict=True))
        return groups


def evaluate_models(
    models: Sequence[Model | tuple[str, Embed]],
    sts: Path | str | None = None,
    sick: Path | str | None = None,
) -> Report:
    """Correlate every model's scores with the labels in the folders `sts` and `sick`.

    Raises:
        UserError: a folder has no data, a row is invalid (names the file and the row), or two
            models have the same name.
    """
    entered = [Model(*model) for model in models]
    names = [model.name for model in entered]
    for name in names:
        if names.count(name) > 1:
            raise UserError(f"{name}: stands twice among the models")
    data = [*(read_sts(sts) if sts else []), *(read_sick(sick) if sick else [])]
    correlations = [[_judge(model, pairs) for pairs in data] for model in entered]
    return Report(models=names, data=data, correlations=correlations)


def _judge(model: Model, data: LabelledPairs) -> Correlation:
    found = scores(model.embed, data, model.compare)
    error = np.mean((found - data.scores) ** 2) if model.scale == data.scale else np.nan
    return correlation(found, data.scores)._replace(mse=float(error))


def agreement(embed: Embed, data: LabelledPairs, compare: Compare = cosines) -> Correlation:
    """Correlation of the scores with the labels of one data set."""
    return correlation(scores(embed, data, compare), data.scores)


def scores(embed: Embed, data: LabelledPairs, compare: Compare = cosines) -> Scores:
    """The scores of a data set's pairs."""
    return compare(*embed_pairs(embed, data.first, data.second))


def embed_pairs(
    embed: Embed, first: pa.StringArray, second: pa.StringArray
) -> tuple[Vectors, Vectors]:
    """The vectors of both sides of n pairs."""
    vectors = embed(pa.concat_arrays([first, second]))
    return vectors[: len(first)], vectors[len(first) :]


def pair_features(embed: Embed, first: pa.StringArray, second: pa.StringArray) -> Vectors:
    """|a − b| and a ⊙ b of the vectors of n pairs, concatenated: [n, 2 dim]."""
    a, b = embed_pairs(embed, first, second)
    return np.concatenate([np.abs(a - b), a * b], axis=1)


def label_errors(model: Model, sets: Sequence[LabelledPairs]) -> dict[str, Any]:
    """Pearson, Spearman and mean squared error of predicted labels, by data set and on average."""
    found: dict[str, Any] = {}
    for data in sets:
        agreed = _judge(model, data)
        found[f"{data.group} {data.name}"] = {"pairs": len(data), **agreed._asdict()}
    if len(found) > 1:
        found["mean"] = {
            key: float(np.mean([of[key] for of in found.values()]))
            for key in ("pearson", "spearman", "mse")
        }
    return found


def correlation(predicted: NDArray[np.floating], labels: NDArray[np.floating]) -> Correlation:
    """Pearson's r and Spearman's ρ (ties share their mean rank), × 100.

    >>> correlation(np.array([0.1, 0.2, 0.9]), np.array([1.0, 2.0, 3.0])).spearman
    100.0
    """
    # Rounding errors are no signal: 1e-9 is far below the resolution of a float32 cosine.
    if any(not np.ptp(side) > 1e-9 * np.abs(side).max() for side in (predicted, labels)):
        return Correlation(float("nan"), float("nan"))
    return Correlation(_pearson(predicted, labels), _pearson(rankdata(predicted), rankdata(labels)))


def _pearson(x: NDArray[np.floating], y: NDArray[np.floating]) -> float:
    x, y = x - x.mean(), y - y.mean()
    return float(100 * np.clip(x @ y / np.sqrt((x @ x) * (y @ y)), -1, 1))


def _is_year(group: str) -> bool:
    return group.removeprefix("STS ").isdecimal()


def _cell(correlation: Correlation) -> str:
    # Pearson and Spearman are undefined together.
    undefined = np.isnan(correlation.pearson)
    cell = "undefined" if undefined else "{:.1f} / {:.1f}".format(*correlation)
    return cell if np.isnan(correlation.mse) else f"{cell}, {correlation.mse:.3f}"


def _numbers(correlation: Correlation) -> dict[str, float | None]:
    values = correlation._asdict()
    if np.isnan(correlation.mse):
        del values["mse"]
    return {key: None if np.isnan(value) else round(value, 4) for key, value in values.items()}
