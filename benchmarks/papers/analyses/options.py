"""Options and functions that several analyses share."""

from collections.abc import Sequence
from typing import Annotated

import typer

from paraloom.models.embeddings.applications.evaluation import check_distinct
from paraloom.models.embeddings.applications.opened import OpenedModel, open_model
from paraloom.models.embeddings.datasets.similarity import LabelledPairs, read_sick, read_sts
from paraloom.models.errors import UserError
from paraloom.pipeline.run.notices import notify, of_models

Sts = Annotated[
    str | None, typer.Option(metavar="DIR", help="Folder of STS (<year>/<data set>.tsv).")
]


def open_models(names: Sequence[str], data: str) -> list[OpenedModel]:
    """Open models, and print a notice for each model that is not for English `data`."""
    check_distinct(names, "models")
    opened = [open_model(name) for name in names]
    notify(of_models({each.name: each.encoder.language for each in opened if each.encoder}, data))
    return opened


def labelled_pairs(sts: str | None, sick: str | None) -> list[LabelledPairs]:
    """Read the data sets that `--sts` and `--sick` name."""
    if not (sts or sick):
        raise UserError("nothing to evaluate on; give --sts DIR, --sick DIR or both")
    return [*(read_sts(sts) if sts else []), *(read_sick(sick) if sick else [])]
