"""Crash recovery: finds the sentences that kill a worker process, with a record of every attempt.

A process that is killed, for instance because memory ran out, cannot report an error. If a record
of a unit exists when the work on it begins, the previous attempt crashed. The second attempt does
the same work in the same batches, and records which batches are in progress. Later attempts
translate those in isolation: batch by batch, then sentence by sentence. A sentence is rejected only
if it kills the worker when translated by itself.

    <stage>/attempts/<unit>.json
"""

from collections.abc import Sequence

from pydantic import BaseModel, Field, PrivateAttr

from beam_jobs.io import storage
from beam_jobs.io.storage import MissingError

Groups = list[list[int]]


class Attempt(BaseModel):
    """The record of one attempt at a unit; implements `models.nmt.translate.RetryHints`."""

    key: str
    number: int  # 1 for the first attempt
    in_progress: Groups = Field(alias="under_way")  # rows (batches) that the process is working on
    isolated: Groups = Field(alias="apart")  # rows that crashed a process; to translate one by one
    poison: list[int] = Field(alias="fatal")  # rows that crashed a process by themselves
    _path: str = PrivateAttr("")

    def under_way(self, groups: Sequence[Sequence[int]]) -> None:
        """Record the groups of rows that are in progress from now on."""
        self.in_progress = [list(map(int, group)) for group in groups]
        storage.write_bytes(self._path, self.model_dump_json(by_alias=True).encode())

    def over(self) -> None:
        """Remove the record: the unit is finished."""
        storage.remove(self._path)


def begin(folder: str, name: str, key: str) -> Attempt:
    """Begin an attempt at a unit, with what earlier attempts at the same work recorded."""
    path = storage.join(folder, "attempts", f"{name}.json")
    attempt = _read(path)
    if attempt is None or attempt.key != key:
        attempt = Attempt(key=key, number=0, under_way=[], apart=[], fatal=[])
    attempt._path = path
    attempt.number += 1
    if crashed := attempt.in_progress:
        rows = {row for group in crashed for row in group}
        attempt.isolated = [group for group in attempt.isolated if rows.isdisjoint(group)]
        if len(rows) == 1:
            attempt.poison += rows
        elif len(crashed) == 1:  # a batch: isolate its sentences
            attempt.isolated += [[row] for row in crashed[0]]
        else:
            attempt.isolated += crashed
    attempt.under_way([])
    return attempt


def _read(path: str) -> Attempt | None:
    try:
        return Attempt.model_validate_json(storage.read_bytes(path))
    except (MissingError, ValueError):
        return None
