import io
import os
import re
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from apache_beam.options.pipeline_options import DirectOptions, StandardOptions

from paraloom.beam_jobs import storage
from paraloom.beam_jobs.engine import launch as launching
from paraloom.beam_jobs.engine import rejections
from paraloom.beam_jobs.engine.launch import (
    Result,
    Work,
    beam_options,
    launch,
    run_pipeline,
)
from paraloom.beam_jobs.engine.options import parse_options
from paraloom.beam_jobs.engine.rejections import Limit, RejectionWatch, check_not_stopped
from paraloom.beam_jobs.engine.shards import (
    EARLIER,
    HASHES,
    Receipt,
    Unit,
    read_receipt,
    read_shard,
    receipts,
    units,
    write_receipt,
)
from paraloom.beam_jobs.engine.unit_dofn import UnitDoFn
from paraloom.beam_jobs.runners.remote_jobs import User
from paraloom.models.cpu import cores
from paraloom.models.errors import UserError
from paraloom.models.progress import meter
from tests.beam_jobs.runners.copying import copy, job, write
from tests.run_helpers import Capsys, Patch, part_file
from tests.shards import ONE, cut


@pytest.fixture
def work(tmp_path: Path) -> list[Unit]:
    return write(tmp_path, 3)


def test_receipts_come_in_the_order_of_the_units_with_the_counters(
    tmp_path: Path, work: list[Unit], capfd: Capsys
) -> None:
    result = copy(work, f"{tmp_path}/out")
    assert [r.name for r in result.receipts] == ["part-0", "part-1", "part-2"]
    assert result.metrics == {"rows": 9}
    assert "noise" not in capfd.readouterr().err
    assert "noise" in (tmp_path / "logs" / "out.log").read_text()


def test_a_finished_unit_is_not_worked_on_again(tmp_path: Path, work: list[Unit]) -> None:
    out = f"{tmp_path}/out"
    copy(work, out)
    before = {p: p.stat().st_mtime_ns for p in (tmp_path / "out").rglob("part-*")}
    assert copy(work, out, "bug").metrics == {}
    assert {p: p.stat().st_mtime_ns for p in (tmp_path / "out").rglob("part-*")} == before
    part_file(tmp_path / "out", "part-1").unlink()
    part_file(tmp_path / "out", "part-2").write_bytes(b"damaged")
    assert copy(work, out).metrics == {"rows": 6}


def test_receipts_with_another_key_are_set_aside_first(tmp_path: Path, work: list[Unit]) -> None:
    out = f"{tmp_path}/out"
    copy(work, out)
    first = read_receipt(out, "part-1")
    assert first is not None
    columns = {"columns": {"n": "key of n"}}
    write_receipt(out, first.model_copy(update={"numbers": columns}))
    changed = [replace(unit, key="k") if unit.index else unit for unit in work]
    with pytest.raises(KeyError):
        copy(changed, out, "bug")
    assert [receipt.name for receipt in receipts(out)] == ["part-0"]
    earlier = [read_receipt(out, unit.name, EARLIER) for unit in work]
    assert [found and found.numbers for found in earlier] == [None, columns, None]
    result = copy(changed, out)
    assert [receipt.key for receipt in result.receipts] == [unit.key for unit in changed]
    assert result.metrics == {"rows": 6}
    assert storage.names(f"{out}/{EARLIER}") == []
    copy(work[:1], out)  # the other units are no more
    left = set((tmp_path / "out").rglob("part-*"))
    assert left == {part_file(tmp_path / "out", "part-0"), tmp_path / "out/_receipts/part-0.json"}


def test_files_of_a_job_that_failed_do_not_accumulate(tmp_path: Path, work: list[Unit]) -> None:
    out, left = f"{tmp_path}/out", tmp_path / "out" / HASHES / "of-a-killed-job"
    left.parent.mkdir(parents=True)
    left.touch()
    with pytest.raises(KeyError):
        copy(work, out, "bug")
    assert not left.exists()


@pytest.mark.parametrize(("done", "rows"), [(None, 9), (lambda: 15, 15)])
def test_progress_counts_the_rows_of_finished_units(
    tmp_path: Path, work: list[Unit], monkeypatch: Patch, done: Any, rows: int
) -> None:
    out, seen = f"{tmp_path}/out", []

    def watch(work: Work, arguments: list[str]) -> dict[str, int]:
        run_pipeline(work.build, beam_options(arguments, processes=work.processes))
        seen.extend([work.processes, work.total, work.done(), work.finished()])
        return {}

    monkeypatch.setattr(launching, "watch_pipeline", watch)
    launch(**job(work, out, done=done), arguments=["--direct_num_workers", "5"])
    assert seen == [3, 9, rows, rows]  # no more processes than units


@pytest.mark.parametrize("workers", ["1", "2"])
def test_an_error_in_a_worker_is_one_line(tmp_path: Path, work: list[Unit], workers: str) -> None:
    out = f"{tmp_path}/out"
    with pytest.raises(UserError) as error:
        launch(**job(work, out, "user"), arguments=["--direct_num_workers", workers])
    line = rf"{tmp_path}/in/part-\d.parquet: something \[is\] wrong: {{it}}"
    assert re.fullmatch(line, str(error.value))


@pytest.mark.parametrize(
    ("fault", "message"),
    [("skip", "no receipt for part-1"), ("key", "no receipt"), ("short", "but 2 were read")],
)
def test_a_unit_that_is_not_accounted_for_ends_the_run(
    tmp_path: Path, work: list[Unit], fault: str, message: str
) -> None:
    out = f"{tmp_path}/out"
    with pytest.raises(RuntimeError, match=message):
        copy(work, out, fault)


def test_errors_are_logged_by_stage_and_the_terminal_is_back(tmp_path: Path, capfd: Capsys) -> None:
    for ending in ("", "/"):
        with pytest.raises(KeyError), launching.redirect_stderr(f"{tmp_path}/out{ending}"):
            os.write(2, f"ends in {ending!r}".encode())
            raise KeyError
        assert (tmp_path / "logs" / "out.log").read_text() == f"ends in {ending!r}"
    print("here again", file=sys.stderr, flush=True)
    assert capfd.readouterr().err == "here again\n"


def test_in_a_notebook_steps_keep_their_names(monkeypatch: Patch) -> None:
    monkeypatch.setattr("apache_beam.utils.interactive_utils.is_in_ipython", lambda: True)
    monkeypatch.setitem(sys.modules, "apache_beam.runners.interactive", None)  # no import of it
    assert run_pipeline(lambda root: root | beam.Create([1]), beam_options(ONE)) == {}
    with pytest.raises(ImportError):  # outside, Beam does as it did
        _ = beam.Pipeline() | beam.Create([1])


@pytest.mark.parametrize(
    ("arguments", "processes", "workers", "own"),
    [
        ([], None, cores(), cores() > 1),
        ([], 1, 1, cores() > 1),
        (["--direct_num_workers", "3"], None, 3, True),
        (["--direct_num_workers=3"], 2, 2, True),
        (["--direct_num_workers", "1"], None, 1, False),
        (["--direct_num_workers", "0"], None, cores(), cores() > 1),
        (["--runner", "FlinkRunner", "--direct_num_workers", "7"], 2, 7, False),
    ],
)
def test_workers_on_this_machine(
    arguments: list[str], processes: int | None, workers: int, own: bool
) -> None:
    """Options of the user go to Beam unchanged, if they name a runner."""
    options = beam_options(arguments, processes=processes)
    assert options.view_as(DirectOptions).direct_num_workers == workers
    assert (launching.default_runner(arguments) is not None) == own
    named = "FlinkRunner" if "--runner" in arguments else "FnApiRunner"
    assert options.view_as(StandardOptions).runner == named


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--direct_num_workers", "two"], "argument --direct_num_workers: invalid int value"),
        (["--direct_num_workers", "-1"], "--direct_num_workers -1: must be 0 or more"),
        (["--runner", "Nonsense"], "Unexpected pipeline runner: Nonsense"),
        (["--direct_num_worker=3"], "--direct_num_worker: .* did you mean --direct_num_workers"),
        (["--s3_secret_acess_key", "KEY"], "--s3_secret_acess_key: .* --s3_secret_access_key"),
        (["--direct_num_workers", "2", "3"], "3: no option takes this value"),
        (["--runner", "DataflowRunner", "--machin_type=KEY"], "--machin_type: no such option"),
    ],
)
def test_an_option_that_beam_refuses_or_would_ignore_is_one_line(
    tmp_path: Path, work: list[Unit], arguments: list[str], message: str
) -> None:
    with pytest.raises(UserError, match=f"^Beam options: .*{message}") as error:
        launch(**job(work, f"{tmp_path}/out"), arguments=arguments)
    assert "KEY" not in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--s3_region_name", "eu-central-1", "--s3_disable_ssl", "--experiments=a"],
        ["--runner=DataflowRunner", "--project", "p", "--sdk_container_image=i", "--no_auth"],
        ["--runner", "FlinkRunner", "--checkpointing_interval", "10000"],  # the job server's
    ],
)
def test_options_that_beam_or_its_job_server_knows(arguments: list[str]) -> None:
    parse_options(arguments)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Impatient(Terminal):
    def readline(self, size: int | None = -1, /) -> str:  # type: ignore[override]
        raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("option", "keyboard", "cancels"),
    [
        (["--on_interrupt=leave"], None, False),
        (["--on_interrupt=cancel"], None, True),
        ([], None, True),  # no terminal
        ([], Terminal("\n"), False),
        ([], Terminal("cancel\n"), True),
        ([], Impatient(), False),
        (["--on_interrupt=cancel"], Terminal("\n"), True),
    ],
)
def test_ctrl_c_leaves_a_job_elsewhere_or_cancels_it(
    option: list[str], keyboard: io.StringIO | None, cancels: bool, monkeypatch: Patch
) -> None:
    terminal = Terminal() if keyboard else io.StringIO()
    monkeypatch.setattr("sys.stdin", keyboard or io.StringIO())
    with meter("score", stream=terminal) as progress:
        assert User(parse_options(option), progress, terminal).cancels() == cancels
    asked = "Cancel the job, too? Otherwise it keeps running. [cancel/LEAVE]" in terminal.getvalue()
    assert asked == (keyboard is not None and not option)


@dataclass(eq=False)
class Odd(UnitDoFn):
    """Rejects odd numbers, and all of the shards that are named."""

    bad: tuple[str, ...] = ()
    seconds_each: float = 0.0

    def make(self, unit: Unit) -> Receipt:
        time.sleep(self.seconds_each)
        table = read_shard(unit.shard)
        odd = pc.equal(pc.bit_wise_and(table["n"], 1), 1)
        if unit.name in self.bad:
            odd = pa.array([True] * len(table))
        reason = pa.array(["is odd"] * len(table))
        rejected = table.append_column("reason", reason).filter(odd)
        return self.commit(unit.rows, [(unit.name, table.filter(pc.invert(odd)), rejected)])


def numbers(folder: Path, shards: int, rows: int = 10, step: int = 1) -> list[Unit]:
    table = pa.table({"n": range(0, shards * rows * step, step)})
    return units(cut(folder / "in", table, rows), "key")


def run(work: list[Unit], folder: Path, share: float, **job: Any) -> Result:
    output = str(folder / "out")
    odd = beam.ParDo(Odd(output, **job))
    return launch("odd", work, odd, output, ONE, limit=Limit(share=share))


def test_a_running_job_is_stopped_and_continues(tmp_path: Path, monkeypatch: Patch) -> None:
    monkeypatch.setattr(rejections, "ENOUGH_ROWS", 40)
    work = numbers(tmp_path, 40)
    with pytest.raises(UserError) as caught:
        run(work, tmp_path, 0.45, seconds_each=0.05)
    message = str(caught.value)
    assert re.match(r"odd: \d+ of \d+ rows are rejected \(50.0%\), and max_rejected is 0.45; "
                    r"most frequent reason: is odd \(\d+ rows\), see ", message)  # fmt: skip
    assert message.endswith("raise max_rejected; then the same command resumes")
    (example,) = re.findall(r"see (.+); remove", message)
    assert Path(example).parent == tmp_path / "out" / "_rejected"
    assert Path(example).exists()
    made = receipts(str(tmp_path / "out"))
    assert 4 <= len(made) < 40
    result = run(work, tmp_path, 0.5)
    assert result.receipts[: len(made)] == tuple(made)
    assert len(result.receipts) == 40
    assert not list((tmp_path / "out").glob("stopped*"))


def test_bad_first_shards_do_not_stop_a_job(tmp_path: Path) -> None:
    work = numbers(tmp_path, 30, step=2)
    bad = tuple(unit.name for unit in work[:5])
    result = run(work, tmp_path, 0.2, bad=bad, seconds_each=0.05)
    assert sum(receipt.rows_out for receipt in result.receipts) == 250


def test_a_unit_counts_once_however_often_one_looks(tmp_path: Path, monkeypatch: Patch) -> None:
    monkeypatch.setattr(rejections, "ENOUGH_ROWS", 20)
    folder = str(tmp_path)
    watch = RejectionWatch("odd", folder, Limit(share=0.5))
    bad = Receipt(name="part-0", key="k", rows_in=10, shards=(), rejected={"is odd": 10})
    write_receipt(folder, bad)
    for _ in range(3):
        watch.look()
    check_not_stopped(folder)
    write_receipt(folder, bad.model_copy(update={"name": "part-1"}))
    watch.look()
    with pytest.raises(UserError, match="odd: none of 20 rows can be used"):
        check_not_stopped(folder)
    with pytest.raises(UserError, match=r"none of 10 rows can be used.*remove the cause; then"):
        watch.check_all([bad])  # at the end, no limit would help
    watch.end()
    check_not_stopped(folder)


def test_a_killed_command_does_not_stop_the_next(tmp_path: Path) -> None:
    work = numbers(tmp_path, 2)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / rejections._MESSAGE).write_text("odd: too many")
    assert len(run(work, tmp_path, 1.0).receipts) == 2
