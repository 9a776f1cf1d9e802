"""Crash recovery: if a worker dies, its units are attempted again with precautions.

A worker that is killed, for instance because it used too much memory, cannot report an error. A
translation job therefore keeps an attempt record of each unit in progress
(`<stage>/_attempts/<unit>.json`), in which the launcher counts deaths. From the first death on, the
job records the rows that the model is translating. From the second death on, the job makes smaller
batches. If workers still die, the launcher ends the run with a message that names the units and
rows. If the launcher itself is killed, no death is counted.
"""

from collections.abc import Sequence
from contextlib import suppress

from pydantic import BaseModel, PrivateAttr

from paraloom.beam_jobs import storage
from paraloom.beam_jobs.engine.shards import ATTEMPTS
from paraloom.beam_jobs.storage import MissingError

_SHOWN = 5


class Attempt(BaseModel):
    """Record of the attempts at a unit. Implements `paraloom.models.nmt.translate.RetryHints`."""

    key: str
    number: int = 0  # 1 for the first attempt
    deaths: int = 0  # number of workers that died while they processed the unit
    rows: list[int] = []  # rows that the translation engine is processing
    _path: str = PrivateAttr("")
    _row_of: Sequence[int] = PrivateAttr(range(1 << 31))

    def translating(self, row_of: Sequence[int]) -> None:
        """Set the row of each text: text i of the engine is the shard's row `row_of[i]`."""
        self._row_of = row_of

    @property
    def smaller(self) -> int:
        """Factor by which batches shrink: 4 after the second death, 16 after the third death."""
        return int(4 ** max(self.deaths - 1, 0))

    def under_way(self, rows: Sequence[int]) -> None:
        """Record the rows of the texts that enter the engine next."""
        self.rows = [self._row_of[text] for text in rows]
        self.write()

    def write(self) -> None:
        """Write the record."""
        storage.write_bytes(self._path, self.model_dump_json().encode())

    def over(self) -> None:
        """Remove the record, when the unit is finished."""
        storage.remove(self._path)


def begin(folder: str, name: str, key: str) -> Attempt:
    """Record the start of an attempt at a unit. A record with another key is replaced."""
    path = storage.join(folder, ATTEMPTS, f"{name}.json")
    attempt = _read(path)
    if attempt is None or attempt.key != key:
        attempt = Attempt(key=key)
        attempt._path = path
    attempt.number += 1
    attempt.under_way([])
    return attempt


def deaths(folder: str, name: str) -> int:
    """Return the number of workers that died on a unit."""
    attempt = _read(storage.join(folder, ATTEMPTS, f"{name}.json"))
    return attempt.deaths if attempt else 0


def unfinished(folder: str) -> dict[str, Attempt]:
    """Return the attempt records of unfinished units, by unit name."""
    records = storage.join(folder, ATTEMPTS)
    found = {name: _read(storage.join(records, name)) for name in storage.names(records)}
    return {name.removesuffix(".json"): attempt for name, attempt in found.items() if attempt}


def _read(path: str) -> Attempt | None:
    with suppress(MissingError, ValueError):
        attempt = Attempt.model_validate_json(storage.read_bytes(path))
        attempt._path = path
        return attempt
    return None


def note_death(folder: str) -> str:
    """Record a worker's death for all units in progress. Return text that names these units."""
    at = []
    for name, attempt in unfinished(folder).items():
        attempt.deaths += 1
        attempt.write()
        more = ", …" if len(attempt.rows) > _SHOWN else ""
        rows = ", ".join(map(str, attempt.rows[:_SHOWN]))
        at.append(f"{name} (rows {rows}{more})" if rows else name)
    return f" at {', '.join(at[:_SHOWN])}" if at else ""
