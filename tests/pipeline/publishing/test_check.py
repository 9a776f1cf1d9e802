"""A release is read again: what its two configurations have to do with each other."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.publishing.files import write_configurations
from tests.pipeline.publishing.test_release import WRITE, publish, said


def test_a_row_more_in_the_pairs_is_found(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def repeat_the_last_row(*arguments: Any) -> Any:
        found, total = write_configurations(*arguments)
        path = arguments[0] / found[1].splits[0].files[-1]
        rows = pq.read_table(path)
        pq.write_table(pa.concat_tables([rows, rows[-1:]]), path)
        return found, total

    monkeypatch.setattr(WRITE, repeat_the_last_row)
    assert publish(run) == 2
    assert "has more rows than the configuration full" in said(capsys)
    assert not (run / "release").exists()
