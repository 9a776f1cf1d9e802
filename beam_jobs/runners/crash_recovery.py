"""Which sentences a worker process died of: a record a unit, written before the work on it begins.

A process that is killed for want of memory leaves no error behind. Whoever begins a unit and finds
its record knows that the try before broke off. The second try does the same work in the same
batches, and notes which of them are under way; what it dies of is tried apart the next time, batch
by batch, then sentence by sentence; a sentence of which it dies alone is left out.

    <stage>/attempts/<unit>.json
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

from beam_jobs.io import storage
from beam_jobs.io.storage import MissingError


@dataclass(slots=True, kw_only=True)
class Attempt:
    """One try at a unit; it is what `models.nmt.translate.RetryHints` asks for.

    Attributes:
        number: 1 for the first.
        isolated: groups of rows with which a process has died; each is to be tried by itself.
        poison: rows of which one died alone.
    """

    path: str
    key: str
    number: int = 1
    isolated: list[list[int]]
    poison: list[int]

    def under_way(self, groups: Sequence[Sequence[int]]) -> None:
        """Note which groups of rows (batches) are worked on from now on."""
        values = {
            "key": self.key,
            "number": self.number,
            "under_way": [list(map(int, group)) for group in groups],
            "apart": self.isolated,
            "fatal": self.poison,
        }
        storage.write_bytes(self.path, json.dumps(values).encode())

    def over(self) -> None:
        """Forget it: the unit has its receipt."""
        storage.remove(self.path)


def begin(folder: str, name: str, key: str) -> Attempt:
    """Begin work on a unit, with what an earlier try at the same work left."""
    path = storage.join(folder, "attempts", f"{name}.json")
    before = _read(path, key)
    attempt = Attempt(
        path=path,
        key=key,
        number=before["number"] + 1,
        isolated=before["apart"],
        poison=before["fatal"],
    )
    died = before["under_way"]
    if died:
        rows = {row for group in died for row in group}
        attempt.isolated = [group for group in attempt.isolated if rows.isdisjoint(group)]
        if len(rows) == 1:
            attempt.poison += rows
        else:  # one batch: its sentences; several at once: each of them
            attempt.isolated += [[row] for row in died[0]] if len(died) == 1 else died
    attempt.under_way([])
    return attempt


_NONE: dict[str, Any] = {"number": 0, "under_way": [], "apart": [], "fatal": []}


def _read(path: str, key: str) -> dict[str, Any]:
    try:
        values = json.loads(storage.read_bytes(path))
        if values["key"] == key and values.keys() >= _NONE.keys():
            return values
    except (MissingError, ValueError, KeyError, TypeError):
        pass
    return {name: copy(value) for name, value in _NONE.items()}
