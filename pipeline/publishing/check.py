"""Checks of a release that was just written: everything is read again."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from paraloom.models.errors import UserError
from paraloom.models.licenses import HUB_LICENSES
from paraloom.pipeline.cards.data_card_metadata import Release, Split
from paraloom.pipeline.publishing.files import TEST, as_pairs, held_out, total_hash


def check_rows(folder: Path, release: Release, share: float, rows: int, total: np.ndarray) -> None:
    """Check that every row is there once, in its split, with the same text in both configurations.

    Args:
        share: of the references that are held out.
        rows: number of rows of the corpus.
        total: their `total_hash`.
    """
    full, pairs = release.configurations
    found, count = np.zeros(2, np.uint64), 0
    for split, of_pairs in zip(full.splits, pairs.splits, strict=True):
        other = _Reader(folder, of_pairs)
        for table in _tables(folder, split):
            count += table.num_rows
            found += total_hash(table)
            test = held_out(table["reference"].combine_chunks(), share, release.seed)
            if (test != (split.name == TEST)).any():
                raise _damaged(folder, split, "has a row of the other split")
            if not as_pairs(table).equals(other.read(table.num_rows)):
                raise _damaged(folder, of_pairs, "has other texts than the configuration full")
        if other.read(1).num_rows:
            raise _damaged(folder, of_pairs, "has more rows than the configuration full")
    if count != rows or (found != total).any():
        raise UserError(f"{folder}: {count:,} rows were read again, which are not those written")


def check_card(text: str) -> None:
    """Check a card as far as this is possible without the Hub.

    `huggingface_hub` must read from it what is written in it, and write the same again.
    """
    import yaml
    from huggingface_hub import DatasetCard, DatasetCardData

    written = yaml.safe_load(text.split("---\n")[1])
    read = yaml.safe_load(DatasetCard(text).data.to_yaml())
    again = yaml.safe_load(DatasetCardData(**written).to_yaml())
    if not written == read == again:
        raise UserError("README.md: huggingface_hub does not read its metadata as written")
    license = written.get("license")
    if license not in HUB_LICENSES and not (
        license == "other" and written.get("license_name") and written.get("license_link")
    ):
        raise UserError(f"README.md: the licence {license} is not one that the Hub knows")
    for key, known in _VALUES.items():
        if not set(written[key]) <= known:
            raise UserError(f"README.md: {key} is {', '.join(written[key])}, unknown to the Hub")


_CREATORS = {"found", "crowdsourced", "expert-generated", "machine-generated", "other"}
_TEN = [f"{number}{unit}" for unit in "KMB" for number in (1, 10, 100)] + ["1T"]
_VALUES = {
    "language_creators": _CREATORS,
    "annotations_creators": {*_CREATORS, "no-annotation"},
    "multilinguality": {"monolingual", "multilingual", "translation", "other"},
    "size_categories": {
        "n<1K",
        *(f"{low}<n<{high}" for low, high in pairwise(_TEN)),
        "n>1T",
    },
    "source_datasets": {"original", "extended"},
}
"""The values that the documentation of `huggingface_hub.DatasetCardData` lists."""


class _Reader:
    """Reads the rows of a split, any number at a time."""

    def __init__(self, folder: Path, split: Split) -> None:
        self._tables = _tables(folder, split)
        self._rest: pa.Table | None = None

    def read(self, rows: int) -> pa.Table:
        """The next rows; fewer at the end."""
        parts, missing = [], rows
        while missing:
            table = self._rest if self._rest is not None else next(self._tables, None)
            if table is None:
                break
            parts.append(table.slice(0, missing))
            self._rest = table.slice(missing) if table.num_rows > missing else None
            missing -= parts[-1].num_rows
        return pa.concat_tables(parts) if parts else pa.table({})


def _tables(folder: Path, split: Split) -> Iterator[pa.Table]:
    for name in split.files:
        with pq.ParquetFile(folder / name) as file:
            for group in range(file.num_row_groups):
                yield file.read_row_group(group)


def _damaged(folder: Path, split: Split, what: str) -> UserError:
    return UserError(f"{folder}/{split.files[0]}: {what}; is the disk sound?")
