"""A job stops when it rejects too large a share, and continues with a higher limit."""

import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from paraloom.beam_jobs.engine import rejections
from paraloom.beam_jobs.engine.launch import Result, launch
from paraloom.beam_jobs.engine.rejections import Limit, RejectionWatch, check_not_stopped
from paraloom.beam_jobs.engine.shards import (
    Receipt,
    Unit,
    read_shard,
    receipts,
    units,
    write_receipt,
)
from paraloom.beam_jobs.engine.unit_dofn import UnitDoFn
from paraloom.models.errors import UserError
from tests.run_helpers import Patch
from tests.shards import ONE, cut


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
                    r"most often \(\d+ rows\): is odd, see ", message)  # fmt: skip
    assert message.endswith("raise max_rejected: the same command then continues")
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


def test_a_finished_job_is_judged_by_all_rows(tmp_path: Path) -> None:
    work = numbers(tmp_path, 1)
    for share in (0.49, 0.0):  # the second time the unit is finished
        with pytest.raises(UserError, match=r"5 of 10 rows are rejected \(50.0%\)"):
            run(work, tmp_path, share)
    assert run(work, tmp_path, 0.5).receipts[0].rows_out == 5


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
    watch.end()
    check_not_stopped(folder)


def test_a_killed_command_does_not_stop_the_next(tmp_path: Path) -> None:
    work = numbers(tmp_path, 2)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / rejections._MESSAGE).write_text("odd: too many")
    assert len(run(work, tmp_path, 1.0).receipts) == 2
