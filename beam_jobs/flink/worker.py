"""A Python worker of a pool: told by the runner where to call, it runs in the job's own folder.

The pool starts one for each that a TaskManager asks for, as the container of a worker image would
be started (Beam's container contract), from the packages that are installed here.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import grpc
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.portability.api import beam_provision_api_pb2, beam_provision_api_pb2_grpc
from apache_beam.portability.api.org.apache.beam.model.pipeline.v1.endpoints_pb2 import (
    ApiServiceDescriptor,
)
from google.protobuf import json_format, text_format


class FolderOptions(PipelineOptions):
    """Where relative paths of a job begin."""

    @classmethod
    def _add_argparse_args(cls, parser: Any) -> None:
        parser.add_argument("--working_directory", help="for workers that see the same disk")


def environment(
    worker: str, options: Mapping[str, Any], control: str, logging: str
) -> dict[str, str]:
    """What Beam's worker reads when it starts."""

    def descriptor(url: str) -> str:
        return text_format.MessageToString(ApiServiceDescriptor(url=url))

    return {
        "WORKER_ID": worker,
        "PIPELINE_OPTIONS": json.dumps(options),
        "CONTROL_API_SERVICE_DESCRIPTOR": descriptor(control),
        "LOGGING_API_SERVICE_DESCRIPTOR": descriptor(logging),
    }


def main() -> None:
    """Ask for the job's options, then be Beam's worker."""
    parser = argparse.ArgumentParser()
    for name in ("id", "logging_endpoint", "artifact_endpoint", "provision_endpoint"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--control_endpoint", required=True)
    given = parser.parse_args()
    with grpc.insecure_channel(given.provision_endpoint) as channel:
        service = beam_provision_api_pb2_grpc.ProvisionServiceStub(channel)
        request = beam_provision_api_pb2.GetProvisionInfoRequest()
        info = service.GetProvisionInfo(request, metadata=(("worker_id", given.id),)).info
    options = json_format.MessageToDict(info.pipeline_options)
    folder = options.get("beam:option:working_directory:v1")
    if folder and Path(folder).is_dir():
        os.chdir(folder)
    os.environ.update(
        environment(given.id, options, given.control_endpoint, given.logging_endpoint)
    )
    from apache_beam.runners.worker.sdk_worker_main import main as beam_worker

    beam_worker([])


if __name__ == "__main__":
    main()
