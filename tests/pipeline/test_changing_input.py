"""An input that changes between its checksum and its reading."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

from paraloom.beam_jobs.io import storage
from tests.run_helpers import again


def test_the_rows_are_those_of_the_recorded_digest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = tmp_path / "in.tsv"
    text.write_text("pes\tdog\n" * 5)
    config: dict[str, Any] = {
        "run": str(tmp_path / "run"),
        "input": {"format": "tsv", "paths": [str(text)]},
        "score": {"scorers": ["trigram_overlap"]},
        "select": {"by": "trigram_overlap"},
    }
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(config))
    digest = storage.file_digest

    def digest_then_change(path: str) -> str:
        found = digest(path)
        text.write_text("kůň\thorse\n" * 5)
        return found

    with monkeypatch.context() as patch:
        patch.setattr(storage, "file_digest", digest_then_change)
        assert again("ingest", tmp_path) == 2
    assert capsys.readouterr().err.splitlines()[-1] == (
        f"paraloom: {text}: changed while the run read it; the same command reads it from the "
        "beginning"
    )
    assert again("ingest", tmp_path) == 0
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert [file["sha256"] for file in manifest["inputs"]] == [digest(str(text))]
    (part,) = (tmp_path / "run" / "ingest").glob("part-*.parquet")
    assert pq.read_table(part)["source"].to_pylist() == ["kůň"] * 5
