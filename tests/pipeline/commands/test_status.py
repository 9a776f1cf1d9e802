import json
import os
import shutil
import signal
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paraloom.beam_jobs.io import storage
from paraloom.beam_jobs.io.shards import Receipt, receipts, write_receipt
from paraloom.pipeline.cli import main
from paraloom.pipeline.commands.run.status import busy_seconds, duration, status, translation_hours
from paraloom.pipeline.manifest import locked
from tests.run_helpers import STAGES, again, popen

NOW = 1_900_000_000.0


def told(folder: Path, capsys: pytest.CaptureFixture[str], *more: str) -> tuple[int, str, str]:
    code = main(["status", str(folder / "run"), *more])
    captured = capsys.readouterr()
    return code, " ".join(captured.out.split()), captured.err.strip()


@pytest.fixture
def under_way(a_run: Path) -> Path:
    """Back-translation under way for 60 s: 4 of 6 shards, two of them before it was taken up."""
    run = a_run / "run"
    content = json.loads((run / "manifest.json").read_text())
    for stage in STAGES[1:]:
        del content["stages"][stage]
    content["under_way"] = {"stage": "back_translate", "since": NOW - 60}
    (run / "manifest.json").write_text(json.dumps(content))
    found = receipts(str(run / "back_translate"))
    ended = [NOW - 500, NOW - 400, NOW - 30, NOW - 10]
    for receipt, when, worker in zip(found, ended, ["a:1", "a:1", "b:1", "b:2"], strict=False):
        changed = receipt.model_copy(update={"ended": when, "seconds": 36.0, "worker": worker})
        write_receipt(str(run / "back_translate"), changed)
    for receipt in found[4:]:
        (run / "back_translate" / "receipts" / f"{receipt.name}.json").unlink()
    return a_run


def test_a_stage_under_way(under_way: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with locked(str(under_way / "run")):
        found = status(str(under_way / "run"), NOW)
        code, out, _ = told(under_way, capsys)
    assert [stage.state for stage in found.stages] == [
        "finished", "under way", "waiting", "waiting", "waiting",
    ]  # fmt: skip
    stage = found.stages[1]
    assert found.is_running
    assert found.last_shard_age == 10
    assert (stage.shards, stage.rows) == ((4, 6), (79, 119))
    assert stage.seconds == 60
    assert stage.rate == pytest.approx(40 / 60)  # of this time alone
    assert stage.remaining == pytest.approx(40 / (40 / 60))
    assert stage.rejected == {}
    assert code == 0
    assert "run: back_translate for" in out
    assert "│ 4 of 6 │ 79 of 119 │ 0 │" in out


def test_a_clock_that_was_set_back(under_way: Path) -> None:
    run = str(under_way / "run")
    with locked(run):
        found = status(run, NOW - 3600)
    assert found.last_shard_age == 0
    stage = found.stages[1]
    assert (stage.seconds, stage.rate, stage.remaining) == (0, None, None)


@pytest.mark.parametrize("stage", ["pivot", "ingest", "score", "nmt", "rounds/3/corpus", "other"])
@pytest.mark.parametrize("since", [0, -1e300, 1e300])
def test_a_hand_made_manifest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], stage: str, since: float
) -> None:
    content = {
        "config": {},
        "wanted": [stage],
        "stages": {},
        "under_way": {"stage": stage, "since": since},
    }
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "manifest.json").write_text(json.dumps(content))
    code, out, err = told(tmp_path, capsys, "--gpu-hour", "1")
    assert (code, err) == (0, "")
    assert f"stopped in {stage}" in out


def test_a_run_whose_process_is_gone_is_stopped(
    under_way: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = status(str(under_way / "run"), NOW)
    assert found.stages[1].state == "stopped"
    assert found.stages[1].remaining is None
    assert found.stages[1].seconds == 50  # to the last shard
    _, out, _ = told(under_way, capsys)
    assert "stopped in back_translate; the same command resumes it" in out


def test_the_page_of_a_job_on_a_service(
    under_way: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of the one at work, though its launcher is gone, and of the last of a finished stage."""
    path = under_way / "run" / "manifest.json"
    content = json.loads(path.read_text())
    jobs = [{"name": "x", "id": str(i), "address": f"https://console/{i}"} for i in range(3)]
    content["stages"]["ingest"]["jobs"] = jobs[:2]
    content["under_way"]["jobs"] = jobs[2:]
    path.write_text(json.dumps(content))
    _, out, _ = told(under_way, capsys)
    assert "ingest: https://console/1" in out
    assert "back_translate: https://console/2" in out
    assert "https://console/0" not in out


def test_the_rate_is_that_of_the_last_shards(
    under_way: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("paraloom.pipeline.commands.run.status._RECENT", 1)
    with locked(str(under_way / "run")):
        stage = status(str(under_way / "run"), NOW).stages[1]
    assert stage.rate == pytest.approx(20 / 30)


def test_cost_so_far_and_to_the_end(under_way: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = translation_hours(str(under_way / "run"))
    assert found and found.remaining
    assert found.workers == 3
    assert found.spent == pytest.approx(4 * 36 / 3600)
    assert found.remaining == pytest.approx(found.spent * 40 / 79)
    _, out, _ = told(under_way, capsys, "--gpu-hour", "100")
    assert "3 workers, 0.04 hours so far (4.00 at 100.00 an hour)" in out
    assert "0.02 more to the end (6.03 in all)" in out


def test_cost_of_a_finished_run(finished_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = translation_hours(str(finished_run / "run"))
    assert found
    assert found.remaining == 0
    spent = sum(r.seconds for r in receipts(str(finished_run / "run" / "back_translate")))
    assert 0 < found.spent <= spent / 3600 + 1e-6  # receipts are rounded to milliseconds
    _, out, _ = told(finished_run, capsys, "--gpu-hour", "2")
    assert "1 workers" in out
    assert "more to the end" not in out


def test_before_the_first_shard(under_way: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree(under_way / "run" / "back_translate")
    with locked(str(under_way / "run")):
        found = status(str(under_way / "run"), NOW)
        _, out, _ = told(under_way, capsys, "--gpu-hour", "2")
    assert found.stages[1].rows == (0, 119)
    assert (found.stages[1].rate, found.stages[1].remaining, found.last_shard_age) == (None,) * 3
    assert "no shard finished yet, so nothing to count" in out


@pytest.mark.parametrize("text", ["", "{", '{"name": "x"}'])
def test_a_receipt_that_cannot_be_read_is_a_shard_to_do(under_way: Path, text: str) -> None:
    receipt = min((under_way / "run" / "back_translate" / "receipts").iterdir())
    receipt.write_text(text)
    assert status(str(under_way / "run"), NOW).stages[1].shards == (3, 6)


def test_ingest_under_way_shows_its_part_files(a_run: Path) -> None:
    path = a_run / "run" / "manifest.json"
    content = json.loads(path.read_text())
    content |= {"stages": {}, "under_way": {"stage": "ingest", "since": NOW - 5}}
    path.write_text(json.dumps(content))
    stage = status(str(a_run / "run"), NOW).stages[0]
    assert stage.shards == (6, None)
    assert stage.rate is None


def test_a_stage_of_a_further_round(a_run: Path) -> None:
    run = a_run / "run"
    content = json.loads((run / "manifest.json").read_text())
    content["wanted"] += ["rounds/2/score", "rounds/2/bucket"]
    content["under_way"] = {"stage": "rounds/2/score", "since": NOW - 5}
    (run / "manifest.json").write_text(json.dumps(content))
    shutil.copytree(run / "score", run / "rounds/2/score")
    max((run / "rounds/2/score/receipts").iterdir()).unlink()
    _, _, _, _, _, stage, last = status(str(run), NOW).stages
    assert (stage.shards, stage.rows) == ((5, 6), (98, 118))
    assert last.state == "waiting"


def test_a_run_seen_from_another_process(a_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in STAGES[1:]:
        shutil.rmtree(a_run / "run" / name)
    process = popen("select", a_run)
    try:
        while not any((a_run / "run" / "back_translate").glob("receipts/*.json")):
            assert process.poll() is None
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGSTOP)
        found = status(str(a_run / "run"))
        stage = found.stages[1]
        assert found.is_running
        assert (stage.name, stage.state) == ("back_translate", "under way")
        assert stage.rows[0] and 0 < stage.rows[0] <= 119 == stage.rows[1]
        assert found.last_shard_age is not None and stage.seconds
        assert 0 <= found.last_shard_age < stage.seconds < 600
        assert stage.rate and stage.rate > 0
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    assert status(str(a_run / "run")).stages[1].state == "stopped"
    assert again("select", a_run) == 0
    capsys.readouterr()
    assert {stage.state for stage in status(str(a_run / "run")).stages} == {"finished"}
    assert told(a_run, capsys)[1].startswith(f"{a_run}/run: finished")


def test_a_run_on_an_object_store(
    on_s3: tuple[str, list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    folder, options = on_s3
    assert main(["status", folder, "--gpu-hour", "36000", *options]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert out.startswith(f"{folder}: finished")
    assert "│ corpus │ finished │ 6 │ 118 │" in out
    assert "1 workers" in out
    content = json.loads(storage.read_bytes(f"{folder}/manifest.json"))
    content["under_way"] = {"stage": "score", "since": NOW}
    storage.write_bytes(f"{folder}/manifest.json", json.dumps(content).encode())
    found = status(folder, NOW + 9)
    assert found.is_running is None  # whoever is, is on another machine
    assert (found.stages[2].state, found.stages[2].shards) == ("under way", (6, 6))


def test_what_is_not_asked_for_does_not_wait(
    a_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert again("score", a_run, "--force") == 0
    capsys.readouterr()
    assert [stage.name for stage in status(str(a_run / "run")).stages] == list(STAGES[:3])


def test_a_folder_that_is_no_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, error = told(tmp_path, capsys)
    assert (code, error) == (2, f"paraloom: {tmp_path}/run: no run here: it has no manifest.json")
    assert list(tmp_path.iterdir()) == []


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(1, 9), st.sampled_from("ab"))))
def test_threads_of_a_worker_count_once(spans: list[tuple[int, int, str]]) -> None:
    made = [
        Receipt(name="", key="", rows_in=0, shards=(), rejected={}, seconds=length,
                ended=start + length, worker=worker)
        for start, length, worker in spans
    ]  # fmt: skip
    expected = {
        name: len({s for start, n, w in spans if w == name for s in range(start, start + n)})
        for name in {worker for _, _, worker in spans}
    }
    assert busy_seconds(made) == expected


def test_durations() -> None:
    spoken = [duration(s) for s in (None, 0, 12.3, 59.6, 754, 7384, 190_000)]
    assert spoken == ["", "0 s", "12 s", "1 min 00 s", "12 min 34 s", "2 h 03 min", "2 d 04 h"]


def test_brackets_in_a_path_are_no_markup(a_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = (a_run / "run").rename(a_run / "[red]x")
    assert main(["status", str(path)]) == 0
    assert "[red]x: finished" in "".join(capsys.readouterr().out.splitlines())


@pytest.mark.parametrize("name", ["manifest.json", ".lock", "corpus/receipts/part-00000.json"])
def test_pipes_in_a_run_from_elsewhere(
    a_run: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    path = a_run / "run" / name
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    code, _, err = told(a_run, capsys)
    if name == "manifest.json":
        assert err == f"paraloom: {path}: cannot be read (it is not a regular file)"
    assert code == (2 if name == "manifest.json" else 0)
