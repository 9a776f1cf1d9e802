"""Crash recovery: units whose worker died are attempted again, more carefully each time.

A process that is killed, for instance because memory ran out, cannot report an error. The launcher
sees that it died, and notes the death in the records of the units that were under way. Further
attempts note which rows are in the engine, one batch at a time, and from the second death on
batches are smaller. If workers still die, the launcher ends the run and names units and rows.

Only a death that the launcher saw counts: workers also end when the command is interrupted or
killed, and then the next attempt makes the same batches as the first.

    <stage>/_attempts/<unit>.json
"""

from collections.abc import Sequence
from contextlib import suppress

from pydantic import BaseModel, PrivateAttr

from paraloom.beam_jobs import storage
from paraloom.beam_jobs.engine.shards import ATTEMPTS
from paraloom.beam_jobs.storage import MissingError

_SHOWN = 5  # rows in a message


class Attempt(BaseModel):
    """One attempt at a unit; implements `paraloom.models.nmt.translate.RetryHints`."""

    key: str
    number: int = 0  # 1 for the first attempt
    deaths: int = 0  # of workers at this unit
    rows: list[int] = []  # in the engine, after a death
    _path: str = PrivateAttr("")

    @property
    def smaller(self) -> int:
        """How many times smaller than usual batches are: 4 times more after each death."""
        return int(4 ** max(self.deaths - 1, 0))

    def under_way(self, rows: Sequence[int]) -> None:
        """Note the rows that the engine gets next."""
        self.rows = list(map(int, rows))
        self.write()

    def write(self) -> None:
        """Write the record."""
        storage.write_bytes(self._path, self.model_dump_json().encode())

    def over(self) -> None:
        """Remove the record: the unit is finished."""
        storage.remove(self._path)


def begin(folder: str, name: str, key: str) -> Attempt:
    """Begin an attempt at a unit, with what is known from earlier attempts at the same work."""
    path = storage.join(folder, ATTEMPTS, f"{name}.json")
    attempt = _read(path)
    if attempt is None or attempt.key != key:
        attempt = Attempt(key=key)
        attempt._path = path
    attempt.number += 1
    attempt.under_way([])
    return attempt


def deaths(folder: str, name: str) -> int:
    """The deaths of workers at a unit."""
    attempt = _read(storage.join(folder, ATTEMPTS, f"{name}.json"))
    return attempt.deaths if attempt else 0


def unfinished(folder: str) -> dict[str, Attempt]:
    """The attempts at units of a stage that have not finished, by the unit."""
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
    """Note that a worker died; tells what was under way, for a message."""
    at = []
    for name, attempt in unfinished(folder).items():
        attempt.deaths += 1
        attempt.write()
        more = ", …" if len(attempt.rows) > _SHOWN else ""
        rows = ", ".join(map(str, attempt.rows[:_SHOWN]))
        at.append(f"{name} (rows {rows}{more})" if rows else name)
    return f" at {', '.join(at[:_SHOWN])}" if at else ""
