"""A job that copies its shards, and what can go wrong with it."""

import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apache_beam as beam
import pyarrow as pa
from apache_beam.metrics import Metrics

from paraloom.beam_jobs.engine.launch import NAMESPACE, Result, launch
from paraloom.beam_jobs.engine.shards import Receipt, Unit, commit, units, write_shard
from paraloom.beam_jobs.engine.unit_dofn import UnitDoFn
from paraloom.models.errors import UserError
from tests.shards import ONE

TWO = ["--direct_num_workers", "2"]
TABLE = pa.table({"n": [1, 2, 3]})
NONE = pa.table({"reason": pa.array([], pa.string())})


def die(folder: Path, times: int) -> None:
    """Die of signal 9, but not more often than that."""
    so_far = len(list(folder.glob("death-*")))
    if so_far < times:
        (folder / f"death-{so_far}").touch()
        os.kill(os.getpid(), signal.SIGKILL)


@dataclass(eq=False)
class Copy(UnitDoFn):
    """Copies its units; `fault` says what goes wrong, `deaths` how often the second one kills."""

    fault: str = ""
    deaths: int = 0

    def make(self, unit: Unit) -> Receipt:
        pieces = [(unit.name, TABLE, NONE)]
        if self.deaths and unit.index == 1:
            die(Path(self.output), self.deaths)
        if self.fault == "user":
            raise UserError(f"{unit.shard.path}: something [is] wrong: {{it}}")
        if self.fault == "bug":
            raise KeyError("a bug")
        if self.fault == "skip" and unit.index == 1:
            return None  # type: ignore[return-value]
        if self.fault == "key":
            return commit(self.output, unit.name, "k", 3, pieces, started=0.0)
        if self.fault == "short":
            return self.commit(2, [(unit.name, TABLE[:2], NONE)])
        Metrics.counter(NAMESPACE, "rows").inc(unit.rows)
        os.write(2, b"noise on standard error\n")
        return self.commit(unit.rows, pieces)


def write(folder: Path | str, count: int) -> list[Unit]:
    """So many shards to copy."""
    return units([write_shard(f"{folder}/in/part-{i}.parquet", TABLE) for i in range(count)], "k")


def job(
    work: list[Unit], output: Path | str, fault: str = "", deaths: int = 0, **options: Any
) -> dict[str, Any]:
    """The job, as arguments to `launch`, with further options."""
    transform = beam.ParDo(Copy(str(output), fault, deaths))
    given = {"name": "copy", "units": work, "transform": transform, "output": str(output)}
    return given | options


def copy(work: list[Unit], output: Path | str, fault: str = "", **options: Any) -> Result:
    """Run it in this process."""
    return launch(**job(work, output, fault, **options), arguments=ONE)
