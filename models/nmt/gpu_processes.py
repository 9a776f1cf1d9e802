"""One decoding process per GPU, because one Python process can feed only two or three GPUs."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from multiprocessing import Pipe, get_context
from multiprocessing.connection import Connection
from queue import SimpleQueue
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from paraloom.models.errors import UserError, one_line

if TYPE_CHECKING:
    from paraloom.models.nmt.translate import RetryHints, Translator

_CALLS = 32  # maximum number of concurrent calls per GPU; each call uses a pipe
_ATTRIBUTES = ("compute_type", "converted", "under_way")

Load = Callable[[int], "Translator"]  # loads a translator on the GPU with this index


class GpuProcesses:
    """Translators with one process per GPU. If a process dies, the parent process exits, too."""

    def __init__(self, load: Load, gpus: Sequence[int]) -> None:
        self._free, self._gpus = threading.Condition(), [_Gpu(load, gpu) for gpu in gpus]
        for gpu in self._gpus:
            found = _result(*_received(gpu.control))
        self.compute_type, self.converted, under_way = found
        self._most = 2 * under_way
        self.under_way, self.gpus = self._most * len(gpus), len(gpus)

    def translate(
        self, sentences: pa.Array, hints: RetryHints | None = None, *, seed: int = 1
    ) -> Any:
        """Translate on one GPU, as `Translator.translate` does."""
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
    """Client of a decoding process. The process ends when `control` is closed."""

    def __init__(self, load: Load, gpu: int) -> None:
        self.rows = 0  # sentences in progress
        self.control, *pipes = start(load, gpu)
        self._idle: SimpleQueue[Connection] = SimpleQueue()
        for pipe in pipes:
            self._idle.put(pipe)

    def ask(self, sentences: pa.Array, hints: RetryHints | None, seed: int) -> Any:
        pipe = self._idle.get()
        with suppress(OSError):  # the process has died, which `_received` reports
            pipe.send((sentences, hints and hints.smaller, seed))
        while (answer := _received(pipe))[0] == "rows" and hints:
            hints.under_way(answer[1])
        self._idle.put(pipe)
        return _result(*answer)


def _received(pipe: Connection) -> tuple[str, Any]:
    try:
        return cast(tuple[str, Any], pipe.recv())
    except (EOFError, OSError):
        print("a process that decodes on a GPU died", file=sys.stderr, flush=True)
        os._exit(1)


def _result(kind: str, value: Any) -> Any:
    if kind == "error":
        raise value
    return value


def start(load: Load, gpu: int) -> Sequence[Connection]:
    """Start a decoding process. Return the control pipe, followed by the pipes for calls."""
    ours, theirs = zip(*(Pipe() for _ in range(1 + _CALLS)), strict=True)
    get_context("spawn").Process(target=_run, args=(theirs, load, gpu), daemon=True).start()
    for pipe in theirs:
        pipe.close()
    return list(ours)


def _run(pipes: Sequence[Connection], load: Load, gpu: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the parent, which ends this process
    serve(pipes, load, gpu)
    os._exit(0)


def serve(pipes: Sequence[Connection], load: Load, gpu: int) -> None:
    """Load a translator, and answer calls until the control pipe closes."""
    control, *calls = pipes
    translator: Any = None

    def attributes() -> list[Any]:
        nonlocal translator
        translator = load(gpu)
        return [getattr(translator, name) for name in _ATTRIBUTES]

    with suppress(EOFError, OSError):
        _answer(control, attributes)
        for pipe in calls if translator else ():
            threading.Thread(target=_answer_calls, args=(pipe, translator), daemon=True).start()
        control.recv()


def _answer_calls(pipe: Connection, translator: Any) -> None:
    with suppress(EOFError, OSError):
        while True:
            sentences, smaller, seed = pipe.recv()
            tell = SimpleNamespace(
                smaller=smaller, under_way=lambda rows: pipe.send(("rows", rows))
            )
            hints = tell if smaller else None
            _answer(pipe, partial(translator.translate, sentences, hints, seed=seed))


def _answer(pipe: Connection, work: Callable[[], Any]) -> None:
    try:
        answer = "result", work()
    except Exception as error:
        answer = "error", error if isinstance(error, UserError) else RuntimeError(one_line(error))
    pipe.send(answer)
