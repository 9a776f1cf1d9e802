"""`paraloom evaluate`: models on STS, SICK and transfer tasks."""

from pathlib import Path
from typing import Annotated

import typer

from models.embeddings.applications.evaluation import evaluate_models
from models.embeddings.applications.transfer import transfer
from models.embeddings.model import load_encoder
from models.errors import UserError
from pipeline.commands.options import JsonFile, Models, Sick, Sts, write_json
from pipeline.console import console
from pipeline.notices import notify, of_models


def command(
    model: Models,
    sts: Sts = None,
    sick: Sick = None,
    transfer_tasks: Annotated[
        str | None,
        typer.Option(
            "--transfer", metavar="DIR", help="Folder of MR, CR, SUBJ, MPQA, SST, TREC, MRPC, SICK."
        ),
    ] = None,
    json: JsonFile = None,
) -> None:
    """Give at least one of --sts, --sick and --transfer. Several models stand side by side."""
    if not (sts or sick or transfer_tasks):
        raise UserError(
            "evaluate: nothing to evaluate on; give --sts DIR, --sick DIR or --transfer DIR"
        )
    encoders = [(folder, load_encoder(folder)) for folder in model]
    if sick or transfer_tasks:
        notify(of_models(encoders, "SICK and the transfer tasks are"))
    models = [encoder.named(folder) for folder, encoder in encoders]
    report = evaluate_models(models, sts=sts and Path(sts), sick=sick and Path(sick))
    results = report.json()
    if sts or sick:
        console().print(report.table())
    if transfer_tasks:
        tasks = transfer([(each.name, each.embed) for each in models], transfer_tasks)
        results["transfer"] = tasks.json()
        console().print(tasks.table())
    write_json(json, results)
