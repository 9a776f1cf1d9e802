"""Two attempts at a unit with different bytes, and the clean-up of its job, in all orders."""

import shutil
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from paraloom.beam_jobs import storage
from paraloom.beam_jobs.engine.shards import Receipt, commit, finished, read_receipt, remove_orphans
from paraloom.beam_jobs.storage import MissingError
from tests.run_helpers import Patch

NO_ROWS = pa.table({"reason": pa.array([], pa.string())})

STEPS: dict[str, Callable[[str], bool]] = {
    "write_bytes": lambda path: True,
    "remove": lambda path: True,
    "read_bytes": lambda path: path.startswith("/_receipts"),
    "names": lambda path: not path,
}
"""The requests that another actor may come before, by the path below the stage's folder: those of
files that others read or write."""


class Memory:
    """An object store that can write an object only if there is none of its name."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}

    def read_bytes(self, path: str) -> bytes:
        if path not in self.files:
            raise MissingError(path)
        return self.files[path]

    def write_bytes(self, path: str, data: bytes, *, replace: bool = True) -> bool:
        written = replace or path not in self.files
        self.files |= {path: data} if written else {}
        return written

    def remove(self, path: str) -> None:
        self.files.pop(path, None)

    def names(self, folder: str) -> list[str]:
        found = (path.rpartition("/") for path in self.files)
        return sorted(name for parent, _, name in found if parent == folder)


class Actor(threading.Thread):
    """Waits before each of its requests to the store, until it is its turn."""

    def __init__(self, work: Callable[[], object]) -> None:
        super().__init__(daemon=True)
        self.work = work
        self.error: BaseException | None = None
        self.turn, self.waits = threading.Semaphore(0), threading.Semaphore(0)
        self.over = False
        self.start()
        self.waits.acquire()

    def run(self) -> None:
        try:
            self.pause()
            self.work()
        except BaseException as error:
            self.error = error
        self.over = True
        self.waits.release()

    def pause(self) -> None:
        self.waits.release()
        self.turn.acquire()

    def go(self) -> None:
        """Make one request, and wait before the next one."""
        self.turn.release()
        self.waits.acquire()
        if self.error:
            raise self.error


def play(folder: str, plan: list[int]) -> list[int]:
    """Play the choices of `plan` and then the first ones; return how many there were each time.

    What was killed makes no request any more. So a kill is an order in which the requests that it
    prevents come last, and the state before them is checked.
    """
    returned: list[Receipt] = []

    def attempt(text: str) -> None:
        piece = ("part-0", pa.table({"id": [text]}), NO_ROWS)
        returned.append(commit(folder, "part-0", "key", 1, [piece], started=0))

    def clean_up() -> None:
        remove_orphans(folder, [r for r in [read_receipt(folder, "part-0")] if r])

    attempts = [Actor(lambda: attempt("one")), Actor(lambda: attempt("another"))]
    cleaner = Actor(clean_up)
    choices: list[int] = []
    while True:
        job_is_over = bool(returned)
        actors = [a for a in (*attempts, *([cleaner] if job_is_over else [])) if not a.over]
        if not actors:
            break
        choices.append(len(actors))
        actors[plan[len(choices) - 1] if len(choices) <= len(plan) else 0].go()
        whole = finished(folder, "part-0", "key")
        assert whole or (read_receipt(folder, "part-0") is None and not returned)
        assert all(receipt == whole for receipt in returned)
    clean_up()  # by the next command
    assert finished(folder, "part-0", "key") == returned[0]
    assert [f"{folder}/{name}" for name in storage.names(folder)] == returned[0].paths
    return choices


def following(plan: list[int], choices: list[int]) -> list[int] | None:
    """The plan after one that had so many choices: depth first; None after the last one."""
    full = plan + [0] * (len(choices) - len(plan))
    while full and full[-1] + 1 == choices[len(full) - 1]:
        full.pop()
    return [*full[:-1], full[-1] + 1] if full else None


def test_a_receipt_always_fits_its_part_file(tmp_path: Path, monkeypatch: Patch) -> None:
    """In all orders on an object store; in every hundredth of them on disk."""
    memory, folder = Memory(), f"{tmp_path}/stage"
    real = {name: getattr(storage, name) for name in STEPS}
    store: dict[str, Any] = {}

    def request(name: str, path: str, *more: Any, **options: Any) -> Any:
        actor = threading.current_thread()
        if isinstance(actor, Actor) and STEPS[name](path.removeprefix(folder)):
            actor.pause()
        return store[name](path, *more, **options)

    for name in STEPS:
        monkeypatch.setattr(storage, name, partial(request, name))
    plan: list[int] | None = []
    played = 0
    while plan is not None:
        store = {name: getattr(memory, name) for name in STEPS}
        choices = play(folder, plan)
        if played % 100 == 0:
            store = real
            assert play(folder, plan) == choices
            shutil.rmtree(folder)
        plan = following(plan, choices)
        memory.files.clear()
        played += 1
    assert played > 500
