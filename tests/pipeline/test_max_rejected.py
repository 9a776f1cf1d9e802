"""`max_rejected` as users meet it: one line, and the run continues once the key is raised."""

from pathlib import Path
from typing import Any

import yaml

from tests.run_helpers import Capsys, again, part_file


def test_a_stage_that_rejects_too_much_stops_the_run(tmp_path: Path, capsys: Capsys) -> None:
    (tmp_path / "in.tsv").write_text("Pes.\tA dog.\n" + "no tab\n" * 3)
    config: dict[str, Any] = {
        "run": str(tmp_path / "run"),
        "input": {"format": "tsv", "paths": [str(tmp_path / "in.tsv")]},
        "score": {"scorers": ["trigram_overlap"]},
        "select": {"by": "trigram_overlap"},
    }

    def ingest(**more: float) -> int:
        (tmp_path / "config.yaml").write_text(yaml.safe_dump({**config, **more}))
        return again("ingest", tmp_path)

    assert ingest() == 2
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("paraloom")]
    rejected = part_file(tmp_path / "run/ingest/_rejected", "part-00000-00000")
    assert "paraloom: ingest: 3 of 4 rows are rejected (75.0%)" in lines[0]
    assert f"1 column instead of 2, see {rejected}; is input.format right?" in lines[0]
    receipt = tmp_path / "run/ingest/_receipts/part-00000.json"
    made = receipt.read_bytes()
    assert ingest(max_rejected=0.75) == 0
    assert receipt.read_bytes() == made
