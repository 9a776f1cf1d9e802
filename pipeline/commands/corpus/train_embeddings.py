"""`paraloom train-embeddings`: trains an encoder on the corpus of a run or on files of pairs."""

import json
from typing import Annotated

import typer

from paraloom.models.errors import UserError
from paraloom.pipeline.commands.options import (
    Changes,
    Force,
    Named,
    OnInterrupt,
    beam_options,
    option,
)
from paraloom.pipeline.config import read_config
from paraloom.pipeline.run import make
from paraloom.pipeline.stages import TARGETS


def command(
    context: typer.Context,
    config: Annotated[str | None, option("FILE", "Configuration in YAML.", "--config")] = None,
    selection: Named = "",
    pairs: Annotated[
        list[str] | None,
        option(
            "FILE",
            "Instead of a corpus, train on the pairs in this file (Parquet, tab-separated text, "
            "CSV, JSON Lines) or folder of Parquet files. Repeatable.",
        ),
    ] = None,
    out: Annotated[str | None, option("DIR", "Run folder. The encoder is DIR/embeddings.")] = None,
    changes: Changes = None,
    force: Force = False,
    on_interrupt: OnInterrupt = None,
) -> None:
    """With --pairs and --out, no configuration is needed.

    --set changes configuration keys such as embeddings.development. If the columns of a file have
    names other than reference and translation, or if there are hard negatives, set embeddings.pairs
    in a configuration.

    Stages that are up to date are skipped. An interrupted run resumes.
    """
    if config is None and not (pairs and out):
        raise UserError("train-embeddings: give --config FILE, or --pairs FILE and --out DIR")
    if pairs and selection:
        raise UserError("train-embeddings: give --pairs or --selection, not both")
    own = [f"run={json.dumps(out, ensure_ascii=False)}"] if out else []
    if pairs:
        own.append(f"embeddings.pairs={json.dumps([{'paths': pairs}], ensure_ascii=False)}")
    beam = beam_options(context, on_interrupt)
    read = read_config(config, [*own, *(changes or ())])
    make.run_stages(read, TARGETS["train-embeddings"], beam, force=force, selection=selection)
