"""Workers that die: of a signal, again and again, before they have begun."""

import logging
import os
import signal
import time
from pathlib import Path
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pytest

from paraloom.beam_jobs.analysis.collect import collect, concatenate
from paraloom.beam_jobs.io.shards import (
    Receipt,
    Unit,
    commit,
    finished,
    read_shard,
    receipts,
    units,
    write_shard,
)
from paraloom.beam_jobs.runners.crash_recovery import begin
from paraloom.beam_jobs.runners.launch import Result, UnitJob, launch
from paraloom.beam_jobs.runners.local import runner, worker
from paraloom.models.errors import UserError
from tests.run_helpers import Patch

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
TWO = ["--direct_num_workers", "2"]
TABLE = pa.table({"n": [1, 2, 3]})
NONE = pa.table({"reason": pa.array([], pa.string())})


class Copy(beam.PTransform):
    """A job that copies its shards and dies `deaths` times at one of them."""

    def __init__(self, output: str, deaths: int) -> None:
        super().__init__()
        self.output, self.deaths = output, deaths

    def expand(self, work: Any) -> Any:
        output, deaths = self.output, self.deaths

        def copy(unit: Unit) -> Receipt:
            done = finished(output, unit.name, unit.key)
            if done:
                return done
            if deaths and unit.index == 1:
                die(Path(output), deaths)
            pieces = [(unit.name, TABLE, NONE)]
            return commit(output, unit.name, unit.key, unit.rows, pieces, started=time.monotonic())

        return work | beam.Map(copy)


def die(folder: Path, times: int) -> None:
    """Die of signal 9, but not more often than that."""
    so_far = len(list(folder.glob("death-*")))
    if so_far < times:
        (folder / f"death-{so_far}").touch()
        os.kill(os.getpid(), signal.SIGKILL)


def copy(work: list[Unit], output: str, deaths: int, arguments: list[str] = TWO) -> Result:
    transform = Copy(output, deaths)
    return launch(UnitJob(name="copy", units=work, transform=transform, output=output), arguments)


@pytest.fixture
def work(tmp_path: Path) -> list[Unit]:
    return units([write_shard(f"{tmp_path}/in/part-{i}.parquet", TABLE) for i in range(4)], "k")


def test_a_worker_that_dies_once_costs_what_was_under_way(tmp_path: Path, work: list[Unit]) -> None:
    out = tmp_path / "out"
    out.mkdir()
    result = copy(work, str(out), 1)
    assert [receipt.name for receipt in result.receipts] == [f"part-{i}" for i in range(4)]
    assert len(list(out.glob("death-*"))) == 1


def test_workers_that_always_die_end_the_run_in_one_line(
    tmp_path: Path, work: list[Unit], monkeypatch: Patch
) -> None:
    monkeypatch.setattr(runner, "_TRIES", 2)
    out = tmp_path / "out"
    out.mkdir()
    with pytest.raises(UserError, match=r"^a worker process died 2 times.*SIGKILL\)") as error:
        copy(work, str(out), 99)
    assert "\n" not in str(error.value)
    # Two in a row; each of the other three shards that gets done meanwhile starts the count anew.
    assert 2 <= len(list(out.glob("death-*"))) <= 5
    assert "part-1" not in {receipt.name for receipt in receipts(str(out))}


def test_workers_that_do_not_come_up(tmp_path: Path, work: list[Unit], monkeypatch: Patch) -> None:
    monkeypatch.setattr(runner, "_TRIES", 2)
    (tmp_path / "stillborn.py").write_text("def main(arguments):\n    raise SystemExit(3)\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(worker, "__name__", "stillborn")
    with pytest.raises(UserError, match=r"a worker process died .*exit code 3\)"):
        copy(work, f"{tmp_path}/out", 0)


@pytest.mark.parametrize(
    ("text", "message", "tries"),
    [
        ("OSError: [Errno 24] Too many open files: '/a'", "too many files are open: .*; see ", 1),
        (
            "ImportError: no such library\nnoise",
            "3 times .*/a.log: ImportError: no such library;",
            3,
        ),
        ("noise", r"3 times in a row \(at last: exit code 1\); if", 3),
    ],
)
def test_the_last_error_is_named_and_a_limit_is_not_tried_again(
    tmp_path: Path, monkeypatch: Patch, text: str, message: str, tries: int
) -> None:
    monkeypatch.setattr(runner, "_TRIES", 3)
    log, tried = tmp_path / "a.log", []

    def work() -> None:
        tried.append(0)
        log.write_text(f"ValueError: earlier\n{'x' * 70_000}\n  at a line\n{text}\n")
        runner._deaths.append("exit code 1")
        raise RuntimeError("Channel closed prematurely.")

    with pytest.raises(UserError, match=message) as error:
        runner.retry_on_worker_death(work, log)
    assert len(tried) == tries and "\n" not in str(error.value)


def test_workers_know_the_way_to_an_object_store(bucket: str, s3: list[str]) -> None:
    work = units([write_shard(f"{bucket}/in/part-{i}.parquet", TABLE) for i in range(3)], "k")
    result = copy(work, f"{bucket}/out", 0, [*TWO, *s3])
    assert [receipt.rows_out for receipt in result.receipts] == [3, 3, 3]
    assert read_shard(result.receipts[2].shards[0]).equals(TABLE)


def test_no_option_is_logged(
    tmp_path: Path, work: list[Unit], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)  # as libraries that are imported for a training set it
    secrets = ["sesame-id", "sesame-key"]
    options = ["--s3_access_key_id", secrets[0], "--s3_secret_access_key", secrets[1]]
    copy(work, f"{tmp_path}/out", 0, [*TWO, *options])
    assert "sdk_worker_main" in caplog.text
    assert "sesame" not in caplog.text


def test_a_table_is_collected_though_a_worker_dies(tmp_path: Path, work: list[Unit]) -> None:
    class Read(beam.PTransform):
        def expand(self, work: Any) -> Any:
            def read(unit: Unit) -> pa.Table:
                if unit.index == 2:
                    die(tmp_path, 1)
                return TABLE

            return work | beam.Map(read) | beam.CombineGlobally(concatenate(TABLE.schema))

    assert len(collect("read", work, Read(), f"{tmp_path}/out", TWO)) == 12


class Translate(beam.PTransform):
    """A job of one unit, in batches of three rows; row 7 kills the worker, nothing else does."""

    def __init__(self, output: str) -> None:
        super().__init__()
        self.output = output

    def expand(self, work: Any) -> Any:
        output = self.output

        def translate(unit: Unit) -> Receipt:
            attempt = begin(output, unit.name, unit.key)
            done = {row for group in attempt.isolated for row in group}.union(attempt.poison)
            rest = [[row for row in range(i, i + 3) if row not in done] for i in range(0, 12, 3)]
            for group in [*attempt.isolated, *rest]:
                attempt.under_way([group])
                if 7 in group:
                    os.kill(os.getpid(), signal.SIGKILL)
            kept = pa.table({"n": [row for row in range(12) if row not in attempt.poison]})
            refused = pa.table({"reason": [f"row {row}" for row in attempt.poison]})
            pieces = [(unit.name, kept, refused)]
            receipt = commit(output, unit.name, unit.key, 12, pieces, started=time.monotonic())
            attempt.over()
            return receipt

        return work | beam.Map(translate)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_sentence_that_kills_workers_is_found(tmp_path: Path, workers: str) -> None:
    """Also on one core, after a kill of the command, which then did the work itself."""
    table = pa.table({"n": range(12)})
    work = units([write_shard(f"{tmp_path}/in/part-0.parquet", table)], "k")
    out = f"{tmp_path}/out"
    begin(out, "part-0", work[0].key).failed()
    job = UnitJob(name="t", units=work, transform=Translate(out), output=out)
    result = launch(job, ["--direct_num_workers", workers])
    (receipt,) = result.receipts
    assert (receipt.rows_in, receipt.rows_out) == (12, 11)
    assert read_shard(receipt.shards[0])["n"].to_pylist() == [0, 1, 2, 3, 4, 5, 6, 8, 9, 10, 11]
