"""Workers that die, of a signal, again and again, before they have begun; what the records of their
attempts say; and Ctrl-C."""

import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pytest

from paraloom.beam_jobs.engine.collect import collect
from paraloom.beam_jobs.engine.crash_recovery import Attempt, begin, note_death, unfinished
from paraloom.beam_jobs.engine.launch import Result, launch
from paraloom.beam_jobs.engine.shards import Receipt, Unit, read_shard, receipts, units
from paraloom.beam_jobs.engine.unit_dofn import UnitDoFn
from paraloom.beam_jobs.runners.local import runner, worker
from paraloom.models.errors import UserError
from tests.beam_jobs.runners.copying import NONE, TABLE, TWO, die, job, write
from tests.run_helpers import Patch
from tests.shards import cut

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")


def copy(work: list[Unit], output: Path | str, deaths: int, *options: str) -> Result:
    return launch(**job(work, output, deaths=deaths), arguments=[*TWO, *options])


@pytest.fixture
def work(tmp_path: Path) -> list[Unit]:
    return write(tmp_path, 4)


def test_a_worker_that_dies_once_costs_what_was_under_way(tmp_path: Path, work: list[Unit]) -> None:
    out = tmp_path / "out"
    out.mkdir()
    result = copy(work, out, 1)
    assert [receipt.name for receipt in result.receipts] == [f"part-{i}" for i in range(4)]
    assert len(list(out.glob("death-*"))) == 1


def test_workers_that_always_die_end_the_run_in_one_line(
    tmp_path: Path, work: list[Unit], monkeypatch: Patch
) -> None:
    monkeypatch.setattr(runner, "_TRIES", 2)
    out = tmp_path / "out"
    out.mkdir()
    with pytest.raises(UserError, match=r"^a worker process died 2 times.*SIGKILL\)") as error:
        copy(work, out, 99)
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
        copy(work, tmp_path / "out", 0)


def test_workers_know_the_way_to_an_object_store(bucket: str, s3: list[str]) -> None:
    result = copy(write(bucket, 3), f"{bucket}/out", 0, *s3)
    assert [receipt.rows_out for receipt in result.receipts] == [3, 3, 3]
    assert read_shard(result.receipts[2].shards[0]).equals(TABLE)


def test_no_option_is_logged(
    tmp_path: Path, work: list[Unit], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)  # as libraries that are imported for a training set it
    secrets = ["sesame-id", "sesame-key"]
    options = ["--s3_access_key_id", secrets[0], "--s3_secret_access_key", secrets[1]]
    copy(work, tmp_path / "out", 0, *options)
    assert "sdk_worker_main" in caplog.text
    assert "sesame" not in caplog.text


def test_a_table_is_collected_though_a_worker_dies(tmp_path: Path, work: list[Unit]) -> None:
    class Read(beam.PTransform):
        def expand(self, work: Any) -> Any:
            def read(unit: Unit) -> pa.Table:
                if unit.index == 2:
                    die(tmp_path, 1)
                return TABLE

            return work | beam.Map(read) | beam.CombineGlobally(concatenated)

    def concatenated(tables: Iterable[pa.Table]) -> pa.Table:
        return pa.concat_tables([TABLE.schema.empty_table(), *tables])

    assert len(collect("read", work, Read(), f"{tmp_path}/out", TWO)) == 12


@dataclass(eq=False)
class Translate(UnitDoFn):
    """Makes 64 rows in batches; row 7 kills the worker in a batch of more than `most`."""

    most: int = 0

    def make(self, unit: Unit) -> Receipt:
        attempt = begin(self.output, unit.name, unit.key)
        size = max(64 // attempt.smaller, 1)
        for batch in (range(i, i + size) for i in range(0, 64, size)):
            attempt.under_way(batch)
            if 7 in batch and size > self.most:
                os.kill(os.getpid(), signal.SIGKILL)
        receipt = self.commit(64, [(unit.name, pa.table({"n": range(64)}), NONE)])
        attempt.over()
        return receipt


@pytest.mark.parametrize("most", [4, 0])
def test_what_kills_workers_is_tried_in_smaller_batches(tmp_path: Path, most: int) -> None:
    """A row that kills them alone is named."""
    work = units(cut(tmp_path / "in", pa.table({"n": range(64)}), 64), "k")
    out = f"{tmp_path}/out"
    transform = beam.ParDo(Translate(out, most))
    if most:
        (receipt,) = launch("t", work, transform, out, TWO).receipts
        assert (receipt.rows_out, unfinished(out)) == (64, {})
    else:
        with pytest.raises(
            UserError, match=r"died 6 times .* at part-00000-00000 \(rows 7\) \(last death"
        ):
            launch("t", work, transform, out, TWO)


STUCK = """
import signal, sys, threading, time
import grpc
from paraloom.beam_jobs.runners.local import runner
signal.signal(signal.SIGINT, signal.default_int_handler)  # the tests may run in the background
runner._PATIENCE = 3
with runner.ends_when_interrupted(sys.stdout):
    while True:
        try:
            print("waits", flush=True)
            time.sleep(60)
        except KeyboardInterrupt:
            def listen():  # as Beam's thread does when its worker is gone
                raise grpc.RpcError
            threading.Thread(target=listen).start()
"""


def test_ctrl_c_ends_a_block_that_goes_on() -> None:
    command = [sys.executable, "-c", STUCK]
    pipe, same = subprocess.PIPE, subprocess.STDOUT
    with subprocess.Popen(command, stdout=pipe, stderr=same, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "waits\n"
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert said == "waits\nparaloom: interrupted; the same command resumes\n"


@pytest.mark.parametrize("before", [signal.default_int_handler, signal.SIG_IGN])
def test_ctrl_c_ends_no_block_that_ends(before: Any, monkeypatch: Patch) -> None:
    """Nor a background job, which ignores it."""
    ends: list[Any] = []
    monkeypatch.setattr(runner, "_end", ends.append)
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)
    handler = signal.signal(signal.SIGINT, before)
    try:
        with suppress(KeyboardInterrupt), runner.ends_when_interrupted(sys.stdout):
            signal.raise_signal(signal.SIGINT)
            assert before is signal.SIG_IGN
        assert signal.getsignal(signal.SIGINT) is before
    finally:
        signal.signal(signal.SIGINT, handler)
    for thread in threading.enumerate():
        if isinstance(thread, threading.Timer) and thread.function == ends.append:
            thread.join()  # at once, if it was cancelled
    assert not ends


Try = Callable[..., Attempt]


@pytest.fixture
def attempt(tmp_path: Path) -> Try:
    """An attempt in a worker that notes its rows and ends there; the launcher may see it die."""

    def make(*rows: int, dies: bool = True, key: str = "key") -> Attempt:
        found = begin(str(tmp_path), "part-0", key)
        found.under_way(rows)
        if dies:
            note_death(str(tmp_path))
        return found

    return make


def test_batches_get_smaller_after_the_second_death_that_was_seen(attempt: Try) -> None:
    """Errors and kills of the command leave records, too."""
    assert attempt(7, dies=False).deaths == 0
    seen = [attempt(7) for _ in range(6)]
    assert [each.number for each in seen] == [2, 3, 4, 5, 6, 7]
    assert [each.deaths for each in seen] == [0, 1, 2, 3, 4, 5]
    assert [each.smaller for each in seen] == [1, 1, 4, 16, 64, 256]


def test_a_message_names_units_and_rows(tmp_path: Path, attempt: Try) -> None:
    assert note_death(str(tmp_path)) == ""
    attempt(dies=False)
    assert note_death(str(tmp_path)) == " at part-0"
    attempt(3, 4, dies=False)
    begin(str(tmp_path), "part-1", "key").under_way(range(9))
    assert note_death(str(tmp_path)) == " at part-0 (rows 3, 4), part-1 (rows 0, 1, 2, 3, 4, …)"


def test_other_work_begins_anew(tmp_path: Path, attempt: Try) -> None:
    attempt()
    other = attempt(key="another")
    assert (other.number, other.deaths) == (1, 0)
    other.over()
    assert unfinished(str(tmp_path)) == {}
    (tmp_path / "_attempts" / "part-0.json").write_text("{")
    assert attempt().number == 1
