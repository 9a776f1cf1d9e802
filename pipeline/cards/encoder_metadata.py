"""The metadata block of an encoder's model card, in the form of Hugging Face's Hub."""

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from huggingface_hub import EvalResult, ModelCardData

from paraloom.models.licenses import license_metadata
from paraloom.pipeline.cards.metadata import hub_languages
from paraloom.pipeline.records import Correlation, Evaluation
from paraloom.pipeline.report.render import Markdown


def encoder_metadata(
    *, name: str, language: str, license: str | None, results: Sequence[EvalResult]
) -> Markdown:
    """The metadata of an encoder as YAML; the licence is that of its training data, if known."""
    values: dict[str, Any] = {
        "language": hub_languages([language]),
        **license_metadata(license),
        "library_name": "sentence-transformers",
        "pipeline_tag": "sentence-similarity",
        "tags": ["sentence-transformers", "sentence-similarity", "feature-extraction", "paraloom"],
    }
    if results:
        values["metrics"] = list(dict.fromkeys(result.metric_type for result in results))
        values |= {"model_name": name, "eval_results": list(results)}
    return Markdown(f"{ModelCardData(**values).to_yaml()}\n")


def model_index(
    evaluation: Evaluation, model: str, score: str, without: Collection[str] = ()
) -> Iterator[EvalResult]:
    """The results of a model on each data set, the means, and MTEB's tasks that are complete.

    Args:
        score: of two sentences, as sentence-transformers names it in metrics: `cosine`, `dot`, or
            empty for predicted labels.
        without: data sets that are left out, as `<group> <name>`, and all means over them.
    """
    for group, content in evaluation.groups.items():
        names = {name: f"{group} {name}" for name in content.data_sets}
        for name, data in content.data_sets.items():
            if names[name] not in without and model in data.models:
                yield from results(names[name], data.models[model], score)
        if content.mean and model in content.mean and not {*names.values()} & {*without}:
            over = f"{group} (mean of {len(names)} data sets)"
            yield from results(over, content.mean[model], score)
    mteb = (evaluation.model_extra or {}).get("protocols", {}).get("mteb", {})
    for benchmark, task in mteb.get("tasks", {}).items():
        value = mteb.get("results", {}).get(benchmark, {}).get(model)
        if task.get("complete") and not any(name.startswith(benchmark) for name in without):
            found = Correlation(pearson=None, spearman=value)
            # MTEB takes the cosine of any model.
            yield from results(f"{task['task']} (all pairs as one set)", found, "cosine")


def results(name: str, found: Correlation, score: str) -> Iterator[EvalResult]:
    """The results on one data set; its correlations, which are × 100, are written from -1 to 1."""
    metrics: dict[str, float | None] = {}
    for kind, value in (("pearson", found.pearson), ("spearman", found.spearman)):
        key = f"{kind}_{score}" if score else kind
        metrics[key] = None if value is None else round(value / 100, 6)
    for key, value in (*metrics.items(), ("mse", found.mse)):
        if value is not None:
            yield EvalResult(
                task_type="semantic-similarity",
                task_name="Semantic Similarity",
                dataset_type=re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-"),
                dataset_name=name,
                metric_type=key,
                metric_name="Mean Squared Error" if key == "mse" else key.replace("_", " ").title(),
                metric_value=value,
            )
