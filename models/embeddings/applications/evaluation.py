"""Evaluation on labelled pairs: correlations of scores with labels, per data set and year."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from rich.table import Table

from paraloom.models.embeddings.applications.cost_table import Cost, ResultRow, cost_rows
from paraloom.models.embeddings.applications.protocols import PROTOCOLS, Benchmark, benchmarks
from paraloom.models.embeddings.comparison import (
    Compare,
    ComparedModel,
    Embed,
    Scores,
    Vectors,
    cosines,
)
from paraloom.models.embeddings.datasets.similarity import (
    LabelledPairs,
    missing,
    read_sick,
    read_sts,
)
from paraloom.models.errors import UserError

_TITLES = {"papers": "papers", "mteb": "MTEB"}


class LabelCorrelation(NamedTuple):
    """Correlation × 100; NaN if it is undefined (one of the two sides is constant)."""

    pearson: float
    spearman: float
    mse: float = np.nan
    """Mean squared error of predicted labels; NaN if there are none."""


class SetResult(NamedTuple):
    """The results of a model on one data set."""

    correlation: LabelCorrelation
    genres: dict[str, LabelCorrelation]  # of the STS Benchmark
    cosines: Scores


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """Results of several models on the same data sets."""

    models: list[str]
    data: list[LabelledPairs]
    correlations: list[list[LabelCorrelation]]  # [models][data sets]
    genres: list[list[dict[str, LabelCorrelation]]] = field(default_factory=list)
    """[models][data sets]: the correlations of each genre; empty but for the STS Benchmark"""
    benchmarks: list[Benchmark] = field(default_factory=list)
    protocols: dict[str, list[list[float]]] = field(default_factory=dict)
    """of each protocol, [models][benchmarks]: correlation × 100"""

    def mean(self, model: int, group: str) -> LabelCorrelation:
        """Unweighted mean over the group's data sets; undefined if one of them is undefined."""
        pairs = zip(self.data, self.correlations[model], strict=True)
        found = [correlation[:2] for data, correlation in pairs if data.group == group]
        return LabelCorrelation(*(float(column) for column in np.mean(found, axis=0)))

    def table(
        self, costs: Sequence[Cost] = (), how: str = "", names: Sequence[str] | None = None
    ) -> Table:
        """`Pearson / Spearman` of every model by data set, the means, and the missing data sets;
        then the results by protocol, and the costs [models], which `how` explains.

        Args:
            names: [models], to show instead of the models' own
        """
        caption = "\n".join(filter(None, [self.meaning(), how]))
        table = Table("data set", "pairs", caption=caption)
        table.columns[1].justify = "right"
        for name in names or self.models:
            table.add_column(name, justify="right")
        styles = {"mean": "bold", "missing": "dim"}
        for section in [*self.sections(), cost_rows(costs)]:
            for row in section:
                table.add_row(row.head, row.pairs, *row.cells, style=styles.get(row.kind))
            table.add_section()
        return table

    def meaning(self) -> str:
        """What the numbers in `sections` are."""
        lines = ["Pearson / Spearman × 100"]
        if not np.isnan([each.mse for of in self.correlations for each in of]).all():
            lines[0] += ", mean squared error of predicted labels"
        if self.benchmarks:
            lines += PROTOCOLS.values()
        return "\n".join(lines)

    def sections(self) -> list[list[ResultRow]]:
        """The rows of a table: of each group of data sets, then of each protocol."""
        found = [self._group_rows(*group) for group in self._by_group(_cell).items()]
        return [*found, *(self._protocol_rows(name) for name in self.protocols)]

    def _group_rows(self, group: str, found: dict[str, Any]) -> list[ResultRow]:
        rows = []
        for name, results in found["data_sets"].items():
            genres = results.get("genres", {})
            of_genres = {f"{name}, {genre}": of_genre for genre, of_genre in genres.items()}
            for head, shown in ({name: results} | of_genres).items():
                cells = list(shown["models"].values())
                rows.append(ResultRow(f"{group} {head}", f"{shown['pairs']:,}", cells))
        if "mean" in found:
            rows.append(ResultRow(f"{group} mean", "", list(found["mean"].values()), "mean"))
        if found["missing"]:
            absent = f"{group} without {', '.join(found['missing'])} (not there)"
            rows.append(ResultRow(absent, "", [""] * len(self.models), "missing"))
        return rows

    def _protocol_rows(self, protocol: str) -> list[ResultRow]:
        rows, results = [], self.protocols[protocol]
        for i, benchmark in enumerate(self.benchmarks):
            head, pairs = f"{_TITLES[protocol]}: {benchmark.name}", ""
            if protocol == "mteb":
                incomplete = "" if benchmark.complete else ", incomplete"
                head, pairs = f"{head} ({benchmark.task}{incomplete})", f"{benchmark.pairs:,}"
            rows.append(ResultRow(head, pairs, [_number(of[i]) for of in results]))
        if self.benchmarks:
            means = [_number(self.overall(protocol, model)) for model in range(len(self.models))]
            rows.append(ResultRow(f"{_TITLES[protocol]}: mean", "", means, "mean"))
        return rows

    def overall(self, protocol: str, model: int) -> float:
        """Unweighted mean over the benchmarks."""
        return float(np.mean(self.protocols[protocol][model]))

    def json(self) -> dict[str, Any]:
        """The results for programs; an undefined correlation is None.

        `groups.<group>.data_sets.<name>.models.<model>.pearson`, `groups.<year>.mean.<model>.…`,
        `protocols.<protocol>.results.<benchmark>.<model>`, `protocols.<protocol>.mean.<model>`
        """
        found = {"models": self.models, "groups": self._by_group(_numbers)}
        return found | ({"protocols": self._by_protocol()} if self.benchmarks else {})

    def _by_protocol(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for protocol, results in self.protocols.items():
            by_name = {
                benchmark.name: self._of_models([_rounded(of[i]) for of in results])
                for i, benchmark in enumerate(self.benchmarks)
            }
            means = self._of_models(
                [_rounded(self.overall(protocol, model)) for model in range(len(self.models))]
            )
            found[protocol] = {"what": PROTOCOLS[protocol], "results": by_name, "mean": means}
        found["mteb"]["tasks"] = {
            each.name: {"task": each.task, "pairs": each.pairs, "complete": each.complete}
            for each in self.benchmarks
        }
        return found

    def _of_models(self, values: Sequence[Any]) -> dict[str, Any]:
        return dict(zip(self.models, values, strict=True))

    def _by_group(self, show: Callable[[LabelCorrelation], Any]) -> dict[str, Any]:
        lacking = missing(self.data)
        groups: dict[str, Any] = {}
        for i, data in enumerate(self.data):
            new = {"data_sets": {}, "missing": lacking.get(data.group, [])}
            found = groups.setdefault(data.group, new)["data_sets"][data.name] = {
                "pairs": len(data),
                "unscored": data.unscored,
                "models": self._of_models([show(of[i]) for of in self.correlations]),
            }
            if data.genres is not None and self.genres:
                found["genres"] = {
                    genre: {
                        "pairs": data.genres.to_pylist().count(genre),
                        "models": self._of_models([show(of[i][genre]) for of in self.genres]),
                    }
                    for genre in self.genres[0][i]
                }
        for group, found in groups.items():
            if group.removeprefix("STS ").isdecimal():  # a year
                means = [show(self.mean(model, group)) for model in range(len(self.models))]
                found["mean"] = self._of_models(means)
        return groups


def evaluate_models(
    models: Sequence[ComparedModel | tuple[str, Embed]],
    sts: Path | str | Sequence[Path | str] | None = None,
    sick: Path | str | None = None,
) -> Report:
    """Correlate every model's scores with the labels in the folders `sts` and `sick`."""
    folders = [sts] if isinstance(sts, Path | str) else sts or []
    data = [pairs for folder in folders for pairs in read_sts(folder)]
    return evaluate_on([*data, *(read_sick(sick) if sick else [])], models)


def evaluate_on(
    data: list[LabelledPairs], models: Sequence[ComparedModel | tuple[str, Embed]]
) -> Report:
    """Correlate every model's scores with the labels of data sets."""
    entered = [ComparedModel(*model) for model in models]
    names = [model.name for model in entered]
    check_distinct(names, "models")
    check_distinct([f"{pairs.group} {pairs.name}" for pairs in data], "data sets")
    judged = [[_judge(model, pairs) for pairs in data] for model in entered]
    found = benchmarks(data)
    labels = [pairs.scores for pairs in data]
    papers = [
        [float(np.mean([of[i].correlation.pearson for i in each.papers])) for each in found]
        for of in judged
    ]
    mteb = [
        [
            correlation(
                np.concatenate([of[i].cosines for i in each.mteb]),
                np.concatenate([labels[i] for i in each.mteb]),
            ).spearman
            for each in found
        ]
        for of in judged
    ]
    return Report(
        models=names,
        data=data,
        correlations=[[each.correlation for each in of] for of in judged],
        genres=[[each.genres for each in of] for of in judged],
        benchmarks=found,
        protocols={"papers": papers, "mteb": mteb},
    )


def check_distinct(names: Sequence[str], what: str) -> None:
    """Check that no name stands twice; results are found by name."""
    for name in names:
        if names.count(name) > 1:
            raise UserError(f"{name}: stands twice among the {what}")


def _judge(model: ComparedModel, data: LabelledPairs) -> SetResult:
    vectors = embed_pairs(model.embed, data.first, data.second)
    found = model.compare(*vectors)
    error = np.mean((found - data.scores) ** 2) if model.scale == data.scale else np.nan
    genres = np.array([] if data.genres is None else data.genres.to_pylist(), object)
    return SetResult(
        correlation(found, data.scores)._replace(mse=float(error)),
        {
            genre: correlation(found[genres == genre], data.scores[genres == genre])
            for genre in sorted(set(genres))
        },
        found if model.compare is cosines else cosines(*vectors),
    )


def agreement(embed: Embed, data: LabelledPairs, compare: Compare = cosines) -> LabelCorrelation:
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


def correlation(predicted: NDArray[np.floating], labels: NDArray[np.floating]) -> LabelCorrelation:
    """Pearson's r and Spearman's ρ (ties share their mean rank), × 100.

    >>> correlation(np.array([0.1, 0.2, 0.9]), np.array([1.0, 2.0, 3.0])).spearman
    100.0
    """
    # Rounding errors are no signal: 1e-9 is far below the resolution of a float32 cosine.
    if any(not np.ptp(side) > 1e-9 * np.abs(side).max() for side in (predicted, labels)):
        return LabelCorrelation(float("nan"), float("nan"))
    from scipy.stats import rankdata  # late: it takes most of a second

    return LabelCorrelation(
        _pearson(predicted, labels), _pearson(rankdata(predicted), rankdata(labels))
    )


def _pearson(x: NDArray[np.floating], y: NDArray[np.floating]) -> float:
    x, y = x - x.mean(), y - y.mean()
    return float(100 * np.clip(x @ y / np.sqrt((x @ x) * (y @ y)), -1, 1))


def _cell(correlation: LabelCorrelation) -> str:
    # Pearson and Spearman are undefined together.
    undefined = np.isnan(correlation.pearson)
    cell = "undefined" if undefined else "{:.1f} / {:.1f}".format(*correlation)
    return cell if np.isnan(correlation.mse) else f"{cell}, {correlation.mse:.3f}"


def _numbers(correlation: LabelCorrelation) -> dict[str, float | None]:
    values = correlation._asdict()
    if np.isnan(correlation.mse):
        del values["mse"]
    return {key: _rounded(value) for key, value in values.items()}


def _rounded(value: float) -> float | None:
    return None if np.isnan(value) else round(value, 4)


def _number(value: float) -> str:
    return "undefined" if np.isnan(value) else f"{value:.1f}"
