"""The sample in `pipeline/sample` holds what its page lists, broken rows included."""

import re
from collections import Counter
from pathlib import Path

import pytest
import yaml

from tests.run_helpers import again, table
from tests.sample import SAMPLE, sample_config

PAGE = (SAMPLE / "README.md").read_text("utf-8")


@pytest.fixture(scope="module")
def ingested(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run of which `ingest` has read the sample."""
    folder = tmp_path_factory.mktemp("sample")
    config = sample_config(run=str(folder / "run"))
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    assert again("ingest", folder) == 0
    return folder


def test_every_broken_row_is_rejected_for_the_reason_on_the_page(ingested: Path) -> None:
    rejected = Counter(
        re.sub(r"^[1-3] columns? ", "1 column ", re.sub(r"U\+\w+", "U+0000", reason))
        for reason in table(ingested, "ingest/_rejected")["reason"].to_pylist()
    )
    assert set(rejected.values()) == {10} and len(rejected) == 8
    assert [reason for reason in rejected if f"`{reason}`" not in PAGE] == []
    assert table(ingested, "ingest").num_rows + rejected.total() == 10_160
    assert "10,160 rows" in PAGE


def test_poor_rows_are_kept(ingested: Path) -> None:
    rows = table(ingested, "ingest", "source", "reference").to_pylist()
    kinds: Counter[str] = Counter()
    for czech, english in (row.values() for row in rows):
        if czech == english:
            kinds["numbers" if re.fullmatch(r"[\d ]+", czech) else "untranslated"] += 1
        elif re.search(r"\d", english):
            kinds["boilerplate"] += 1
    assert kinds == {"numbers": 20, "untranslated": 20, "boilerplate": 20}
