"""Crash recovery: units whose worker died are attempted again, more carefully each time.

A killed process cannot report an error, for instance if it used too much memory. The launcher
therefore records the death in the attempt records of all units in progress. After a death,
translation records which batch of rows is in the engine. After the second death, it makes smaller
batches. If workers still die, the launcher ends the run with a message that names units and rows.
Only deaths that the launcher saw count. If the command itself was killed, the next attempt makes
the same batches as the first.

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
    """Record of the attempts at a unit; implements `paraloom.models.nmt.translate.RetryHints`."""

    key: str
    number: int = 0  # 1 for the first attempt
    deaths: int = 0  # workers that died on this unit
    rows: list[int] = []  # rows in the engine
    _path: str = PrivateAttr("")

    @property
    def smaller(self) -> int:
        """Factor by which batches shrink: 4 to the power of the deaths after the first death."""
        return int(4 ** max(self.deaths - 1, 0))

    def under_way(self, rows: Sequence[int]) -> None:
        """Record the rows that enter the engine next."""
        self.rows = list(map(int, rows))
        self.write()

    def write(self) -> None:
        """Write the record."""
        storage.write_bytes(self._path, self.model_dump_json().encode())

    def over(self) -> None:
        """Remove the record, when the unit is finished."""
        storage.remove(self._path)


def begin(folder: str, name: str, key: str) -> Attempt:
    """Begin an attempt at a unit, and count the earlier attempts with the same key."""
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
    """Record a worker's death for all units in progress; return their names for a message."""
    at = []
    for name, attempt in unfinished(folder).items():
        attempt.deaths += 1
        attempt.write()
        more = ", …" if len(attempt.rows) > _SHOWN else ""
        rows = ", ".join(map(str, attempt.rows[:_SHOWN]))
        at.append(f"{name} (rows {rows}{more})" if rows else name)
    return f" at {', '.join(at[:_SHOWN])}" if at else ""
