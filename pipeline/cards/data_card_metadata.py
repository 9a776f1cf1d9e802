"""The metadata block of a data card, in the form of Hugging Face's Hub."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import PurePath
from typing import Any

import pyarrow as pa

from paraloom.models.languages import language_name
from paraloom.models.licenses import license_metadata
from paraloom.pipeline.cards.metadata import hub_languages
from paraloom.pipeline.records import ConfigRecord, InputSection

PART_FILES = "part-*.parquet"
"""The part files of a corpus, as readers of its card find them."""

_SIZES = ("1K", "10K", "100K", "1M", "10M", "100M", "1B", "10B", "100B", "1T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """The files of a split in one configuration.

    Attributes:
        memory: bytes of the rows as Arrow tables.
        size: bytes of the files.
    """

    name: str
    rows: int
    files: tuple[str, ...]
    memory: int
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """A selection of columns of a released corpus, in a folder of its own."""

    name: str
    folder: str
    columns: pa.Schema
    splits: tuple[Split, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """A corpus as it is published.

    Attributes:
        license: of the corpus, in the user's words.
        license_link: where its text is, if it is not on the Hub's list.
        repo: its name on the Hub, if it has one already.
        seed: of the split.
        configurations: the first one is the default.
    """

    license: str
    license_link: str | None
    repo: str | None
    seed: int
    configurations: tuple[Configuration, ...]

    @property
    def splits(self) -> tuple[Split, ...]:
        """The splits of the default configuration; the others have the same rows."""
        return self.configurations[0].splits


def title(config: ConfigRecord) -> str:
    """The title of a run's corpus."""
    language = language_name((config.input or InputSection()).target_language)
    return f"{PurePath(config.run).name}: {language} paraphrases from bitext"


def card_metadata(
    config: ConfigRecord, rows: int, columns: pa.Schema, release: Release | None = None
) -> dict[str, Any]:
    """The metadata of a run's corpus where it lies, or of its release.

    >>> card_metadata(ConfigRecord(run="runs/a"), 20, pa.schema([]))["language"]
    ['en', 'cs']
    """
    source = config.input or InputSection()
    license = (release.license, release.license_link) if release else (source.license,)
    found = {
        "pretty_name": title(config),
        "language": hub_languages([source.target_language, source.source_language]),
        "multilinguality": ["translation"],
        **license_metadata(*license),
        "size_categories": [size_category(rows)],
        "task_categories": ["sentence-similarity", "text-generation"],
        "task_ids": ["semantic-similarity-scoring"],
        "language_creators": ["found", "machine-generated"],
        "annotations_creators": ["machine-generated"],
        "source_datasets": ["extended"],
        "tags": ["paraphrase", "back-translation", "sentence-transformers"],
    }
    if release is None:
        return found | {
            "configs": [_files("default", [("train", PART_FILES)])],
            "dataset_info": {"features": _features(columns)},
        }
    return found | {
        "configs": [
            _files(
                each.name,
                [(s.name, f"{each.folder}/{s.name}-*.parquet") for s in each.splits],
                default=each is release.configurations[0],
            )
            for each in release.configurations
        ],
        "dataset_info": [_info(each) for each in release.configurations],
    }


def size_category(rows: int) -> str:
    """The hub's name for a number of rows.

    >>> size_category(999), size_category(28_200), size_category(51_409_585)
    ('n<1K', '10K<n<100K', '10M<n<100M')
    """
    between = (f"{low}<n<{high}" for low, high in pairwise(_SIZES))
    names = [f"n<{_SIZES[0]}", *between, f"n>{_SIZES[-1]}"]
    return names[sum(rows >= 10.0 ** (3 + k) for k in range(len(_SIZES)))]


def dtype(type_: pa.DataType) -> str:
    """The name that Hugging Face datasets has for a type of Arrow."""
    return "float32" if pa.types.is_float32(type_) else str(type_)


def _files(
    name: str, patterns: Iterable[tuple[str, str]], *, default: bool = False
) -> dict[str, Any]:
    files = [{"split": split, "path": pattern} for split, pattern in patterns]
    return {"config_name": name, "data_files": files} | ({"default": True} if default else {})


def _info(configuration: Configuration) -> dict[str, Any]:
    splits = configuration.splits
    return {
        "config_name": configuration.name,
        "features": _features(configuration.columns),
        "splits": [
            {"name": split.name, "num_bytes": split.memory, "num_examples": split.rows}
            for split in splits
        ],
        "download_size": sum(split.size for split in splits),
        "dataset_size": sum(split.memory for split in splits),
    }


def _features(columns: pa.Schema) -> list[dict[str, str]]:
    return [{"name": field.name, "dtype": dtype(field.type)} for field in columns]
