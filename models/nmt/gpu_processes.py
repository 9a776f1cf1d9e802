"""A process per GPU: the Python of one process keeps two or three GPUs busy, not eight."""

from __future__ import annotations

import os
import signal
import sys
import threading
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from itertools import count
from multiprocessing import Pipe, get_context
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from paraloom.models.errors import UserError, one_line

if TYPE_CHECKING:
    from paraloom.models.nmt.translate import RetryHints, Translator

_CALLS = 64  # at once, per GPU
_ATTRIBUTES = ("compute_type", "converted", "under_way")

Load = Callable[[int], "Translator"]
"""Loads a translator that decodes on one GPU."""


class GpuProcesses:
    """Translators on GPUs, each in a process; to be used like one `Translator`.

    A call goes to the GPU with the fewest sentences under way, and waits while all have enough. If
    a process dies, so does this one, as if it had decoded itself.
    """

    def __init__(self, load: Load, gpus: Sequence[int]) -> None:
        """Load a translator in each process."""
        self._free, self._gpus = threading.Condition(), [_Gpu(start(load, gpu)) for gpu in gpus]
        self._finalizer = weakref.finalize(self, _end, self._gpus)
        for gpu in self._gpus:
            found = gpu.loaded.result()
        self.compute_type, self.converted, under_way = found
        self._most = 2 * under_way
        self.under_way = self._most * len(gpus)

    def translate(
        self, sentences: pa.Array, hints: RetryHints | None = None, *, seed: int = 1
    ) -> Any:
        """Translate on one GPU; see `Translator.translate`."""
        rows = len(sentences)
        with self._free:
            while (gpu := min(self._gpus, key=lambda gpu: gpu.rows)).rows:
                if gpu.rows + rows <= self._most:
                    break
                self._free.wait()
            gpu.rows += rows
        try:
            return gpu.ask(sentences, hints, seed)
        finally:
            with self._free:
                gpu.rows -= rows
                self._free.notify_all()


class _Gpu:
    """This process's side of one that decodes."""

    def __init__(self, connection: Connection) -> None:
        self.rows = 0  # under way
        self.loaded: Future[Any] = Future()
        self.ended = False
        self._connection, self._sending, self._numbers = connection, threading.Lock(), count(1)
        self._calls: dict[int, tuple[Future[Any], RetryHints | None]] = {0: (self.loaded, None)}
        threading.Thread(target=self._listen, daemon=True).start()

    def ask(self, sentences: pa.Array, hints: RetryHints | None, seed: int) -> Any:
        call, found = next(self._numbers), Future[Any]()
        self._calls[call] = found, hints
        self.send((call, sentences, hints and hints.smaller, seed))
        return found.result()

    def send(self, message: Any) -> None:
        with self._sending:
            self._connection.send(message)

    def _listen(self) -> None:
        try:
            while True:
                call, kind, value = self._connection.recv()
                found, hints = self._calls[call]
                if kind == "rows" and hints:
                    hints.under_way(value)
                    continue
                del self._calls[call]
                if kind == "error":
                    found.set_exception(value)
                else:
                    found.set_result(value)
        except (EOFError, OSError):
            if not self.ended and not (self.loaded.done() and self.loaded.exception()):
                print("a process that decodes on a GPU died", file=sys.stderr, flush=True)
                os._exit(1)


def _end(gpus: Sequence[_Gpu]) -> None:
    for gpu in gpus:
        gpu.ended = True
        with suppress(OSError):  # it could not load the model
            gpu.send(None)


def start(load: Load, gpu: int) -> Connection:
    """Start a process that decodes; return the connection to it."""
    ours, theirs = Pipe()
    get_context("spawn").Process(target=_run, args=(theirs, load, gpu), daemon=True).start()
    theirs.close()
    return ours


def _run(connection: Connection, load: Load, gpu: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it ends with the other side
    serve(connection, load, gpu)
    os._exit(0)


class _Hints(NamedTuple):
    """Reports the rows of a batch to the other side."""

    smaller: int
    under_way: Callable[[Sequence[int]], None]


def serve(connection: Connection, load: Load, gpu: int) -> None:
    """Load a translator, and answer calls until the other side ends."""
    sending = threading.Lock()
    translator: Any = None

    def tell(call: int, kind: str, value: Any) -> None:
        with sending:
            connection.send((call, kind, value))

    def answer(call: int, work: Callable[[], Any]) -> None:
        try:
            tell(call, "result", work())
        except Exception as error:
            known = isinstance(error, UserError)
            tell(call, "error", error if known else RuntimeError(one_line(error)))

    def attributes() -> list[Any]:
        nonlocal translator
        translator = load(gpu)
        return [getattr(translator, name) for name in _ATTRIBUTES]

    answer(0, attributes)
    threads = ThreadPoolExecutor(_CALLS)

    def translate(call: int, sentences: pa.Array, smaller: int | None, seed: int) -> None:
        hints = _Hints(smaller, partial(tell, call, "rows")) if smaller else None
        answer(call, lambda: translator.translate(sentences, hints, seed=seed))

    while translator and (given := _next(connection)):
        threads.submit(translate, *given)
    threads.shutdown(wait=False, cancel_futures=True)


def _next(connection: Connection) -> Any:
    try:
        return connection.recv()
    except (EOFError, OSError):
        return None
