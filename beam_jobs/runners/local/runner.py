"""Beam's local runner, with worker processes that may die.

Beam's own runner waits forever for a killed worker, for instance when memory runs out. With this
runner, the pipeline fails, and `retry_on_worker_death` runs it again.
"""

import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import IO, TypeVar

import grpc
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.portability import python_urns
from apache_beam.portability.api import beam_fn_api_pb2, beam_provision_api_pb2
from apache_beam.runners.job.utils import dict_to_struct
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.runners.portability.fn_api_runner.fn_runner import ExtendedProvisionInfo
from apache_beam.runners.portability.fn_api_runner.worker_handlers import (
    SubprocessSdkWorkerHandler,
    WorkerHandler,
)
from apache_beam.transforms.environments import SubprocessSDKEnvironment
from google.protobuf import json_format

from paraloom.beam_jobs.runners.local import worker
from paraloom.beam_jobs.runners.local.fork_server import fork_server
from paraloom.models.errors import UserError
from paraloom.models.printing import INTERRUPTED, say
from paraloom.models.progress import SHOW_CURSOR

_TRIES = 6  # enough to reach batches of one sentence, see `crash_recovery`
_PATIENCE = 10.0  # seconds to wait after Ctrl-C
_LOGGER = logging.getLogger(__name__)
_T = TypeVar("_T")

_deaths: list[str] = []  # how workers died since `retry_on_worker_death` last started a pipeline


def local_runner(options: PipelineOptions) -> FnApiRunner:
    """Make a runner that passes Beam's options to workers, and fails if a worker dies."""
    passed = {
        f"beam:option:{name}:v1": str(value) if type(value) is int else value
        for name, value in options.get_all_options(drop_default=True).items()
        if isinstance(value, str | bool | int | list)
    }
    info = beam_provision_api_pb2.ProvisionInfo(
        retrieval_token="unused", pipeline_options=dict_to_struct(passed)
    )
    return FnApiRunner(
        SubprocessSDKEnvironment.from_command_string(worker.__name__),
        provision_info=ExtendedProvisionInfo(info),
    )


def retry_on_worker_death(
    work: Callable[[], _T], log: Path, done: Callable[[], int], died: Callable[[], str] = lambda: ""
) -> _T:
    """Run a pipeline, and run it again if a worker died. Finished units are not repeated.

    Args:
        log: file with the output of the workers.
        done: returns the number of rows that need not be repeated.
        died: called after a death; returns text that names the units in progress.

    Raises:
        UserError: workers died six times, and no unit was finished between these deaths.
    """
    before, tries = done(), 0
    while True:
        _deaths.clear()
        try:
            return work()
        except UserError:
            raise
        except Exception as error:
            if not _deaths:
                raise
            now, at = done(), died()
            tries = 1 if now > before else tries + 1
            before = now
            if tries == _TRIES:
                raise UserError(
                    f"a worker process died {tries} times in a row{at} (last death: {_deaths[0]}), "
                    f"see {log}; if memory ran out, use fewer workers (-- --direct_num_workers N) "
                    "or smaller shards (input.shard_rows)"
                ) from error
            _LOGGER.error("a worker process died%s (%s); starting again", at, _deaths[0])


@contextmanager
def ends_when_interrupted(terminal: IO[str]) -> Iterator[None]:
    """End this process with exit code 130 if the block still runs 10 seconds after Ctrl-C.

    Beam may wait forever for its workers and threads. Workers end with this process, and the same
    command resumes their unfinished work. A process that ignores Ctrl-C continues to ignore it.
    """
    main = threading.current_thread() is threading.main_thread()  # the main thread receives signals
    if not main or signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        yield
        return
    timer = threading.Timer(_PATIENCE, _end, [terminal])
    timer.daemon = True

    def interrupt(number: int, frame: FrameType | None) -> None:
        if not timer.ident:  # the first Ctrl-C
            timer.start()
            threading.excepthook = _without_lost_workers
        signal.default_int_handler(number, frame)

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        timer.cancel()


def _without_lost_workers(error: threading.ExceptHookArgs) -> None:
    """Suppress gRPC tracebacks from threads that wait for workers after Ctrl-C."""
    if not isinstance(error.exc_value, grpc.RpcError):
        threading.__excepthook__(error)


def _end(terminal: IO[str]) -> None:
    with suppress(OSError):
        if terminal.isatty():
            terminal.write(SHOW_CURSOR)
        say(INTERRUPTED, terminal)
    os._exit(130)


@WorkerHandler.register_environment(python_urns.SUBPROCESS_SDK, bytes)
class _WorkerHandler(SubprocessSdkWorkerHandler):
    """Starts workers with the fork server, and fails requests to a dead worker."""

    _closed = False

    def start_worker(self) -> None:
        variables = worker.environment(
            self.worker_id,
            json_format.MessageToJson(self.provision_info.provision_info.pipeline_options),
            self.control_address,
            self.logging_api_service_descriptor().url,
        )
        self.worker = fork_server.start(worker.__name__, [str(os.getpid())], variables)
        self.worker_thread = threading.Thread(target=self._run, name="run_worker", daemon=True)
        self.worker_thread.start()

    def _run(self) -> None:
        if code := self.worker.wait():
            how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
            _deaths.append(how)
            while not self._closed:  # further requests may follow
                waiting = self.control_conn._futures_by_id
                for name in list(waiting):
                    response = beam_fn_api_pb2.InstructionResponse(instruction_id=name, error=how)
                    waiting.pop(name).set(response)
                time.sleep(0.2)

    def close(self) -> None:
        self._closed = True
        super().close()
