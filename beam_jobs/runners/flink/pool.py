"""A pool of Python workers that the TaskManagers of one machine share.

TaskManagers number their workers each by itself. Beam's own pool ends a worker by its number, so
that of two TaskManagers one would end the other's. Here a worker ends when its TaskManager hangs
up, or is gone.
"""

from __future__ import annotations

import argparse
import signal
import sys
from typing import Any

from apache_beam.portability.api import beam_fn_api_pb2
from apache_beam.runners.worker.worker_pool_main import BeamFnExternalWorkerPoolServicer

from beam_jobs.runners.flink import worker
from beam_jobs.runners.local.fork_server import nursery


class Pool(BeamFnExternalWorkerPoolServicer):
    """Starts a process for every worker that is asked for."""

    def StartWorker(self, request: Any, context: Any) -> Any:  # noqa: N802 (gRPC's name)
        """Start a worker that calls back where the request says."""
        ends = ("logging", "artifact", "provision", "control")
        urls = [f"--{e}_endpoint={getattr(request, f'{e}_endpoint').url}" for e in ends]
        try:
            nursery.start(worker.__name__, [f"--id={request.worker_id}", *urls]).leave()
        except OSError as error:
            return beam_fn_api_pb2.StartWorkerResponse(error=str(error))
        return beam_fn_api_pb2.StartWorkerResponse()

    def StopWorker(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Nothing: it notices itself."""
        return beam_fn_api_pb2.StopWorkerResponse()


def main() -> None:
    """Serve until told to end."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--service_port", type=int, required=True)
    nursery.prepare()
    address, server = Pool.start(port=parser.parse_args().service_port)
    print(f"worker pool at {address}", flush=True)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: sys.exit())
    server.wait_for_termination()


if __name__ == "__main__":
    main()
