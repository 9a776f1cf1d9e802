"""The commands that run stages: `paraloom corpus`, `paraloom score`, `paraloom train-nmt` …"""

from typing import Annotated

import typer

from paraloom.pipeline.commands.options import Changes, ConfigFile, OnInterrupt, beam_options
from paraloom.pipeline.config import read_config
from paraloom.pipeline.run import make
from paraloom.pipeline.stages import TARGETS


def command(
    context: typer.Context,
    config: ConfigFile,
    changes: Changes = None,
    force: Annotated[bool, typer.Option("--force", help="Re-run even if up to date.")] = False,
    on_interrupt: OnInterrupt = None,
) -> None:
    """Stages that are up to date are not run again; an interrupted run resumes."""
    targets = TARGETS[context.info_name]
    beam = beam_options(context, on_interrupt)
    make.run_stages(read_config(config, changes or ()), targets, beam, force=force)
