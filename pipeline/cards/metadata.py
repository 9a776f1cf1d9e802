"""The metadata block at the beginning of a card, in the form of Hugging Face's Hub."""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import PurePath
from typing import Any

import pyarrow as pa
from huggingface_hub import DatasetCardData, EvalResult, ModelCardData

from paraloom.models.languages import language_name, short_code
from paraloom.pipeline.cards.licenses import license_metadata
from paraloom.pipeline.records import ConfigRecord, Correlation, Evaluation, InputSection
from paraloom.pipeline.report.render import Markdown

PART_FILES = "part-*.parquet"
"""The part files of a corpus, as readers of its card find them."""

_SIZES = ("1K", "10K", "100K", "1M", "10M", "100M", "1B", "10B", "100B", "1T")


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitFiles:
    """The files of a split in one configuration, and their size in bytes."""

    name: str
    rows: int
    files: tuple[str, ...]
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """A selection of columns of a released corpus, in a folder of its own."""

    name: str
    folder: str
    columns: pa.Schema
    splits: tuple[SplitFiles, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """A corpus as it is published."""

    license: str  # in the user's words
    license_link: str | None  # where its text is, if it is not on the Hub's list
    repo: str | None  # name on the Hub, if it has one already
    seed: int  # of the hash that divides references into splits
    configurations: tuple[Configuration, ...]  # the first one is the default
    negatives: tuple[tuple[str, str, int], ...] = ()  # kinds, what they are, and how many
    neighbours: str = ""  # how those near the anchor were found, in words

    @property
    def splits(self) -> tuple[SplitFiles, ...]:
        """The splits of the default configuration; the others have the same rows."""
        return self.configurations[0].splits


def title(config: ConfigRecord) -> str:
    """The title of a run's corpus."""
    language = language_name((config.input or InputSection()).target_language)
    name = " ".join(PurePath(config.run).name.split())
    return f"{name}: {language} paraphrases from bitext"


def card_metadata(config: ConfigRecord, rows: int, release: Release | None = None) -> Markdown:
    """The metadata of a run's corpus where it lies, or of its release, as YAML."""
    source = config.input or InputSection()
    license = (release.license, release.license_link) if release else (source.license,)
    values: dict[str, Any] = {
        "pretty_name": title(config),
        "language": hub_languages([source.target_language, source.source_language]),
        **license_metadata(*license),
        "multilinguality": ["translation"],
        "size_categories": [size_category(rows)],
        "task_categories": ["sentence-similarity", "text-generation"],
        "task_ids": ["semantic-similarity-scoring"],
        "language_creators": ["found", "machine-generated"],
        "annotations_creators": ["machine-generated"],
        "source_datasets": ["extended"],
        "tags": ["paraphrase", "back-translation", "sentence-transformers"],
        "configs": _configurations(release),
    }
    return Markdown(f"{DatasetCardData(**values).to_yaml()}\n")


def size_category(rows: int) -> str:
    """The hub's name for a number of rows.

    >>> size_category(999), size_category(28_200), size_category(51_409_585)
    ('n<1K', '10K<n<100K', '10M<n<100M')
    """
    between = (f"{low}<n<{high}" for low, high in pairwise(_SIZES))
    names = [f"n<{_SIZES[0]}", *between, f"n>{_SIZES[-1]}"]
    return names[sum(rows >= 10.0 ** (3 + k) for k in range(len(_SIZES)))]


def _configurations(release: Release | None) -> list[dict[str, Any]]:
    """Which files have the rows of each split; the first configuration is the default."""
    if release is None:
        files = [{"split": "train", "path": PART_FILES}]
        return [{"config_name": "default", "data_files": files}]
    found: list[dict[str, Any]] = []
    for each in release.configurations:
        files = [{"split": s.name, "path": f"{each.folder}/{s.name}-*"} for s in each.splits]
        found.append({"config_name": each.name, "data_files": files})
    found[0]["default"] = True
    return found


def encoder_metadata(
    *,
    name: str,
    language: str,
    license: str | None,
    results: Sequence[EvalResult],
    training: Sequence[str] | None = None,
) -> Markdown:
    """The metadata of an encoder as YAML; the licence of its training data, if known.

    `training` has the tasks of MTEB whose data the encoder was trained on; None: not known.
    """
    values: dict[str, Any] = {
        "language": hub_languages([language]),
        **license_metadata(license),
        "library_name": "sentence-transformers",
        "pipeline_tag": "sentence-similarity",
        "tags": ["sentence-transformers", "sentence-similarity", "feature-extraction", "paraloom"],
    }
    if training is not None:
        values["training_datasets"] = list(training)
    if results:
        values["metrics"] = list(dict.fromkeys(result.metric_type for result in results))
        values |= {"model_name": name, "eval_results": list(results)}
    return Markdown(f"{ModelCardData(**values).to_yaml()}\n")


def model_index(
    evaluation: Evaluation, model: str, score: str, without: Collection[str] = ()
) -> Iterator[EvalResult]:
    """The results of a model on each data set, the means, and MTEB's tasks that are complete.

    Args:
        score: what compares two sentences, as sentence-transformers names it in metrics: `cosine`,
            `dot`, or empty for predicted labels.
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


def hub_languages(codes: Iterable[str]) -> list[str]:
    """Languages as the Hub names them: codes of two or three letters, each once.

    >>> hub_languages(["en_GB", "cs", "en"])
    ['en', 'cs']
    """
    short = (short_code(code).partition("-")[0] for code in codes)
    return [code for code in dict.fromkeys(short) if re.fullmatch("[a-z]{2,3}", code)]
