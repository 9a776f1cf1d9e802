"""The sample in `pipeline/sample` holds what its page lists, broken rows included."""

import re
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml

from paraloom.pipeline.cli import main
from tests.sample import SAMPLE, sample_config

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
        for reason in column(ingested / "_rejected", "reason")
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
