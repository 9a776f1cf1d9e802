"""manifest.json: typed records, as this version and others write them."""

import json
from pathlib import Path
from typing import Any

import pytest

from models.errors import UserError
from pipeline.manifest import Manifest
from pipeline.records import BucketRecord, IdfRecord, NmtRecord, PairsRecord, RunRecord, StageRecord

OLD: dict[str, Any] = {
    "config": {"run": "runs/x", "sample": {"pairs": 9}, "select": {"by": "auto", "later": [1]}},
    "versions": {"python": "3.11.7"},
    "stages": {
        "sample": {"key": "a", "digest": "b", "counts": {"pairs": 9}},
        "nmt": {"training": {"bleu": 31.5, "seed": 1}, "seconds": 2.5, "digest": "c"},
        "bucket": {
            "rows_in": 3,
            "deciles": {"s": {"rows": [3], "lowest": [None], "highest": [0.5]}},
        },
        "rounds/2/score": {"rows_in": 3, "rejected": {"s is not finite": 1}},
    },
}


def write(folder: Path, text: str) -> Path:
    path = folder / "manifest.json"
    path.write_text(text)
    return path


def test_a_manifest_of_another_version_is_read_and_written_unchanged(tmp_path: Path) -> None:
    path = write(tmp_path, json.dumps(OLD))
    manifest = Manifest(str(tmp_path))
    manifest.save()
    assert json.loads(path.read_text()) == OLD


def test_records_have_the_type_of_their_stage() -> None:
    record = RunRecord.model_validate(OLD)
    nmt, bucket = record.find(NmtRecord), record.find(BucketRecord)
    assert nmt is not None and nmt.training.bleu == 31.5 and nmt.seconds == 2.5
    assert bucket is not None and bucket.deciles["s"].lowest == [None]
    assert bucket.worker_seconds == 0  # earlier versions did not measure it
    score = record.find(PairsRecord, "rounds/2/score")
    assert score is not None and score.rejected == {"s is not finite": 1}
    assert record.find(PairsRecord, "score") is None
    assert type(record.stages["sample"]) is StageRecord
    assert record.config.select.by == "auto" and record.started


def test_a_finished_stage_ends_what_is_under_way(tmp_path: Path) -> None:
    manifest = Manifest(str(tmp_path))
    manifest.start("idf")
    assert "under_way" in json.loads((tmp_path / "manifest.json").read_text())
    manifest.finish("idf", IdfRecord(key="k", digest="d", words=3))
    assert json.loads((tmp_path / "manifest.json").read_text()) == {
        "stages": {"idf": {"key": "k", "digest": "d", "words": 3}}
    }


@pytest.mark.parametrize(
    "change",
    [
        {"stages": {"ingest": {"rows_in": "many"}}},
        {"stages": {"ingest": {"rows_in": 10**400}}},
        {"stages": {"ingest": {"rejected": {"a reason": -(10**400)}}}},
        {"stages": {"ingest": {"rejected": ["a"]}}},
        {"stages": {"rounds/2/bucket": {"deciles": {"s": 3}}}},
        {"stages": {"choice": {"chosen": {}}}},
        {"stages": {"nmt": {"digest": 3}}},
        {"config": []},
        {"config": {"select": {"deciles": "all"}}},
        {"inputs": [{"path": "x"}]},
        {"under_way": "nmt"},
        {"versions": 3},
        {"stages": {"../../victim/ingest": {}}},
        {"wanted": ["rounds/../../score"]},
        {"planned": ["/victim"]},
        {"under_way": {"stage": "score\n", "since": 0}},
    ],
)
def test_wrong_types_are_one_line(tmp_path: Path, change: dict[str, Any]) -> None:
    path = write(tmp_path, json.dumps({**OLD, **change}))
    with pytest.raises(UserError, match="not a manifest; remove the file") as caught:
        Manifest(str(tmp_path))
    assert str(caught.value).startswith(f"{path}: ") and "\n" not in str(caught.value)


def test_what_is_no_text_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_bytes(b"\xff\xfe{}")
    with pytest.raises(UserError, match="not a manifest"):
        Manifest(str(tmp_path))
