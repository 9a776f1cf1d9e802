"""The table of correlations on STS and SICK."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from paraloom.pipeline.records import Correlation, EvaluateRecord
from paraloom.pipeline.report.describe import correlation


class EvaluationTable(NamedTuple):
    """Correlations × 100 of every round and model."""

    models: list[str]
    columns: list[str]
    rows: list[tuple[str, list[str], bool]]  # (head, cells, whether it is a mean)
    missing: list[str]  # data sets that were not found, by year


def evaluation_table(evaluated: Sequence[tuple[str, EvaluateRecord]]) -> EvaluationTable:
    """The results of the rounds side by side; with MSE where a model predicts labels.

    `evaluated` has the name of each round ("" if there is only one) and its results.
    """
    results = [(name, of.results, model) for name, of in evaluated for model in of.results.models]
    models = list(dict.fromkeys(model for _, _, model in results))
    groups = evaluated[0][1].results.groups
    sets = [data for group in groups.values() for data in group.data_sets.values()]
    has_mse = any(found.mse is not None for data in sets for found in data.models.values())
    columns = ["data set", "pairs"]
    for name, _, model in results:
        prefix = f"{name} " * bool(name) + f"{model} " * (len(models) > 1)
        columns += [f"{prefix}{kind}" for kind in ("Pearson", "Spearman", "MSE")[: 2 + has_mse]]

    def cells(found: Iterable[Correlation]) -> list[str]:
        shown = []
        for each in found:
            mse = "" if each.mse is None else f"{each.mse:.3f}"
            shown += [correlation(each.pearson), correlation(each.spearman), mse][: 2 + has_mse]
        return shown

    rows, missing = [], []
    for group, content in groups.items():
        for test, data in content.data_sets.items():
            of_set = (of.groups[group].data_sets[test].models[model] for _, of, model in results)
            rows.append((f"{group} {test}", [f"{data.pairs:,}", *cells(of_set)], False))
        if content.mean:
            of_group = ((of.groups[group].mean or {})[model] for _, of, model in results)
            rows.append((f"{group} mean", ["", *cells(of_group)], True))
        if content.missing:
            missing.append(f"{group} {', '.join(content.missing)}")
    return EvaluationTable(models, columns, rows, missing)
