"""The split by reference, and how rows become files."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paraloom.pipeline.pages.metadata import SplitFiles
from paraloom.pipeline.release import files
from paraloom.pipeline.release.files import PAIRS, SplitWriter, held_out, write_configurations
from tests.run_helpers import Patch

NAMES = ("id", "reference", "translation")
COLUMNS = pa.schema([pa.field(name, pa.string(), nullable=False) for name in NAMES])
TEXTS = st.text(st.sampled_from("aAbB .!?é"), max_size=5)


def table(references: list[str], first: int = 0) -> pa.Table:
    texts = [
        {"reference": text, "translation": f"t {i} {text}"} for i, text in enumerate(references)
    ]
    rows = [{"id": str(first + i), **of} for i, of in enumerate(texts)]
    return pa.Table.from_pylist(rows, COLUMNS)


def plain(text: str) -> str:
    """Normalisation by its definition: lower case, letters only."""
    return " ".join("".join(c if c.isalnum() else " " for c in text.lower()).split())


def read(folder: Path, split: SplitFiles) -> pa.Table:
    return pa.concat_tables([pq.read_table(folder / name) for name in split.files])


@settings(max_examples=40)
@given(st.lists(st.lists(TEXTS, max_size=8), max_size=5), st.floats(0, 0.999), st.integers(0, 9))
def test_rows_once_and_references_apart(parts: list[list[str]], share: float, seed: int) -> None:
    tables = [table(texts, 100 * i) for i, texts in enumerate(parts)]
    with TemporaryDirectory() as name:
        folder = Path(name)
        full, pairs = write_configurations(folder, tables, COLUMNS, share, seed)
        found = {split.name: read(folder, split) for split in full.splits}
        both = [tuple(row.values()) for of in found.values() for row in of.to_pylist()]
        written = [tuple(row.values()) for of in tables for row in of.to_pylist()]
        assert sorted(both) == sorted(written)
        for name, of in found.items():
            out = held_out(of["reference"].combine_chunks(), share, seed)
            assert (out == (name == "test")).all()
        references = [{plain(t) for t in of["reference"].to_pylist()} for of in found.values()]
        assert len(references) < 2 or references[0].isdisjoint(references[1])
        for split, other in zip(full.splits, pairs.splits, strict=True):
            assert split.rows == other.rows == found[split.name].num_rows
            renamed = found[split.name].drop(["id"]).rename_columns(PAIRS.names)
            assert read(folder, other).equals(renamed)


@settings(max_examples=40)
@given(st.lists(TEXTS, min_size=1, max_size=8), st.floats(0, 0.999), st.integers(0, 9))
def test_a_references_split_depends_on_it_alone(texts: list[str], share: float, seed: int) -> None:
    together = held_out(pa.array(texts), share, seed)
    alone = [held_out(pa.array([text]), share, seed)[0] for text in texts]
    assert list(together) == alone
    assert (held_out(pa.array([f"{t.upper()}!" for t in texts]), share, seed) == together).all()
    assert (held_out(pa.array(texts), min(share * 1.5, 1), seed) >= together).all()


def test_the_share_is_met_and_the_seed_counts() -> None:
    texts = pa.array([f"sentence {i}" for i in range(20_000)])
    one, other = held_out(texts, 0.1, 1), held_out(texts, 0.1, 2)
    assert abs(one.mean() - 0.1) < 0.01 and abs(other.mean() - 0.1) < 0.01
    assert (one & other).mean() < 0.02
    assert not held_out(texts, 0, 1).any()
    few = pa.array([f"Sentence {i}!" for i in range(40)])  # the same from version to version
    assert np.flatnonzero(held_out(few, 0.2, 1)).tolist() == [9, 16, 22, 29, 36, 38]


@pytest.mark.parametrize("cut", [1, 7, 100])
def test_files_have_a_limit_however_rows_come(cut: int, tmp_path: Path, monkeypatch: Patch) -> None:
    monkeypatch.setattr(files, "GROUP_ROWS", 10)
    monkeypatch.setattr(files, "FILE_ROWS", 30)
    rows = table([f"reference {i}" for i in range(75)])
    (tmp_path / "data").mkdir()
    writer = SplitWriter(tmp_path / "data", "train", COLUMNS)
    for start in range(0, 75, cut):
        writer.write(rows.slice(start, cut))
    split = writer.finish()
    assert split.files == tuple(f"data/train-0000{i}-of-00003.parquet" for i in range(3))
    assert [*(tmp_path / "data").glob("*.unnamed")] == []
    assert split.rows == 75 and read(tmp_path, split).equals(rows)
    opened = [pq.read_metadata(tmp_path / name) for name in split.files]
    groups = [[of.row_group(i).num_rows for i in range(of.num_row_groups)] for of in opened]
    assert groups == [[10, 10, 10], [10, 10, 10], [10, 5]]
    assert split.size == sum((tmp_path / name).stat().st_size for name in split.files)


def test_pages_have_an_index_and_end_by_content(tmp_path: Path) -> None:
    rows = table(["a", "a"]).append_column("decile", pa.array([7, 7], pa.int8()))
    writer = SplitWriter(tmp_path, "train", rows.schema)
    writer.write(rows)
    (name,) = writer.finish().files
    metadata = pq.ParquetFile(tmp_path / Path(name).name).metadata
    column, decile = (metadata.row_group(0).column(i) for i in (1, 3))
    assert not column.has_dictionary_page and decile.has_dictionary_page
    assert column.has_offset_index and column.has_column_index
    assert column.compression == "ZSTD"
    # The key by which the Hub knows such files, as `datasets` writes it.
    datasets = pytest.importorskip("datasets")
    chunking = json.loads(metadata.metadata[b"content_defined_chunking"])
    assert chunking == datasets.config.DEFAULT_CDC_OPTIONS


def test_a_file_ends_when_it_is_large(tmp_path: Path, monkeypatch: Patch) -> None:
    monkeypatch.setattr(files, "GROUP_ROWS", 100)
    monkeypatch.setattr(files, "FILE_BYTES", 2_000)
    generator = np.random.default_rng(1)
    rows = table([generator.bytes(20).hex() for _ in range(500)])
    writer = SplitWriter(tmp_path, "test", COLUMNS)
    writer.write(rows)
    assert len(writer.finish().files) == 5
