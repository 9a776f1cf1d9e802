"""Crash recovery: finds the sentences that kill a worker process, with a record of every attempt.

A process that is killed, for instance because memory ran out, cannot report an error. The fork
server sees how it ended, and later workers are told which of their predecessors crashed.
Only such a death is evidence: workers also end when the command is interrupted or killed.

The first attempt records nothing but itself. Later attempts do the same work in the same batches,
and record which batches are in progress. Batches that were in progress when a worker crashed are
suspects: each is translated by itself. A suspect that crashes two workers by itself is divided into
its sentences; a sentence that does so is rejected.

    <stage>/attempts/<unit>.json
"""

import os
import threading
from collections.abc import Sequence
from contextlib import suppress

from pydantic import BaseModel, PrivateAttr

from paraloom.beam_jobs.io import storage
from paraloom.beam_jobs.io.storage import MissingError
from paraloom.beam_jobs.runners.local.fork_server import CRASHED, WORKER

_PROOF = 2
"""Deaths that prove a suspect guilty: a worker may once be killed for another reason."""

_LOCK = threading.RLock()
_ACTIVE: list["Attempt"] = []  # attempts of this process; some runners have several at a time


class Suspect(BaseModel):
    """Rows that were in progress when a worker crashed."""

    rows: list[int]
    deaths: int = 0  # of workers in which nothing else was in progress


class Attempt(BaseModel):
    """One attempt at a unit; implements `paraloom.models.nmt.translate.RetryHints`."""

    key: str
    number: int = 0  # 1 for the first attempt
    worker: str = ""  # the process, as the fork server names it; empty if that did not start it
    alone: bool = True  # whether the process worked on this unit only
    in_progress: list[list[int]] = []  # rows (batches) that the process is working on
    suspects: list[Suspect] = []
    poison: list[int] = []  # rows that crash the process by themselves
    _path: str = PrivateAttr("")

    @property
    def isolated(self) -> list[list[int]]:
        """Groups of rows to translate by themselves."""
        return [suspect.rows for suspect in self.suspects]

    def under_way(self, groups: Sequence[Sequence[int]]) -> None:
        """Record the groups of rows that are in progress from now on."""
        with _LOCK:
            self.in_progress = [list(map(int, group)) for group in groups]
            self.alone = len(_ACTIVE) == 1
            self._write()

    def failed(self) -> None:
        """Record that the attempt ended with an error, so that nothing is in progress."""
        self._end()
        self.under_way([])

    def over(self) -> None:
        """Remove the record: the unit is finished."""
        self._end()
        storage.remove(self._path)

    def _end(self) -> None:
        with _LOCK:
            _ACTIVE[:] = [attempt for attempt in _ACTIVE if attempt is not self]

    def _write(self) -> None:
        storage.write_bytes(self._path, self.model_dump_json().encode())

    def _suspect(self) -> None:
        """Learn from the crash of the worker that made this attempt."""
        known = {tuple(suspect.rows): suspect for suspect in self.suspects}
        for rows in self.in_progress:
            suspect = known.get(tuple(rows))
            if suspect is None:
                suspect = Suspect(rows=rows)
                self.suspects.append(suspect)
            if not self.alone or len(self.in_progress) > 1:
                continue
            suspect.deaths += 1
            if suspect.deaths == _PROOF:
                self.suspects.remove(suspect)
                if len(rows) == 1:
                    self.poison += rows
                else:
                    self.suspects += [Suspect(rows=[row]) for row in rows]


def begin(folder: str, name: str, key: str) -> Attempt:
    """Begin an attempt at a unit, with what is known from earlier attempts at the same work."""
    path = storage.join(folder, "attempts", f"{name}.json")
    attempt = _read(path)
    if attempt is None or attempt.key != key:
        attempt = Attempt(key=key)
    if attempt.worker in os.environ.get(CRASHED, "").split():
        attempt._suspect()
    attempt._path = path
    attempt.number += 1
    attempt.worker = os.environ.get(WORKER, "")
    with _LOCK:
        for other in _ACTIVE:
            other.alone = False
            other._write()
        _ACTIVE.append(attempt)
    attempt.under_way([])
    return attempt


def unfinished(folder: str) -> list[Attempt]:
    """The attempts at units of a stage that have not finished."""
    records = storage.join(folder, "attempts")
    found = [_read(storage.join(records, name)) for name in storage.names(records)]
    return [attempt for attempt in found if attempt is not None]


def _read(path: str) -> Attempt | None:
    with suppress(MissingError, ValueError):
        return Attempt.model_validate_json(storage.read_bytes(path))
    return None
