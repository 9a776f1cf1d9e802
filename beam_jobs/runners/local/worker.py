"""A worker process on this machine: Beam's worker, which ends with its launcher.

By default, Beam's worker continues after its launcher was killed. The worker could write into a
folder to which the next launcher already writes, and then wait forever.
"""

import logging
import os
import select
import sys
import threading
import time
from collections.abc import Sequence

import psutil
from apache_beam.portability.api.org.apache.beam.model.pipeline.v1.endpoints_pb2 import (
    ApiServiceDescriptor,
)
from google.protobuf import text_format

from paraloom.models.printing import Lossy


def environment(worker: str, options: str, control: str, logging: str) -> dict[str, str]:
    """Return the environment variables that Beam's worker reads. `options` is in JSON."""

    def descriptor(url: str) -> str:
        return str(text_format.MessageToString(ApiServiceDescriptor(url=url)))

    return {
        "WORKER_ID": worker,
        "PIPELINE_OPTIONS": options,
        "CONTROL_API_SERVICE_DESCRIPTOR": descriptor(control),
        "LOGGING_API_SERVICE_DESCRIPTOR": descriptor(logging),
    }


def main(arguments: Sequence[str]) -> None:
    """Run Beam's worker until the launcher or the parent process (the fork server) ends.

    The only argument is the process id of the launcher.
    """
    (launcher,) = arguments
    for process in (int(launcher), os.getppid()):
        threading.Thread(target=_end_with, args=(process,), daemon=True).start()
    sys.stderr = Lossy(sys.stderr)
    hide_options()

    from apache_beam.runners.worker.sdk_worker_main import main

    main([])


def hide_options() -> None:
    """Keep job options out of Beam's logs, because they include access keys of object stores."""
    for name in ("worker.sdk_worker_main", "dataflow.internal.apiclient"):
        logger = logging.getLogger(f"apache_beam.runners.{name}")
        logger.addFilter(lambda record: "options" not in str(record.msg))


def _end_with(launcher: int) -> None:
    try:
        process = os.pidfd_open(launcher)
        select.select([process], [], [])
    except ProcessLookupError:
        pass
    except (AttributeError, OSError):  # macOS, or a kernel without pidfd
        while psutil.pid_exists(launcher):
            time.sleep(1)
    os._exit(1)
