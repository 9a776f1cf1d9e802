"""A pool of Python workers for all TaskManagers of one machine.

Every TaskManager numbers its workers separately. Beam's worker pool stops workers by number, so one
TaskManager could stop another TaskManager's worker. In this pool, a worker ends when its
TaskManager disconnects.

The pool runs any code that it receives. It therefore listens on loopback only.
"""

import argparse
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
from apache_beam.portability.api import beam_fn_api_pb2, beam_fn_api_pb2_grpc

from paraloom.beam_jobs.runners.flink import worker
from paraloom.beam_jobs.runners.local.fork_server import fork_server
from paraloom.beam_jobs.runners.loopback import LOOPBACK
from paraloom.models.printing import say, show


class WorkerPool(beam_fn_api_pb2_grpc.BeamFnExternalWorkerPoolServicer):
    """Starts one process per worker that a TaskManager requests."""

    def StartWorker(self, request: Any, context: Any) -> Any:  # noqa: N802 (gRPC's name)
        """Start a worker that connects to the addresses in the request."""
        ends = request.provision_endpoint, request.control_endpoint, request.logging_endpoint
        arguments = [request.worker_id, *(end.url for end in ends)]
        try:
            started = fork_server.start(worker.__name__, arguments)
            threading.Thread(target=started.wait, daemon=True).start()  # reads the exit code
        except OSError as error:
            return beam_fn_api_pb2.StartWorkerResponse(error=str(error))
        return beam_fn_api_pb2.StartWorkerResponse()

    def StopWorker(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Do nothing: the worker ends when its TaskManager disconnects."""
        return beam_fn_api_pb2.StopWorkerResponse()


def listen(port: int) -> tuple[grpc.Server, str]:
    """Start a server with a pool; return the server and its address."""
    server = grpc.server(ThreadPoolExecutor())
    port = server.add_insecure_port(f"{LOOPBACK}:{port}")
    beam_fn_api_pb2_grpc.add_BeamFnExternalWorkerPoolServicer_to_server(WorkerPool(), server)
    server.start()
    return server, f"{LOOPBACK}:{port}"


def main() -> int:
    """Serve until SIGINT or SIGTERM; return 0, or 2 if the port cannot be used."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--service_port", type=int, required=True)
    given = parser.parse_args()
    fork_server.prepare()
    try:
        server, address = listen(given.service_port)
    except RuntimeError as error:  # gRPC's error names the address
        say(f"paraloom: --service_port: {error}")
        return 2
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: sys.exit())
    show(f"worker pool at {address}")
    server.wait_for_termination()
    return 0


if __name__ == "__main__":
    sys.exit(main())
