"""What a run folder records: run.json, `_stage.json` of each stage, and manifest.json of them."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from paraloom.beam_jobs.engine.launch import Result
from paraloom.beam_jobs.engine.shards import (
    DamagedError,
    Receipt,
    Saved,
    Shard,
    receipts,
    remove_orphans,
)
from paraloom.beam_jobs.runners.remote_jobs import RemoteJob
from paraloom.models.errors import UserError
from paraloom.models.files import STAGE_RECORD, digest
from paraloom.pipeline.cli import main
from paraloom.pipeline.commands.run.status import status
from paraloom.pipeline.config import Config, read_config
from paraloom.pipeline.run import make as run_module
from paraloom.pipeline.run.folder import as_made, current, outdated, read_run, recorded_config
from paraloom.pipeline.run.journal import Journal
from paraloom.pipeline.run.plan import plan
from paraloom.pipeline.run.records import (
    BucketRecord,
    PairsRecord,
    RunRecord,
    StageRecord,
    stage_record,
)
from paraloom.pipeline.run.run import Run
from paraloom.pipeline.run.stage import pairs_record, shards_are_valid
from paraloom.pipeline.stages import PAIR_STAGES, folder_of
from paraloom.pipeline.stages.resources.columns import ColumnsRecord
from tests.run_helpers import (
    ONE,
    Capsys,
    Patch,
    Runs,
    WriteConfig,
    again,
    changed_manifest,
    manifest,
    part_file,
    record_of,
    refusal,
    small_config,
    table,
    write_record,
)
from tests.shards import accepted


def config_of(folder: Path, **changes: Any) -> Config:
    return Config.of(small_config(folder / "run", "a.tsv", **changes))


def test_counts_of_pairs_do_not_hang_on_an_imported_module(monkeypatch: Patch) -> None:
    monkeypatch.setattr(StageRecord, "classes", {})  # as in a command that imports no stage
    for name in (*PAIR_STAGES, "rounds/2/score"):
        record = stage_record(name, {"rows_in": 3, "rejected": {"why": 1}, "other": 5})
        assert isinstance(record, PairsRecord) and record.rejected == {"why": 1}
        assert record.json_values()["other"] == 5
    assert type(stage_record("nmt", {})) is StageRecord


def test_records_have_the_type_of_their_stage() -> None:
    stages: dict[str, Any] = {
        "sample": {"key": "a", "digest": "b", "counts": {"pairs": 9}},
        "nmt": {"training": {"bleu": 31.5, "seed": 1}, "seconds": 2.5, "digest": "c"},
        "bucket": {"deciles": {"s": {"rows": [3], "lowest": [None], "highest": [0.5]}}},
    }
    record = record_of({"stages": stages})
    nmt, bucket = record.stages["nmt"], record.find(BucketRecord)
    assert record.bleu == 31.5 and nmt.seconds == 2.5
    assert bucket is not None and bucket.deciles["s"].lowest == [None]
    assert record.find(PairsRecord, "score") is None
    assert type(record.stages["sample"]) is StageRecord
    # Fields that are not known stay, none is added.
    assert record.roll_up()["stages"]["sample"] == stages["sample"]


def test_the_manifest_is_made_again_from_the_records_of_stages(a_run: Path, runs: Runs) -> None:
    assert runs("select", a_run) == []
    before = manifest(a_run)
    (a_run / "run/manifest.json").unlink()
    assert runs("select", a_run) == []
    assert manifest(a_run) == before
    assert list(before["stages"]) == before["wanted"] == before["planned"][:5]
    for name, record in before["stages"].items():
        own = json.loads((a_run / "run" / folder_of(name) / STAGE_RECORD).read_text())
        assert own.items() >= record.items()
        assert own["config"]["seed"] == 1 and own["versions"] == before["versions"]
        assert not record.keys() & {"config", "versions", "reads", "inputs"}


@pytest.mark.parametrize("harm", ["", "{", "[]", '{"key": "another"}', None])
def test_only_a_record_says_a_stage_is_finished(a_run: Path, runs: Runs, harm: str | None) -> None:
    """A stage without one, or with another key in it, is made again; the manifest says nothing."""
    path = a_run / "run/score" / STAGE_RECORD
    path.unlink() if harm is None else path.write_text(harm)
    assert runs("select", a_run) == ["score"]
    assert runs("select", a_run) == []


def test_readers_of_data_sets_leave_the_record_out(a_run: Path) -> None:
    for stage in ("score", "select"):
        folder = a_run / "run" / folder_of(stage)
        assert (folder / STAGE_RECORD).exists()
        assert ds.dataset(folder, format="parquet").count_rows() > 0
        before = digest(folder)
        (folder / STAGE_RECORD).write_text("{}")
        assert digest(folder) == before


def test_what_was_made_from_a_result_that_is_gone_is_not_finished(a_run: Path) -> None:
    run = str(a_run / "run")
    with changed_manifest(a_run) as values:
        values["stages"]["score"]["digest"] = "another"
    assert list(read_run(run).stages) == ["ingest", "back_translate", "score"]
    with changed_manifest(a_run) as values:
        values["under_way"] = {"stage": "back_translate", "since": 1}
    assert list(read_run(run).stages) == ["ingest"]
    with changed_manifest(a_run) as values:  # its files were removed to save room
        del values["under_way"]
        values["stages"].pop("back_translate", None)
    assert "ingest" in read_run(run).stages


def test_a_stage_of_another_configuration_has_it_in_the_manifest(tmp_path: Path) -> None:
    values = {
        "config": {**small_config(tmp_path / "run", "a.tsv"), "seed": 2},
        "versions": {"python": "3"},
        "outdated": ["select"],
        "stages": {
            "ingest": {"digest": "i", "versions": {"python": "3"}},
            "select": {
                "versions": {"python": "1"},
                "config": config_of(tmp_path).model_dump(mode="json"),
                "reads": {"bucket": "b"},
            },
        },
    }
    write_record(tmp_path / "run", values)
    found = manifest(tmp_path)["stages"]
    assert found["ingest"] == {"digest": "i"}
    assert found["select"]["config"]["seed"] == 1
    assert found["select"]["versions"] == {"python": "1"}
    assert "outdated" not in manifest(tmp_path)
    record = read_run(str(tmp_path / "run"))
    assert list(current(record).stages) == ["ingest"]
    made = as_made(record)
    assert (made.config.seed, made.versions) == (1, {"python": "1"})
    assert list(made.stages) == ["ingest", "select"]


def test_jobs_on_a_service_are_kept_while_they_run_and_afterwards(tmp_path: Path) -> None:
    job = RemoteJob(name="paraloom-idf-1", id="7", address="https://console/7")
    config = config_of(tmp_path)
    run = Run.open(config)
    step, journal = plan(run)[0], Journal(run)
    journal.begin(config, [], [], [])
    journal.submitted(job)  # of no stage
    journal.start(step)
    other = RemoteJob(name="another", id="8", address="")
    for each in (job, other):
        journal.submitted(each)
    under_way = read_run(config.run).under_way
    assert under_way is not None and under_way.jobs == [job, other]
    journal.finish(step, PairsRecord(key="k", digest="d", rows_in=3))
    jobs = [job.model_dump(), other.model_dump()]
    ingest = {"key": "k", "digest": "d", "rows_in": 3, "jobs": jobs}
    assert manifest(tmp_path)["stages"] == {"ingest": ingest}
    assert "under_way" not in manifest(tmp_path)
    journal.confirm(step)
    assert read_run(config.run).stages["ingest"].jobs == [job, other]
    journal.start(step)  # made again: its record goes before the work begins
    assert not (tmp_path / "run/ingest" / STAGE_RECORD).exists()
    assert (run.records, manifest(tmp_path)["stages"]) == ({}, {})


def test_a_stage_is_outdated_until_it_is_made_or_found_to_be_right(tmp_path: Path) -> None:
    config = config_of(tmp_path, nmt={"model": "m"})
    run = Run.open(config)
    steps, journal = plan(run)[:3], Journal(run)
    for step in steps:
        journal.finish(step, PairsRecord(digest=step.path))
    journal.begin(config, [step.path for step in steps], [], [step.path for step in steps])
    journal.confirm(steps[0])
    journal.start(steps[1])
    assert read_run(config.run).outdated == sorted(step.path for step in steps[1:])
    journal.finish(steps[1], PairsRecord(digest=steps[1].path))
    record = read_run(config.run)
    assert record.outdated == [steps[2].path]
    assert [*current(record).stages] == [step.path for step in steps[:2]]


@pytest.mark.parametrize("text", ["[]", "{", '{"config": {"run": 3, "embeddings": {}}}', "{}"])
def test_what_is_no_record_of_a_run_is_one_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "run.json"
    path.write_text(text)
    with pytest.raises(UserError, match="not the record of a run") as caught:
        read_run(str(tmp_path))
    assert str(caught.value).startswith(f"{path}: ") and "\n" not in str(caught.value)


def test_the_papers_tasks_keep_no_run_from_being_read(tmp_path: Path, monkeypatch: Patch) -> None:
    from paraloom.models.embeddings import options

    values = config_of(tmp_path).model_dump(mode="json")
    section = {**values["embeddings"], "task": "similarity", "cell": "torch", "similarity": {}}
    monkeypatch.setattr(options, "KNOWN", [options.EmbeddingOptions])
    monkeypatch.setattr("paraloom.pipeline.run.folder.KNOWN", [options.EmbeddingOptions])
    assert recorded_config({**values, "embeddings": section}).seed == 1
    section = {**values["embeddings"], "cell": "torch"}
    assert recorded_config({**values, "embeddings": section}) == Config.of(values)


def test_the_record_of_a_derived_run_has_plain_names() -> None:
    names = ["ingest", "score", "bucket", "select", "embeddings", "rounds/1/select"]
    names += ["rounds/2/score", "rounds/2/bucket", "rounds/2/select", "rounds/3/select"]
    score = "trigram_overlap"
    record = record_of(
        {
            "config": {
                "score": {"scorers": [score]},
                "select": {"by": score, "labelled": "x"},
                "loop": {"rounds": 3},
            },
            "stages": {name: {"digest": name} for name in names},
        }
    )
    second = record.derived("rounds/2")
    found = {name: stage.digest for name, stage in second.stages.items()}
    own = {name: f"rounds/2/{name}" for name in ("score", "bucket", "select")}
    assert found == {"ingest": "ingest", **own}
    assert (second.path("bucket"), second.path("ingest")) == ("rounds/2/bucket", "ingest")
    assert second.config.select.by == "encoder_similarity"
    assert second.config.score.names == [score, "encoder_similarity"]
    first = record.derived("rounds/1")
    assert first.config == record.config
    assert (first.path("bucket"), first.path("select")) == ("bucket", "rounds/1/select")
    assert list(record.best.stages) == ["ingest", "score", "bucket", "select", "embeddings"]
    record.stages["select"] = PairsRecord(round=2)
    assert record.best.stages == second.stages
    del record.stages["select"]  # `train-embeddings` copies only the encoder of the best round
    record.stages["embeddings"] = StageRecord(round=2)
    assert record.best.path("select") == "rounds/2/select"
    assert RunRecord().best.stages == {}


def test_a_stage_that_the_configuration_has_no_more_is_not_outdated() -> None:
    """Else `status` would show what no command makes again."""
    stages = {"idf": StageRecord(), "score": StageRecord()}
    record = RunRecord(stages=stages, outdated=[*stages])
    assert outdated(record) == ["idf", "score"]
    assert outdated(record.model_copy(update={"planned": ["score"]})) == ["score"]


CHANGED = ["--set", "select.deciles=[0]", "--set", "select.size=5"]
PUBLISH = ["--license", "cc-by-4.0", "--held-out", "0"]


def said(capsys: Capsys) -> str:
    captured = capsys.readouterr()
    return " ".join((captured.out + captured.err).split())


@pytest.mark.parametrize(
    ("stage", "changes"),
    [("score", CHANGED), ("ingest", ["--set", "nmt.candidates=2"])],
    ids=["selection", "candidates"],
)
def test_a_corpus_of_an_earlier_configuration(
    a_run: Path, finished_run: Path, capsys: Capsys, stage: str, changes: list[str]
) -> None:
    folder = str(a_run / "run")
    card = a_run / "run/README.md"
    assert again("select", a_run) == 0
    before = read_run(folder)
    text = card.read_text()
    capsys.readouterr()
    assert again(stage, a_run, *changes) == 0

    states = {each.name: each.state for each in status(folder)}
    assert states["ingest"] == "finished" and states["select"] == "outdated"
    capsys.readouterr()
    assert main(["publish", folder, *PUBLISH]) == 2
    refused = said(capsys)
    assert "select is outdated, because an earlier configuration made it" in refused
    assert "`paraloom select --config FILE` makes it again" in refused
    assert not (a_run / "run/release").exists()
    assert main(["explain", folder, table(a_run, "corpus", "id")["id"][0].as_py()]) == 0
    explained = said(capsys)
    assert "in the corpus: deciles 2–6 of `trigram_overlap`" in explained
    assert "an earlier configuration made these outdated stages: " in explained
    assert main(["compare", folder, str(finished_run / "run"), *ONE]) == 1
    assert "these stages of an earlier configuration are not compared: " in said(capsys)
    assert as_made(read_run(folder)).config == before.config
    assert card.read_text() == text

    assert again("select", a_run) == 0  # as at first: nothing is made again
    captured = capsys.readouterr()
    assert captured.out.count("cached") == 5
    assert outdated(read_run(folder)) == []
    assert main(["publish", folder, *PUBLISH]) == 0


def test_a_process_that_is_killed_as_it_begins(
    a_run: Path, write_config: WriteConfig, monkeypatch: Patch
) -> None:
    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    folder = str(a_run / "run")
    assert [each.state for each in status(folder)] == ["finished"] * 5
    write_config(a_run, score={"scorers": ["trigram_overlap"]})
    with monkeypatch.context() as patch:
        patch.setattr(run_module, "_make_stages", killed)
        assert again("select", a_run) == 130
    states = [each.state for each in status(folder)]
    assert states == ["finished", "finished", "waiting", "waiting", "waiting"]
    assert again("select", a_run) == 0
    assert [each.state for each in status(folder)] == ["finished"] * 5


@pytest.mark.parametrize("command", ["select", "status", "explain", "compare", "publish"])
def test_a_run_of_an_earlier_version_is_one_line(a_run: Path, capsys: Capsys, command: str) -> None:
    (a_run / "run/run.json").unlink()
    run = str(a_run / "run")
    more = {"explain": [run, "id"], "compare": [run, run], "status": [run], "publish": [run]}
    arguments = more.get(command, ["--config", str(a_run / "config.yaml")])
    line = refusal(capsys, command, *arguments)
    said = "an earlier version of Paraloom made this run; name another folder in `run`, and "
    said += "run the configuration again"
    assert line == f"paraloom: {run}: {said}"


def test_the_advice_for_a_damaged_record_helps(a_run: Path, capsys: Capsys) -> None:
    (a_run / "run/run.json").write_text("{")
    line = refusal(capsys, "select", "--config", str(a_run / "config.yaml"))
    assert "remove this file and manifest.json" in line
    for name in ("run.json", "manifest.json"):
        (a_run / "run" / name).unlink()
    assert again("select", a_run) == 0
    assert capsys.readouterr().out.count("cached") == 5


def receipt(number: int, rejected: dict[str, int], rows: int = 10) -> Receipt:
    return Receipt(
        name=f"part-{number}",
        key="k",
        rows_in=rows + sum(rejected.values()),
        shards=(Shard(f"part-{number}.parquet", rows - 1, f"{number}", 9), Shard("x", 1, "y", 9)),
        rejected=rejected,
        seconds=1.5,
        peak_memory=100 - number,
        numbers={"saved": {"input.where": {"rows": number, "tokens": 10 * number}}},
    )


def record(*receipts: Receipt) -> PairsRecord:
    return pairs_record(PairsRecord, Result(receipts=receipts, metrics={"rows": 1}))


def run_of(folder: Path, *changes: str) -> Run:
    path = folder / "config.yaml"
    path.write_text(json.dumps(small_config(folder / "run", "a.tsv")))
    return Run(read_config(path, list(changes)))


def test_the_record_is_that_of_all_receipts() -> None:
    rare, often = {"rare": 1, "often": 2}, {"often": 7}
    found = record(receipt(1, rare), receipt(2, often), receipt(3, {}))
    assert (found.rows_in, found.rows_out, found.rows_rejected) == (40, 30, 10)
    assert list(found.rejected.items()) == [("often", 9), ("rare", 1)]
    assert (found.shards, found.worker_seconds, found.peak_memory) == (6, 4.5, 99)
    assert found.saved == {"input.where": Saved(rows=6, tokens=60)}
    assert found.metrics == {"rows": 1}
    lost = receipt(1, rare).model_copy(update={"rows_in": 14})
    with pytest.raises(RuntimeError, match="14 rows in, 10 out"):
        record(lost)


def test_the_digest_is_of_the_accepted_rows_in_their_order() -> None:
    one, two = receipt(1, {}), receipt(2, {})
    other = one.model_copy(update={"shards": (Shard("part-1.parquet", 10, "other", 9),)})
    slower = one.model_copy(update={"seconds": 9.0, "rejected": {"a": 0}})
    digests = [record(*of).digest for of in ((one, two), (two, one), (other, two), (one,))]
    assert len(set(digests)) == 4
    assert record(slower, two).digest == digests[0]


def test_files_are_valid_if_they_are_there_and_those_of_the_record(tmp_path: Path) -> None:
    run, folder = run_of(tmp_path), f"{tmp_path}/run/ingest"

    def write(rows: list[int]) -> None:
        (tmp_path / "run/ingest/_receipts/part-0.json").unlink(missing_ok=True)
        accepted(folder, "part-0", pa.table({"n": rows}))
        remove_orphans(folder, receipts(folder))

    write([1, 2])
    result = Result(receipts=tuple(receipts(folder)))
    run.records["ingest"] = pairs_record(PairsRecord, result)
    assert shards_are_valid(run, "ingest")
    write([1, 3])
    assert not shards_are_valid(run, "ingest")
    write([1, 2])
    assert shards_are_valid(run, "ingest")
    (other := Path(folder, "part-0-12345678.parquet")).touch()  # of an attempt that ended late
    assert not shards_are_valid(run, "ingest")
    other.unlink()
    part_file(tmp_path / "run/ingest", "part-0").unlink()
    assert not shards_are_valid(run, "ingest")


def test_local_copies_are_of_the_present_part_files(tmp_path: Path, monkeypatch: Patch) -> None:
    run, folder = run_of(tmp_path), f"{tmp_path}/run/ingest"

    def write(rows: list[int]) -> Path:
        (shard,) = accepted(folder, "part-0", pa.table({"n": rows}), str(rows)).shards
        return Path(shard.path)

    first = write([1, 2])
    assert run.local_files("ingest") == [str(first)]  # the file is here itself
    with monkeypatch.context() as patch:  # as of a run in object storage
        patch.setattr(Run, "local_folder", lambda self, stage: tmp_path / "here" / stage)
        for rows in ([1, 2], [1, 3]):
            part = write(rows)
            (path,) = run.local_files("ingest")
            assert path == f"{tmp_path}/here/ingest/{part.name}"
            assert Path(path).read_bytes() == part.read_bytes()
    part.write_bytes(b"damaged")
    with pytest.raises(DamagedError):
        run.local_files("ingest")


def test_criteria_are_those_of_the_configuration(tmp_path: Path) -> None:
    select = ["max_tokens=5", "size=6", "per_source=best", "max_overlap=0.25"]
    run = run_of(tmp_path, "seed=7", "input.target_language=de", *(f"select.{s}" for s in select))
    found = run.criteria("trigram_overlap", [3, 1, 3])
    assert (found.by, found.deciles) == ("trigram_overlap", (1, 3))
    assert (found.max_tokens, found.size, found.seed) == (5, 6, 7)
    assert (found.per_source, found.max_overlap, found.language) == ("best", 0.25, "de")
    assert run.criteria().deciles is None
    assert run.criteria("x", []).deciles == ()


def test_a_record_that_was_read_before_its_class_was_imported() -> None:
    early = StageRecord.model_validate({"rows": {"kiwi": 3}, "digests": {"kiwi": "a"}})
    record = RunRecord()
    record.stages = {"columns": early}
    found = record.find(ColumnsRecord)
    assert found and found.digests == {"kiwi": "a"}
    assert record.find(PairsRecord, "columns") is None
