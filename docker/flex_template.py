"""The program of the Flex Template: a Dataflow job with one worker, which gives a command.

The service wants one pipeline, at once, from a template's program. A command submits several jobs,
one after another, and trains between them; so it runs on a worker of a job of its own. If that
worker is lost, the service lets another give the command again, which finds the job at work.
"""

import argparse
import logging
import shlex
import subprocess
import sys

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions, WorkerOptions

FORWARDED = (
    *("project", "region", "temp_location", "dataflow_endpoint", "service_account_email"),
    *("sdk_container_image", "network", "subnetwork"),
)
"""Options of this job that those of the command's jobs have too."""


def arguments(own: argparse.Namespace, options: PipelineOptions) -> list[str]:
    """The arguments of the command."""
    given = options.get_all_options(drop_default=True)
    changes = [word for change in shlex.split(own.changes) for word in ("--set", change)]
    forwarded = [f"--{name}={given[name]}" for name in FORWARDED if given.get(name)]
    if options.view_as(WorkerOptions).use_public_ips is False:
        forwarded.append("--no_use_public_ips")
    beam = ["--runner=DataflowRunner", *forwarded, *shlex.split(own.beam)]
    return [own.command, "--config", own.config, *changes, "--", *beam]


def give(command: list[str]) -> None:
    """Give the command on this worker; what it prints goes to the job's log."""
    from paraloom.beam_jobs.io import remote
    from paraloom.models.errors import UserError

    place = command.index("--config") + 1
    command[place] = remote.localise(command[place])
    line = ""
    with subprocess.Popen(
        [sys.executable, "-m", "paraloom.pipeline.cli", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        for line in process.stdout or ():
            logging.warning("%s", line.rstrip())
    if process.returncode:
        raise UserError(line.strip().removeprefix("paraloom: "))


PARSER = argparse.ArgumentParser()
PARSER.add_argument("--config", required=True)
PARSER.add_argument("--command", default="corpus")
for name in ("changes", "beam"):  # several words, quoted as in a shell
    PARSER.add_argument(f"--{name}", default="")

if __name__ == "__main__":
    own, more = PARSER.parse_known_args()
    options = PipelineOptions(more)
    workers = options.view_as(WorkerOptions)
    workers.num_workers = workers.max_num_workers = 1
    command = arguments(own, options)  # before Beam changes the places of files
    pipeline = beam.Pipeline(options=options)
    pipeline | beam.Create([command]) | "Command" >> beam.Map(give)
    pipeline.run()
