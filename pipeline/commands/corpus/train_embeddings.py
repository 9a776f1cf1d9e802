"""`paraloom train-embeddings`: trains an encoder on a run's corpus, or on files of pairs."""

import json
from typing import Annotated

import typer

from paraloom.models.errors import UserError
from paraloom.pipeline.commands.options import Changes, Named, OnInterrupt, beam_options, option
from paraloom.pipeline.config import read_config
from paraloom.pipeline.run import make
from paraloom.pipeline.stages import TARGETS


def command(
    context: typer.Context,
    config: Annotated[str | None, option("FILE", "Configuration (YAML).", "--config")] = None,
    selection: Named = "",
    pairs: Annotated[
        list[str] | None,
        option(
            "FILE",
            "Train on these pairs instead of a corpus: Parquet, tab-separated (plain or gzip), "
            "or a folder of Parquet; repeatable.",
        ),
    ] = None,
    out: Annotated[str | None, option("DIR", "Run folder; the encoder is DIR/embeddings.")] = None,
    changes: Changes = None,
    force: Annotated[bool, typer.Option("--force", help="Re-run even if up to date.")] = False,
    on_interrupt: OnInterrupt = None,
) -> None:
    """With --pairs, no configuration is needed: --out names the run folder, and --set sets
    options such as embeddings.development. To name columns, or to weight several files, set
    embeddings.pairs in a configuration.

    Stages that are up to date are not run again; an interrupted run resumes.
    """
    if config is None and not (pairs and out):
        raise UserError("train-embeddings: give --config FILE, or --pairs FILE and --out DIR")
    if pairs and selection:
        raise UserError("train-embeddings: give --pairs or --selection, not both")
    own = [f"run={json.dumps(out)}"] if out else []
    if pairs:
        own.append(f"embeddings.pairs={json.dumps([{'paths': pairs}])}")
    beam = beam_options(context, on_interrupt)
    read = read_config(config, [*own, *(changes or ())])
    make.run_stages(read, TARGETS["train-embeddings"], beam, force=force, selection=selection)
