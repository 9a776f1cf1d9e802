"""A fork server: workers are forked from a process that has already imported their modules.

Every job starts new workers. Importing Beam and Arrow takes two seconds of CPU time, but a
fork takes milliseconds. The server itself starts no threads, so no lock is held when it forks.

    launcher  --(module, arguments, environment; stderr, a pipe)-->  fork server
    fork server  --fork-->  worker
    launcher  <--(exit code)--  the pipe, from the fork server

The standard library's fork server is not used, because its workers run the launcher's main module
again, and because it leaves a temporary folder if the launcher is killed.
"""

import gc
import importlib
import json
import logging
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import traceback
import warnings
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

_IMPORTED = (
    "apache_beam.runners.worker.sdk_worker_main",
    "paraloom.beam_jobs.back_translate",
    "paraloom.beam_jobs.bucket",
    "paraloom.beam_jobs.ingest",
    "paraloom.beam_jobs.score",
    "paraloom.beam_jobs.select",
)
_SIZE = struct.Struct("I")  # length of a request, sent before the request
_CODE = struct.Struct("i")


class Worker:
    """A process that the fork server started."""

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe

    def wait(self) -> int:
        """Wait until the process ends; return its exit code, or minus the fatal signal."""
        try:
            said = os.read(self._pipe, _CODE.size)
        finally:
            os.close(self._pipe)
        return int(_CODE.unpack(said)[0]) if said else -signal.SIGKILL  # the server was killed


class ForkServer:
    """The launcher's side of the fork server. `prepare` or the first `start` starts the server."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None

    def prepare(self) -> None:
        """Start the server process, which imports modules while the launcher continues."""
        with self._lock:
            self._connected()

    def start(
        self, module: str, arguments: Sequence[str] = (), added: Mapping[str, str] | None = None
    ) -> Worker:
        """Start a worker, which calls `main(arguments)` of `module`.

        The worker has this process's working directory, `sys.path`, stderr and environment. Its
        stdout is redirected to stderr. `added` contains further environment variables.
        """
        request = {
            "module": module,
            "arguments": list(arguments),
            "environment": {**os.environ, **(added or {})},
            "folder": str(Path.cwd()),
            "path": sys.path,
            "interruptible": signal.getsignal(signal.SIGINT) is not signal.SIG_IGN,
        }
        message = json.dumps(request).encode()
        reading, writing = os.pipe()
        try:
            with self._lock:
                try:
                    self._send(message, writing)
                except (BrokenPipeError, ConnectionResetError):  # the server was killed
                    self._socket = None
                    self._send(message, writing)
        except BaseException:
            os.close(reading)
            raise
        finally:
            os.close(writing)
        return Worker(reading)

    def _send(self, message: bytes, pipe: int) -> None:
        server = self._connected()
        socket.send_fds(server, [_SIZE.pack(len(message))], [2, pipe])
        server.sendall(message)

    def _connected(self) -> socket.socket:
        if self._socket is None:
            ours, theirs = socket.socketpair()
            for end in (ours, theirs):  # libraries may have set a default timeout
                end.setblocking(True)
            path = os.pathsep.join(entry or str(Path.cwd()) for entry in sys.path)
            # Block SIGINT until `serve` ignores it. Otherwise, Ctrl-C would print a traceback.
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
            # While the server imports modules, it does not notice that the launcher has ended.
            weakref.finalize(self, server.kill)
            self._socket = ours
        return self._socket


fork_server = ForkServer()  # the fork server of this process


def serve(requests: socket.socket) -> None:
    """Fork a worker for every request, until the launcher ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server ends with the launcher
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    level = logging.root.level
    logging.root.setLevel(logging.ERROR)  # Beam warns about clouds that are not in use
    gc.disable()  # imports leave little garbage, and a collection visits all their objects
    for name in _IMPORTED:
        importlib.import_module(name)
    gc.freeze()  # keeps the memory pages of these objects shared
    gc.enable()
    logging.root.setLevel(level)
    pipes: dict[int, int] = {}  # key: the worker's process id

    def report(*_: object) -> None:
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                pipe = pipes.pop(ended[0])
                with suppress(BrokenPipeError):
                    os.write(pipe, _CODE.pack(os.waitstatus_to_exitcode(ended[1])))
                os.close(pipe)

    signal.signal(signal.SIGCHLD, report)
    # Python 3.12 and later warn if a process with threads forks. Here, the only threads are idle
    # threads of libraries.
    warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
    while True:
        size, descriptors, _, _ = socket.recv_fds(requests, _SIZE.size, 2)
        if not size:
            return
        (length,) = _SIZE.unpack(size)
        stderr, pipe = descriptors
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})  # it would interrupt `recv`
        message = requests.recv(length, socket.MSG_WAITALL)
        try:
            if not (worker := os.fork()):
                for descriptor in (requests.fileno(), pipe, *pipes.values()):
                    os.close(descriptor)
                _work(json.loads(message), stderr)
            pipes[worker] = pipe
        except OSError as error:  # out of memory or processes: the worker counts as dead
            os.write(stderr, f"{type(error).__name__}: {error}\n".encode())
            os.close(pipe)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
        os.close(stderr)


def _work(request: dict[str, Any], stderr: int) -> NoReturn:
    code = 1
    try:
        if request["interruptible"]:  # workers ignore Ctrl-C if the launcher does
            signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
        os.dup2(stderr, 1)
        os.dup2(stderr, 2)
        os.close(stderr)
        os.environ.update(request["environment"])  # imported modules may have changed variables
        os.chdir(request["folder"])
        sys.path[:] = request["path"]
        importlib.import_module(request["module"]).main(request["arguments"])
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else bool(error.code)
    except KeyboardInterrupt:  # the launcher is interrupted, too, and reports it
        code = 130
    except BaseException:
        with suppress(OSError):  # a full disk
            traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, AttributeError):  # a stream is None if the launcher had none
                stream.flush()
        os._exit(code)


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
