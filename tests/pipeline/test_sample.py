"""The sample in `pipeline/sample` holds what its page lists, broken rows included."""

import gzip
import re
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml

from paraloom.models.embeddings.datasets.similarity import read_sts
from paraloom.pipeline.cli import main
from tests.sample import LABELLED, PHRASES, SAMPLE, SIMILARITY, sample_config

PAGE = (SAMPLE / "README.md").read_text("utf-8")


@pytest.fixture(scope="module")
def ingested(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that `ingest` writes from the sample."""
    folder = tmp_path_factory.mktemp("sample")
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump(sample_config(run=str(folder / "run"))))
    assert main(["ingest", "--config", str(path), "--", "--direct_num_workers", "1"]) == 0
    return folder / "run" / "ingest"


def column(folder: Path, name: str) -> list[str]:
    return [
        value
        for path in folder.glob("*.parquet")
        for value in pq.read_table(path)[name].to_pylist()
    ]


def test_every_broken_row_is_rejected_for_the_reason_on_the_page(ingested: Path) -> None:
    rejected = Counter(
        re.sub(r"^[1-3] columns? ", "1 column ", re.sub(r"U\+\w+", "U+0000", reason))
        for reason in column(ingested / "rejected", "reason")
    )
    assert set(rejected.values()) == {10} and len(rejected) == 8
    assert [reason for reason in rejected if f"`{reason}`" not in PAGE] == []
    assert len(column(ingested, "id")) + rejected.total() == 10_160
    assert "10,160 rows" in PAGE


def test_poor_rows_are_kept(ingested: Path) -> None:
    sides = zip(column(ingested, "source"), column(ingested, "reference"), strict=True)
    kinds: Counter[str] = Counter()
    for czech, english in sides:
        if czech == english:
            kinds["numbers" if re.fullmatch(r"[\d ]+", czech) else "untranslated"] += 1
        elif re.search(r"\d", english):
            kinds["boilerplate"] += 1
    assert kinds == {"numbers": 20, "untranslated": 20, "boilerplate": 20}


def test_phrases_and_sizes_are_those_on_the_page() -> None:
    with gzip.open(PHRASES) as lines:
        phrases = sum(1 for _ in lines)
    assert f"{phrases:,} pairs of English phrases" in PAGE
    for files in ("czeng16/*.gz", "phrases.tsv.gz", "similarity/**/*.tsv"):
        assert f"| {sum(path.stat().st_size for path in SAMPLE.glob(files)):,} |" in PAGE


def test_labelled_sentences_are_new(ingested: Path) -> None:
    sets = {data.name: data for data in read_sts(SIMILARITY)}
    assert list(sets) == ["development", "test"]
    assert [data.name for data in read_sts(LABELLED)] == ["development"]
    texts = [{*data.first, *data.second} for data in sets.values()]
    assert [len(data.first) for data in sets.values()] == [280, 280]
    assert not texts[0] & texts[1]
    assert not (texts[0] | texts[1]) & set(column(ingested, "reference"))
