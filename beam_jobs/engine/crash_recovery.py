"""Crash recovery: if a worker died, its units are attempted again, more carefully each time.

A process that is killed, for instance for lack of memory, cannot report an error. The launcher
notes its death in the attempt records of all units in flight. In translation, later attempts note
which rows are in the engine, one batch at a time; from the second death on, batches are smaller. If
workers still die, the launcher ends the run and names the units and rows. Only deaths that the
launcher saw count: after an interrupted or killed command, the next attempt makes the same batches
as the first.

    <stage>/_attempts/<unit>.json
"""

from collections.abc import Sequence
from contextlib import suppress

from pydantic import BaseModel, PrivateAttr

from paraloom.beam_jobs import storage
from paraloom.beam_jobs.engine.shards import ATTEMPTS
from paraloom.beam_jobs.storage import MissingError

_SHOWN = 5  # rows shown in a message


class Attempt(BaseModel):
    """One attempt at a unit; implements `paraloom.models.nmt.translate.RetryHints`."""

    key: str
    number: int = 0  # 1 for the first attempt
    deaths: int = 0  # workers that died on this unit
    rows: list[int] = []  # rows in the engine, recorded after a death
    _path: str = PrivateAttr("")

    @property
    def smaller(self) -> int:
        """Factor by which batches shrink: 4 to the power of the deaths after the first."""
        return int(4 ** max(self.deaths - 1, 0))

    def under_way(self, rows: Sequence[int]) -> None:
        """Record the rows that enter the engine next."""
        self.rows = list(map(int, rows))
        self.write()

    def write(self) -> None:
        """Write the record."""
        storage.write_bytes(self._path, self.model_dump_json().encode())

    def over(self) -> None:
        """Remove the record of a finished unit."""
        storage.remove(self._path)


def begin(folder: str, name: str, key: str) -> Attempt:
    """Begin an attempt at a unit; earlier attempts with the same key are counted."""
    path = storage.join(folder, ATTEMPTS, f"{name}.json")
    attempt = _read(path)
    if attempt is None or attempt.key != key:
        attempt = Attempt(key=key)
        attempt._path = path
    attempt.number += 1
    attempt.under_way([])
    return attempt


def deaths(folder: str, name: str) -> int:
    """Count the workers that died on a unit."""
    attempt = _read(storage.join(folder, ATTEMPTS, f"{name}.json"))
    return attempt.deaths if attempt else 0


def unfinished(folder: str) -> dict[str, Attempt]:
    """Attempts of unfinished units, by unit name."""
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
    """Record that a worker died; return the units in flight, for a message."""
    at = []
    for name, attempt in unfinished(folder).items():
        attempt.deaths += 1
        attempt.write()
        more = ", …" if len(attempt.rows) > _SHOWN else ""
        rows = ", ".join(map(str, attempt.rows[:_SHOWN]))
        at.append(f"{name} (rows {rows}{more})" if rows else name)
    return f" at {', '.join(at[:_SHOWN])}" if at else ""
