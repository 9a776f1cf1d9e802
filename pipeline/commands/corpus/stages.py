"""The commands that run stages: `paraloom corpus`, `paraloom score`, `paraloom train-nmt` …"""

from typing import Annotated

import typer

from paraloom.pipeline import run
from paraloom.pipeline.commands.options import Changes, ConfigFile, On, OnInterrupt, beam_options
from paraloom.pipeline.config import read_config
from paraloom.pipeline.stages import STAGES, select

TARGETS: dict[str | None, tuple[str, ...]] = {
    "corpus": tuple(stage.name for stage in STAGES[STAGES.index(select.STAGE) :]),
    "ingest": ("ingest",),
    "back-translate": ("back_translate",),
    "score": ("score",),
    "bucket": ("bucket",),
    "select": ("select",),
    "train-nmt": ("nmt",),
    "train-paragram": ("paragram",),
    "train-embeddings": ("embeddings", "evaluate"),
}
"""The stages that each command brings up to date, with all that they depend on."""


def command(
    context: typer.Context,
    config: ConfigFile,
    changes: Changes = None,
    force: Annotated[bool, typer.Option("--force", help="Re-run even if up to date.")] = False,
    on: On = None,
    on_interrupt: OnInterrupt = None,
) -> None:
    """Stages that are up to date are not run again; an interrupted run resumes."""
    targets = TARGETS[context.info_name]
    beam = beam_options(context, on, on_interrupt)
    run.run_stages(read_config(config, changes or ()), targets, beam, force=force)
