"""A fork server: workers are forked from a process that has already imported their modules.

Every job starts new workers. Importing Beam and Arrow takes two seconds of a core, a fork takes
milliseconds. The server itself starts no threads, so that no lock is held when it forks.

    launcher  --(module, arguments, environment; stderr, a pipe)-->  fork server  --fork-->  worker
    launcher  <--(exit code)--  the pipe

The server also tells every worker which earlier workers crashed, see `runners.crash_recovery`. It
ends with the launcher, so that workers that end with the launcher are not among them.

The standard library's fork server does not replace this one: it searches the current folder for the
modules it imports, its start fails after the server was killed or could not fork, a killed launcher
leaves a temporary folder behind, and starting a worker takes two to three times as long.
"""

import gc
import importlib
import json
import logging
import os
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import traceback
import uuid
import weakref
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from paraloom.models.cpu import cores

_IMPORTED = (
    "apache_beam.runners.worker.sdk_worker_main",
    "paraloom.beam_jobs.back_translate",
    "paraloom.beam_jobs.bucket",
    "paraloom.beam_jobs.ingest",
    "paraloom.beam_jobs.score",
    "paraloom.beam_jobs.select",
)
_REQUEST = 1 << 20  # bytes at most
_CODE = struct.Struct("i")

WORKER = "PARALOOM_WORKER"
"""Environment variable of a worker: its name, which no other worker has."""

CRASHED = "PARALOOM_CRASHED"
"""Environment variable of a worker: the names of workers that a signal killed before it began."""

_REMEMBERED = 100  # workers that crashed
_POLITE = {signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM}
"""Signals by which people and programs end processes; no crash has them."""


class Worker:
    """A process that the fork server started."""

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe

    def wait(self) -> int:
        """Wait for the end of the process; its exit code, or minus the signal that killed it."""
        try:
            said = os.read(self._pipe, _CODE.size)
        finally:
            os.close(self._pipe)
        return _CODE.unpack(said)[0] if said else -signal.SIGKILL  # the server died

    def leave(self) -> None:
        """Do not wait for the process."""
        os.close(self._pipe)


class ForkServer:
    """The launcher's side; the server process starts with the first worker, or with `prepare`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None

    def prepare(self) -> None:
        """Start the server process, which imports modules while the launcher continues."""
        with self._lock:
            self._connected()

    def prepare_for(self, arguments: Sequence[str]) -> None:
        """`prepare`, if jobs with these Beam options will have several workers on this machine."""
        given = " ".join(arguments)
        asked = re.search(r"--direct_num_workers[ =](\d+)", given)
        if "--runner" not in given and (int(asked[1]) if asked else cores()) > 1:
            self.prepare()

    def start(
        self, module: str, arguments: Sequence[str] = (), added: Mapping[str, str] | None = None
    ) -> Worker:
        """Start a worker, which calls `main(arguments)` of `module`.

        It has the working directory, `sys.path`, stderr (also as stdout) and environment of this
        process, and the variables `added`.
        """
        request = {
            "module": module,
            "arguments": list(arguments),
            "environment": {**os.environ, **(added or {})},
            "folder": str(Path.cwd()),
            "path": sys.path,
        }
        message = json.dumps(request).encode()
        reading, writing = os.pipe()
        try:
            with self._lock:
                try:
                    socket.send_fds(self._connected(), [message], [2, writing])
                except (BrokenPipeError, ConnectionResetError):  # it was killed
                    self._socket = None
                    socket.send_fds(self._connected(), [message], [2, writing])
        except BaseException:
            os.close(reading)
            raise
        finally:
            os.close(writing)
        return Worker(reading)

    def _connected(self) -> socket.socket:
        if self._socket is None:
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _REQUEST)
            path = os.pathsep.join(entry or str(Path.cwd()) for entry in sys.path)
            # Only `serve` unblocks it, where it is ignored: until then it would be a traceback.
            blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            try:
                with theirs:
                    server = subprocess.Popen(
                        [sys.executable, "-P", "-m", __name__, str(theirs.fileno())],
                        stdin=subprocess.DEVNULL,
                        env={**os.environ, "PYTHONPATH": path},
                        pass_fds=[theirs.fileno()],
                    )
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
            weakref.finalize(self, server.kill)  # at exit, too: it may still import
            self._socket = ours
        return self._socket


fork_server = ForkServer()
"""The fork server of this process."""


def serve(requests: socket.socket) -> None:
    """Fork a worker for every request and report exit codes, until the launcher has ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # workers end with the launcher
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    before = dict(os.environ)
    level = logging.root.level
    logging.root.setLevel(logging.ERROR)  # Beam warns of clouds that are not in use
    gc.disable()  # modules leave no garbage, and visiting all their objects takes long
    for name in _IMPORTED:
        importlib.import_module(name)
    left = {name: value for name, value in os.environ.items() if before.get(name) != value}
    gc.freeze()  # memory pages with these objects stay shared
    gc.enable()
    logging.root.setLevel(level)
    ended, write = os.pipe()
    os.set_blocking(write, False)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    workers: dict[int, tuple[str, int]] = {}  # by process id: name, pipe
    crashed: deque[str] = deque(maxlen=_REMEMBERED)
    while True:
        ready, _, _ = select.select([requests.fileno(), ended], [], [])
        if ended in ready:
            os.read(ended, 4096)
            crashed.extend(_report(workers))
        if requests.fileno() in ready:
            message, descriptors, _, _ = socket.recv_fds(requests, _REQUEST, 2)
            if not message:
                return
            stderr, pipe = descriptors
            name = uuid.uuid4().hex
            try:
                pid = os.fork()
            except OSError as error:  # no memory, too many processes: report a dead worker
                with suppress(OSError):
                    os.write(stderr, f"{type(error).__name__}: {error}\n".encode())
                os.close(pipe)
            else:
                if not pid:
                    others = (other for _, other in workers.values())
                    for each in (requests.fileno(), ended, write, pipe, *others):
                        os.close(each)
                    request = json.loads(message)
                    request["environment"] |= {WORKER: name, CRASHED: " ".join(crashed)}
                    _work(request, stderr, left)
                workers[pid] = name, pipe
            os.close(stderr)


def _report(workers: dict[int, tuple[str, int]]) -> list[str]:
    """Report the exit codes of workers that have ended; return the names of those that crashed."""
    crashed = []
    while workers:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            break
        name, pipe = workers.pop(pid)
        code = os.waitstatus_to_exitcode(status)
        if code < 0 and -code not in _POLITE:
            crashed.append(name)
        with suppress(BrokenPipeError):
            os.write(pipe, _CODE.pack(code))
        os.close(pipe)
    return crashed


def _work(request: dict[str, Any], stderr: int, left: Mapping[str, str]) -> NoReturn:
    """Run the worker; `left` are the environment variables that imported modules have set."""
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.dup2(stderr, 1)
        os.dup2(stderr, 2)
        os.close(stderr)
        os.environ.clear()
        os.environ.update({**left, **request["environment"]})
        os.chdir(request["folder"])
        sys.path[:] = request["path"]
        importlib.import_module(request["module"]).main(request["arguments"])
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else bool(error.code)
        if code is True:
            with suppress(OSError):
                print(error.code, file=sys.stderr)
    except BaseException:
        with suppress(OSError):  # a full disk
            traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, AttributeError):  # None where the launcher had none
                stream.flush()
        os._exit(code)


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
