"""`paraloom decoder-spaces`: encoder and decoder vectors on STS (Zhelezniak et al. 2018)."""

from typing import Annotated

import typer
from rich.table import Table

from paraloom.models.embeddings.applications.decoder_spaces import compare_spaces
from paraloom.models.embeddings.model import load_encoder
from paraloom.models.errors import UserError
from paraloom.pipeline.commands.options import (
    JsonFile,
    Model,
    Sick,
    Sts,
    labelled_pairs,
    write_json,
)
from paraloom.pipeline.console import console


def command(
    model: Model,
    steps: Annotated[int, typer.Option(metavar="N", help="Words to unroll decoders for.")] = 10,
    sts: Sts = None,
    sick: Sick = None,
    json: JsonFile = None,
) -> None:
    """Compare the encoder's vector with the decoders' states, by dot product and cosine.

    The model must be one that was trained with `embeddings.task: context`.
    """
    if steps < 1:
        raise UserError(f"--steps {steps}: must be at least 1")
    data = labelled_pairs("decoder-spaces", sts, sick)
    found = compare_spaces(load_encoder(model), data, steps=steps)
    groups = dict.fromkeys(pairs.group for pairs in data)
    for compare, title in (("dot", "Dot product"), ("cosine", "Cosine")):
        table = Table("vector", *groups, title=title, caption="mean Pearson / Spearman × 100")
        for space, of in found.items():
            pearson, spearman = of[compare], of[f"{compare}_spearman"]
            table.add_row(str(space), *(f"{pearson[g]:.1f} / {spearman[g]:.1f}" for g in groups))
        console().print(table)
    write_json(json, {str(space): of for space, of in found.items()})
