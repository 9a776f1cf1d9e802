"""Evaluation of encoders on labelled pairs, by data set and year, and by MTEB's protocol.

MTEB (mteb 2.26, main score `cosine_spearman`) treats all test pairs of a year as one set. MTEB's
task STS13 does not include SMT. STS17 is the data set en-en, STSBenchmark is the test set of the
STS Benchmark, and SICK-R includes all three SICK files.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from rich.table import Table

from paraloom.models.embeddings.comparison import (
    Compare,
    ComparedModel,
    Embed,
    Scores,
    Vectors,
    cosines,
)
from paraloom.models.embeddings.datasets.similarity import (
    SEMEVAL,
    STS_BENCHMARK,
    LabelledPairs,
    missing,
)
from paraloom.models.errors import UserError

_CAPTION = """Pearson / Spearman × 100
MTEB: Spearman of the cosines × 100; all pairs of a year as one set"""
_PAIRS = {  # number of pairs in MTEB's tasks
    **{"STS12": 3108, "STS13": 1500, "STS14": 3750, "STS15": 3000, "STS16": 1186, "STS17": 250},
    **{"STSBenchmark": 1379, "SICK-R": 9927},
}
_NOT_IN_MTEB = {"STS13": {"SMT"}}


class LabelCorrelation(NamedTuple):
    """Correlations of scores and labels, × 100. They are NaN if scores or labels are constant."""

    pearson: float
    spearman: float


class Benchmark(NamedTuple):
    """Data sets that MTEB pools into one set: a year of STS, the STS Benchmark, or SICK."""

    name: str
    task: str  # name of MTEB's task
    sets: list[int]  # indices of the pooled data sets
    pairs: int  # number of pooled pairs

    @property
    def complete(self) -> bool:
        """Whether there are as many pairs as in MTEB's task."""
        return self.pairs == _PAIRS[self.task]


def benchmarks(data: Sequence[LabelledPairs]) -> list[Benchmark]:
    """Return the benchmarks that `data` contains. For the STS Benchmark, use the test set, or the
    development set if there is no test set. Its training set is ignored."""
    found = []
    for group in dict.fromkeys(pairs.group for pairs in data):
        sets = {pairs.name: i for i, pairs in enumerate(data) if pairs.group == group}
        year = group.removeprefix("STS ")
        split = next((name for name in ("sts-test", "sts-dev") if name in sets), None)
        if year in SEMEVAL:
            name, task = group, f"STS{year[2:]}"
            names = set(SEMEVAL[year]) - _NOT_IN_MTEB.get(task, set())
            pooled = [i for of, i in sets.items() if of in names]
        elif group == "SICK":
            name, task, pooled = group, "SICK-R", [*sets.values()]
        elif split:
            name, task = f"STS Benchmark {STS_BENCHMARK[split]}", "STSBenchmark"
            pooled = [sets[split]]
        else:
            continue
        if pooled:
            found.append(Benchmark(name, task, pooled, sum(len(data[i]) for i in pooled)))
    return found


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """The results of models on data sets."""

    models: list[str]
    data: list[LabelledPairs]
    correlations: list[list[LabelCorrelation]]  # [models][data sets]
    mteb: list[list[float]]  # [models][benchmarks]

    def mean(self, model: int, group: str) -> LabelCorrelation:
        """Return a model's mean correlations over a group's data sets. `model` is the index of the
        model. A mean is NaN if a correlation is undefined."""
        pairs = zip(self.data, self.correlations[model], strict=True)
        found = [correlation for data, correlation in pairs if data.group == group]
        return LabelCorrelation(*(float(column) for column in np.mean(found, axis=0)))

    def table(self) -> Table:
        """Return a table of correlations by data set, their means, and MTEB's results."""
        table = Table("data set", "pairs", caption=_CAPTION)
        table.columns[1].justify = "right"
        for name in self.models:
            table.add_column(name, justify="right")
        for group, found in self._by_group(_cell).items():
            for name, of in found["data_sets"].items():
                table.add_row(f"{group} {name}", f"{of['pairs']:,}", *of["models"].values())
            if "mean" in found:
                table.add_row(f"{group} mean", "", *found["mean"].values(), style="bold")
            if found["missing"]:
                absent = f"{group}: {', '.join(found['missing'])} not found"
                table.add_row(absent, style="dim")
            table.add_section()
        for i, each in enumerate(benchmarks(self.data)):
            head = f"MTEB: {each.name} ({each.task}{'' if each.complete else ', incomplete'})"
            cells = (f"{of[i]:.1f}".replace("nan", "undefined") for of in self.mteb)
            table.add_row(head, f"{each.pairs:,}", *cells)
        table.add_section()
        return table

    def json(self) -> dict[str, Any]:
        """Return the results for JSON. An undefined correlation is None.

        The paths of results are `groups.<group>.data_sets.<name>.models.<model>.pearson`,
        `groups.STS <year>.mean.<model>.pearson` and `protocols.mteb.results.<benchmark>.<model>`.
        """
        found = benchmarks(self.data)
        mteb = {
            "results": {
                each.name: self._of_models([_rounded(of[i]) for of in self.mteb])
                for i, each in enumerate(found)
            },
            "tasks": {
                each.name: {"task": each.task, "pairs": each.pairs, "complete": each.complete}
                for each in found
            },
        }
        groups = self._by_group(lambda of: {key: _rounded(x) for key, x in of._asdict().items()})
        return {"models": self.models, "groups": groups, "protocols": {"mteb": mteb}}

    def _of_models(self, values: Sequence[Any]) -> dict[str, Any]:
        return dict(zip(self.models, values, strict=True))

    def _by_group(self, show: Callable[[LabelCorrelation], Any]) -> dict[str, Any]:
        lacking = missing(self.data)
        groups: dict[str, Any] = {}
        for i, data in enumerate(self.data):
            new = {"data_sets": {}, "missing": lacking.get(data.group, [])}
            groups.setdefault(data.group, new)["data_sets"][data.name] = {
                "pairs": len(data),
                "unscored": data.unscored,
                "models": self._of_models([show(of[i]) for of in self.correlations]),
            }
        for group, found in groups.items():
            if group.removeprefix("STS ").isdecimal():  # only years have means
                means = [show(self.mean(model, group)) for model in range(len(self.models))]
                found["mean"] = self._of_models(means)
        return groups


def evaluate_models(
    data: list[LabelledPairs], models: Sequence[ComparedModel | tuple[str, Embed]]
) -> Report:
    """Compute the correlations of every model's scores with the labels of data sets."""
    entered = [ComparedModel(*model) for model in models]
    names = [model.name for model in entered]
    check_distinct(names, "models")
    check_distinct([f"{pairs.group} {pairs.name}" for pairs in data], "data sets")
    correlations, mteb, labels = [], [], [pairs.scores for pairs in data]
    for model in entered:
        vectors = [embed_pairs(model.embed, pairs.first, pairs.second) for pairs in data]
        scored = [model.compare(*of) for of in vectors]
        correlations.append(list(map(correlation, scored, labels)))
        by_cosine = [cosines(*of) for of in vectors]
        found = []
        for each in benchmarks(data):
            pooled = (np.concatenate([of[i] for i in each.sets]) for of in (by_cosine, labels))
            found.append(correlation(*pooled).spearman)
        mteb.append(found)
    return Report(models=names, data=data, correlations=correlations, mteb=mteb)


def check_distinct(names: Sequence[str], what: str) -> None:
    """Raise an error if a name is not unique, because results are accessed by name."""
    for name in names:
        if names.count(name) > 1:
            raise UserError(f"{name}: occurs twice among the {what}")


def agreement(embed: Embed, data: LabelledPairs, compare: Compare = cosines) -> LabelCorrelation:
    """Return the correlations between a model's scores and the labels of a data set."""
    return correlation(scores(embed, data, compare), data.scores)


def scores(embed: Embed, data: LabelledPairs, compare: Compare = cosines) -> Scores:
    """Return the scores of a data set's pairs."""
    return compare(*embed_pairs(embed, data.first, data.second))


def embed_pairs(
    embed: Embed, first: pa.StringArray, second: pa.StringArray
) -> tuple[Vectors, Vectors]:
    """Return the vectors of both sides of n pairs."""
    vectors = embed(pa.concat_arrays([first, second]))
    return vectors[: len(first)], vectors[len(first) :]


def correlation(predicted: NDArray[np.floating], labels: NDArray[np.floating]) -> LabelCorrelation:
    """Return Pearson's r and Spearman's ρ, × 100. Equal values get the mean of their ranks."""
    # Values that differ only by rounding errors count as constant.
    if any(not np.ptp(side) > 1e-9 * np.abs(side).max() for side in (predicted, labels)):
        return LabelCorrelation(float("nan"), float("nan"))
    from scipy.stats import rankdata  # this import takes almost a second

    # Round the scores, because cosines of equal vectors differ in their last bits.
    ranks = rankdata(np.round(predicted / np.abs(predicted).max(), 9))
    return LabelCorrelation(_pearson(predicted, labels), _pearson(ranks, rankdata(labels)))


def _pearson(x: NDArray[np.floating], y: NDArray[np.floating]) -> float:
    x, y = x - x.mean(), y - y.mean()
    return float(100 * np.clip(x @ y / np.sqrt((x @ x) * (y @ y)), -1, 1))


def _cell(found: LabelCorrelation) -> str:
    # If one of the two is undefined, both are.
    return "undefined" if np.isnan(found.pearson) else "{:.1f} / {:.1f}".format(*found)


def _rounded(value: float) -> float | None:
    return None if np.isnan(value) else round(value, 4)
