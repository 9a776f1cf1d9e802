"""The base class of the jobs' DoFns."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import apache_beam as beam
import pyarrow as pa

from paraloom.beam_jobs import storage
from paraloom.beam_jobs.engine.launch import WorkUnit
from paraloom.beam_jobs.engine.rejections import check_not_stopped
from paraloom.beam_jobs.engine.shards import UNDER_WAY, Receipt, commit, finished


@dataclass(eq=False)
class UnitDoFn(beam.DoFn):
    """Base class of a DoFn that makes the output and the receipt of each unfinished unit.

    An element is a unit, or a tuple of a unit and further input. Subclasses implement `make(unit,
    *further_input)` or `make(unit, *further_input, side_input)`, which ends with `self.commit`.
    """

    output: str
    make: ClassVar[Callable[..., Receipt]]

    def setup(self) -> None:
        """Restrict Arrow to one thread: the runner decides how many units are made at once."""
        pa.set_cpu_count(1)

    def process(self, element: Any, side_input: Any = None) -> Iterator[Receipt]:
        """Yield the receipt of a unit."""
        unit, *more = element if isinstance(element, tuple) else (element,)
        receipt = finished(self.output, unit.name, unit.key)
        if receipt is None:
            check_not_stopped(self.output)
            self._started = self._told = time.monotonic()
            # Writes the unit's part files and its receipt.
            place = self.output, unit.name, unit.key
            self.commit = partial(commit, *place, started=self._started)
            more += [] if side_input is None else [side_input]
            receipt = self.make(unit, *more)
        yield receipt

    def tell(self, unit: WorkUnit, rows: float) -> None:
        """Report the rows done so far to the launcher, at most once a second. Do nothing if the
        output is in an object store."""
        if time.monotonic() - self._told >= 1 and not storage.is_remote(self.output):
            self._told = time.monotonic()
            path = storage.join(self.output, UNDER_WAY, unit.name)
            storage.write_bytes(path, str(round(rows)).encode())
