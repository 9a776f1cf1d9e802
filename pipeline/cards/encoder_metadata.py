"""The metadata block of an encoder's model card, in the form of Hugging Face's Hub."""

import re
from collections.abc import Collection, Iterator
from typing import Any

from paraloom.models.licenses import license_metadata
from paraloom.pipeline.cards.metadata import hub_languages
from paraloom.pipeline.records import Correlation, Evaluation

_TASK = {"type": "semantic-similarity", "name": "Semantic Similarity"}


def encoder_metadata(
    *, name: str, language: str, license: str | None, results: list[dict[str, Any]]
) -> dict[str, Any]:
    """The metadata of an encoder.

    Args:
        license: of the corpus that it was trained on; None if it is not known.
        results: as `model_index` gives them.
    """
    metrics = {metric["type"]: None for result in results for metric in result["metrics"]}
    found: dict[str, Any] = {
        "language": hub_languages([language]),
        **license_metadata(license),
        "library_name": "sentence-transformers",
        "pipeline_tag": "sentence-similarity",
        "tags": ["sentence-transformers", "sentence-similarity", "feature-extraction", "paraloom"],
    }
    if results:
        found["metrics"] = list(metrics)
        found["model-index"] = [{"name": name, "results": results}]
    return found


def model_index(
    evaluation: Evaluation, model: str, score: str, without: Collection[str] = ()
) -> list[dict[str, Any]]:
    """The results of a model on each data set, the means, and MTEB's tasks.

    Args:
        score: of two sentences, as sentence-transformers names it in metrics: `cosine`, `dot`, or
            empty for predicted labels.
        without: data sets that are left out, as `<group> <name>`, and all means over them.
    """
    found = []
    for group, content in evaluation.groups.items():
        for name, data in content.data_sets.items():
            if f"{group} {name}" not in without and model in data.models:
                found.append(result(f"{group} {name}", data.models[model], score))
        names = {f"{group} {name}" for name in content.data_sets}
        if content.mean and model in content.mean and names.isdisjoint(without):
            over = f"{group} (mean of {len(names)} data sets)"
            found.append(result(over, content.mean[model], score))
    # MTEB takes the cosine of any model.
    found += [result(name, value, "cosine") for name, value in _mteb(evaluation, model, without)]
    return [result for result in found if result["metrics"]]


def result(name: str, found: Correlation, score: str) -> dict[str, Any]:
    """The result on one data set; its correlations, which are × 100, are written from -1 to 1."""
    metrics = []
    for kind in ("pearson", "spearman"):
        if (value := getattr(found, kind)) is not None:
            type_ = f"{kind}_{score}" if score else kind
            title = type_.replace("_", " ").title()
            metrics.append({"type": type_, "value": round(value / 100, 6), "name": title})
    if found.mse is not None:
        metrics.append({"type": "mse", "value": found.mse, "name": "Mean Squared Error"})
    return {"task": dict(_TASK), "dataset": {"name": name, "type": _slug(name)}, "metrics": metrics}


def _mteb(
    evaluation: Evaluation, model: str, without: Collection[str]
) -> Iterator[tuple[str, Correlation]]:
    """The results by MTEB's protocol of the tasks that are complete."""
    protocol = (evaluation.model_extra or {}).get("protocols", {}).get("mteb", {})
    for benchmark, task in protocol.get("tasks", {}).items():
        value = protocol.get("results", {}).get(benchmark, {}).get(model)
        if task.get("complete") and not any(name.startswith(benchmark) for name in without):
            yield (
                f"{task['task']} (all pairs as one set)",
                Correlation(pearson=None, spearman=value),
            )


def _slug(name: str) -> str:
    """A name in the form of the Hub's names.

    >>> _slug("STS 2015 (mean of 5 data sets)")
    'sts-2015-mean-of-5-data-sets'
    """
    return re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-")
