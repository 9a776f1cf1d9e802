"""Commands that run stages, such as `paraloom corpus`, `score` and `train-nmt`."""

import sys
from shutil import which

import typer

from paraloom.models.printing import say, show
from paraloom.pipeline.commands.options import Changes, ConfigFile, Force, OnInterrupt, beam_options
from paraloom.pipeline.config.read import is_sample, read_config
from paraloom.pipeline.run import make
from paraloom.pipeline.stages import TARGETS

_BEFORE = (
    "The sample has 10,160 rows of Czech and English. Paraloom makes a corpus and an encoder from "
    "these rows, in about 20 s on two cores."
)
_AFTER = """\
Read the corpus as text: {run}/corpus.tsv.gz
Show why a pair was selected: {paraloom} explain {run} fiction-b1-00train-f000001-s4
Write a configuration for your own files: {paraloom} init FILES"""


def command(
    context: typer.Context,
    config: ConfigFile,
    changes: Changes = None,
    force: Force = False,
    on_interrupt: OnInterrupt = None,
) -> None:
    """Stages that are up to date are skipped. An interrupted run resumes."""
    targets = TARGETS[context.info_name]
    beam = beam_options(context, on_interrupt)
    first = is_sample(config) and context.info_name == "corpus"
    if first:
        say(_BEFORE)
    run = make.run_stages(read_config(config, changes or ()), targets, beam, force=force)
    if first:
        program = "paraloom" if which("paraloom") else sys.argv[0]
        show(_AFTER.format(run=run.config.run, paraloom=program))
