"""A Python worker of Flink's worker pool. It uses the packages installed on this machine."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import grpc
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.portability.api import beam_provision_api_pb2, beam_provision_api_pb2_grpc
from google.protobuf import json_format

from paraloom.beam_jobs.runners.local.worker import environment, hide_options


class FolderOptions(PipelineOptions):
    """A Beam option for the folder in which a job's relative paths begin."""

    @classmethod
    def _add_argparse_args(cls, parser: Any) -> None:
        parser.add_argument("--working_directory", help="for workers that share this folder")


def main(arguments: Sequence[str]) -> None:
    """Request the job's options, enter the job's folder if it exists here, and run Beam's worker.

    `arguments` are the worker's id and the addresses of Beam's provision, control and logging
    services.
    """
    worker, provision, control, logging = arguments
    with grpc.insecure_channel(provision) as channel:
        service = beam_provision_api_pb2_grpc.ProvisionServiceStub(channel)
        request = beam_provision_api_pb2.GetProvisionInfoRequest()
        info = service.GetProvisionInfo(request, metadata=(("worker_id", worker),)).info
    options = json_format.MessageToDict(info.pipeline_options)
    folder = options.get("beam:option:working_directory:v1")
    if folder and Path(folder).is_dir():
        os.chdir(folder)
    os.environ.update(environment(worker, json.dumps(options), control, logging))
    hide_options()
    from apache_beam.runners.worker.sdk_worker_main import main as beam_worker

    beam_worker([])
