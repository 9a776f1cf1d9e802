"""manifest.json: typed records, as this version and others write them."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from paraloom.beam_jobs.runners.remote_jobs import RemoteJob
from paraloom.models.errors import UserError
from paraloom.pipeline.manifest import Manifest
from paraloom.pipeline.records import (
    BucketRecord,
    IdfRecord,
    NmtRecord,
    PairsRecord,
    RunRecord,
    StageRecord,
)
from tests.run_helpers import Patch

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
    assert record.config.select.by == "auto"


def of_run(name: str) -> Any:
    """A configuration, as `begin` reads it."""
    values = {"run": name}
    return SimpleNamespace(
        written=SimpleNamespace(recorded=lambda: values, by_names=lambda record: record)
    )


def test_finished_stages_keep_what_made_them(tmp_path: Path, monkeypatch: Patch) -> None:
    monkeypatch.setattr("paraloom.pipeline.manifest.versions", lambda: {"python": "3"})
    first, own = {"python": "1"}, {"python": "2"}
    inputs = [{"path": "p", "sha256": "s"}]
    stages = {"ingest": {"key": "i"}, "score": {"key": "s"}, "bucket": {"versions": own}}
    record = {"config": {"run": "1st"}, "versions": first, "inputs": inputs, "stages": stages}
    path = write(tmp_path, json.dumps(record))
    manifest = Manifest(str(tmp_path))
    for name in ("2nd", "3rd"):
        manifest.begin(of_run(name), ["ingest", "score"], ["score"], ["score", "bucket"])
        assert json.loads(path.read_text()) == {
            **{"planned": ["ingest", "score"], "wanted": ["score"], "inputs": inputs},
            **{"config": {"run": name}, "versions": {"python": "3"}},
            "stages": {
                "ingest": {"key": "i", "versions": first},
                "score": {"key": "s", "versions": first, "config": {"run": "1st"}},
                "bucket": {"versions": own, "config": {"run": "1st"}},
            },
        }
    score, before = manifest.stages["score"], path.stat().st_ino
    manifest.confirm("ingest")  # which is of this configuration already
    assert path.stat().st_ino == before
    manifest.confirm("score")
    assert json.loads(path.read_text())["stages"]["score"] == {"key": "s", "versions": first}
    assert score.config is not None  # a record that somebody has is not changed
    manifest.finish("idf", IdfRecord(key="c"))
    manifest.begin(of_run("4th"), [], [], [])
    assert json.loads(path.read_text())["stages"]["idf"] == {"key": "c"}  # of these versions


def test_what_is_forgotten_is_not_in_the_file_until_it_is_remembered(tmp_path: Path) -> None:
    write(tmp_path, json.dumps({"stages": {name: {"key": name} for name in "abc"}}))
    manifest = Manifest(str(tmp_path))
    taken = manifest.forget(["a", "c", "none"])
    assert taken == {"a": StageRecord(key="a"), "c": StageRecord(key="c")}
    assert list(Manifest(str(tmp_path)).stages) == ["b"]
    manifest.remember(taken)
    assert set(Manifest(str(tmp_path)).stages) == set("abc")


def test_jobs_on_a_service_are_kept_while_they_run_and_afterwards(tmp_path: Path) -> None:
    job = RemoteJob(name="paraloom-idf-1", id="7", address="https://console/7")
    manifest = Manifest(str(tmp_path))
    manifest.submitted(job)  # of no stage
    manifest.start("idf")
    other = RemoteJob(name="another", id="8", address="")
    for each in (job, other):
        manifest.submitted(each)
    under_way = Manifest(str(tmp_path)).record.under_way
    assert under_way is not None and under_way.jobs == [job, other]
    manifest.finish("idf", IdfRecord(key="k", digest="d", words=3))
    kept = json.loads((tmp_path / "manifest.json").read_text())
    jobs = [job.model_dump(), other.model_dump()]
    assert kept == {"stages": {"idf": {"key": "k", "digest": "d", "words": 3, "jobs": jobs}}}
    manifest.finish("idf", manifest.stages["idf"])  # confirmed by another command
    assert Manifest(str(tmp_path)).stages["idf"].jobs == [job, other]


@pytest.mark.parametrize(
    "text", [b"[]", json.dumps({**OLD, "config": {"select": {"deciles": "all"}}}).encode()]
)
def test_what_is_no_manifest_is_one_line(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "manifest.json"
    path.write_bytes(text)
    with pytest.raises(UserError, match="not a manifest; remove the file") as caught:
        Manifest(str(tmp_path))
    assert str(caught.value).startswith(f"{path}: ") and "\n" not in str(caught.value)
