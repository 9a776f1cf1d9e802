"""A pool of Python workers that the TaskManagers of one machine share.

Each TaskManager numbers its own workers. Beam's own pool stops workers by number, so that one
TaskManager would stop a worker of another. Here a worker ends when its TaskManager closes the
connection or dies.
"""

import argparse
import signal
import sys
from typing import Any

from apache_beam.portability.api import beam_fn_api_pb2
from apache_beam.runners.worker.worker_pool_main import BeamFnExternalWorkerPoolServicer

from beam_jobs.runners.flink import worker
from beam_jobs.runners.local.fork_server import fork_server


class Pool(BeamFnExternalWorkerPoolServicer):
    """Starts a process for every worker that a TaskManager requests."""

    def StartWorker(self, request: Any, context: Any) -> Any:  # noqa: N802 (gRPC's name)
        """Start a worker that connects to the addresses in the request."""
        ends = ("logging", "artifact", "provision", "control")
        urls = [f"--{e}_endpoint={getattr(request, f'{e}_endpoint').url}" for e in ends]
        try:
            fork_server.start(worker.__name__, [f"--id={request.worker_id}", *urls]).leave()
        except OSError as error:
            return beam_fn_api_pb2.StartWorkerResponse(error=str(error))
        return beam_fn_api_pb2.StartWorkerResponse()

    def StopWorker(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Do nothing: the worker ends by itself."""
        return beam_fn_api_pb2.StopWorkerResponse()


def main() -> None:
    """Serve until SIGINT or SIGTERM."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--service_port", type=int, required=True)
    fork_server.prepare()
    address, server = Pool.start(port=parser.parse_args().service_port)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: sys.exit())
    print(f"worker pool at {address}", flush=True)
    server.wait_for_termination()


if __name__ == "__main__":
    main()
