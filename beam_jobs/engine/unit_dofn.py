"""The base classes of the jobs' DoFns."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import apache_beam as beam
import pyarrow as pa
from apache_beam.transforms.window import GlobalWindow
from apache_beam.utils.windowed_value import WindowedValue

from paraloom.beam_jobs import storage
from paraloom.beam_jobs.engine.launch import WorkUnit
from paraloom.beam_jobs.engine.rejections import check_not_stopped
from paraloom.beam_jobs.engine.shards import UNDER_WAY, Receipt, commit, finished


def unit_of(element: Any) -> Any:
    """Return the unit of an element, which is a unit or a tuple of a unit and further input."""
    return element[0] if isinstance(element, tuple) else element


@dataclass(eq=False)
class UnitDoFn(beam.DoFn):
    """Base class of a DoFn that makes the output and the receipt of each unfinished unit.

    An element is a unit, or a tuple of a unit and further input. Subclasses implement `make(unit,
    *further_input)`, or `make(unit, *further_input, side_input)` if there is a side input. `make`
    ends with `self.commit`, which is `shards.commit` for the unit.
    """

    output: str
    make: ClassVar[Callable[..., Receipt]]

    def setup(self) -> None:
        """Restrict Arrow to one thread, because the runner decides how many units run at once."""
        pa.set_cpu_count(1)

    def process(self, element: Any, side_input: Any = None) -> Iterator[Receipt]:
        """Yield the receipt of a unit."""
        unit, *more = element if isinstance(element, tuple) else (element,)
        receipt = finished(self.output, unit.name, unit.key)
        if receipt is None:
            check_not_stopped(self.output)
            self._started = self._told = time.monotonic()
            place = self.output, unit.name, unit.key
            self.commit = partial(commit, *place, started=self._started)
            more += [] if side_input is None else [side_input]
            receipt = self.make(unit, *more)
        yield receipt

    def tell(self, unit: WorkUnit, rows: float) -> None:
        """Write a unit's number of finished rows, at most once a second, if the output is local."""
        if time.monotonic() - self._told >= 1 and not storage.is_remote(self.output):
            self._told = time.monotonic()
            path = storage.join(self.output, UNDER_WAY, unit.name)
            storage.write_bytes(path, str(round(rows)).encode())


_AT_ONCE = 256  # largest number of units in progress


class OverlappingDoFn(UnitDoFn):
    """Base class of a DoFn that processes several units at once, in threads of one process.

    A model can then compute while other units are read or written. Subclasses implement `room`.
    In a thread, `make` runs on a copy of the instance. Objects that `setup` opens are shared by all
    copies.
    """

    def setup(self) -> None:
        """Create the threads."""
        super().setup()
        self.pool = ThreadPoolExecutor(_AT_ONCE)

    def start_bundle(self) -> None:
        """Start a bundle, with no units in progress."""
        self.in_flight = deque[tuple[int, Future[Receipt]]]()  # number of rows, future receipt

    def room(self, unit: Any) -> int:
        """Return how many rows of other units may be in progress; 0: process `unit` alone.

        If the number is positive, one other unit may be in progress even if it has more rows.
        """
        raise NotImplementedError

    def ended(self, receipt: Receipt) -> None:
        """Handle a receipt in Beam's own thread, where Beam's counters work."""

    def process(self, element: Any, side_input: Any = None) -> Iterator[Receipt]:
        """Start a unit when few enough rows are in progress, and yield receipts of ended units."""
        unit = unit_of(element)
        room = self.room(unit)
        yield from self._done(room)
        if room:
            done = self.pool.submit(lambda: next(UnitDoFn.process(copy(self), element, side_input)))
            self.in_flight.append((unit.rows, done))
        else:
            for receipt in super().process(element, side_input):
                self.ended(receipt)
                yield receipt

    def finish_bundle(self) -> Iterator[WindowedValue]:
        """Yield the receipts of all remaining units."""
        window = GlobalWindow()
        for receipt in self._done(0):
            yield WindowedValue(receipt, window.max_timestamp(), [window])

    def teardown(self) -> None:
        """Stop the threads."""
        self.pool.shutdown(cancel_futures=True)

    def _done(self, rows: int) -> Iterator[Receipt]:
        """Yield receipts until at most `rows` rows are in progress.

        If `rows` is positive, one unit may remain in progress even if it has more rows.
        """
        while self.in_flight and (
            self.in_flight[0][1].done()
            or (
                len(self.in_flight) > (rows != 0)
                and (len(self.in_flight) == _AT_ONCE or sum(of for of, _ in self.in_flight) > rows)
            )
        ):
            receipt = self.in_flight.popleft()[1].result()
            self.ended(receipt)
            yield receipt
