"""`paraloom evaluate`: models on STS, SICK, transfer and MTEB tasks; their speed and size."""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import typer

from paraloom.models.embeddings.applications.cost import MemoryMeasurement, costs, how_measured
from paraloom.models.embeddings.applications.cost_table import costs_json
from paraloom.models.embeddings.applications.evaluation import check_distinct, evaluate_on
from paraloom.models.embeddings.applications.mteb_tasks import find_tasks, mteb_table, run_mteb
from paraloom.models.embeddings.applications.opened import OpenedModel, open_model
from paraloom.models.embeddings.applications.transfer import transfer
from paraloom.models.embeddings.datasets.similarity import LabelledPairs, read_sick, read_sts
from paraloom.models.errors import UserError
from paraloom.models.files import atomic_file, check_writable
from paraloom.pipeline.commands.model.comparison_page import comparison_page, short_names
from paraloom.pipeline.commands.options import JsonFile, Sick, write_json
from paraloom.pipeline.console import console
from paraloom.pipeline.notices import notify, of_models


def command(
    model: Annotated[
        list[str],
        typer.Option(
            "--model",
            metavar="DIR",
            help="An encoder, or a model of sentence-transformers: a folder or a name on the Hub; "
            "repeatable.",
        ),
    ],
    sts: Annotated[
        list[str] | None,
        typer.Option(
            metavar="DIR",
            help="Folder with <year>/<data set>.tsv, or of the STS Benchmark; repeatable.",
        ),
    ] = None,
    sick: Sick = None,
    transfer_tasks: Annotated[
        str | None,
        typer.Option(
            "--transfer", metavar="DIR", help="Folder of MR, CR, SUBJ, MPQA, SST, TREC, MRPC, SICK."
        ),
    ] = None,
    mteb: Annotated[
        str | None,
        typer.Option(metavar="TASKS", help="Tasks of the package mteb: STS15,STSBenchmark."),
    ] = None,
    json: JsonFile = None,
    html: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Also write a page: the table, quality against speed."),
    ] = None,
) -> None:
    """Give at least one of --sts, --sick, --transfer and --mteb. Several models stand side by side,
    with sentences/s, size on disk and memory.
    """
    if not (sts or sick or transfer_tasks or mteb):
        raise UserError(
            "evaluate: nothing to evaluate on; give --sts DIR, --sick DIR, --transfer DIR or "
            "--mteb TASKS"
        )
    if html and not (sts or sick):
        raise UserError("evaluate: --html shows results on --sts DIR and --sick DIR; give one")
    check_distinct(model, "models")
    tasks = find_tasks([name.strip() for name in mteb.split(",")]) if mteb else {}
    if html:
        check_writable(Path(html))
    data = [pairs for folder in sts or () for pairs in read_sts(folder)]
    data += read_sick(sick) if sick else []
    opened = [open_model(name) for name in model]
    if sick or transfer_tasks or mteb:
        ours = [(each.name, each.encoder) for each in opened if each.encoder]
        notify(of_models(ours, "SICK, the transfer tasks and those of MTEB are"))
    results: dict[str, Any] = {"models": model, "groups": {}}
    if data:
        results |= _side_by_side(opened, data, html)
        write_json(json, results)  # what follows takes long and may fail
    if transfer_tasks:
        found = transfer([(each.name, each.evaluated.embed) for each in opened], transfer_tasks)
        results["transfer"] = found.json()
        write_json(json, results)
        console().print(found.table())
    if tasks:
        results["mteb"] = run_mteb(opened, tasks, data)
        write_json(json, results)
        console().print(mteb_table(short_names(model), results["mteb"]))


def _side_by_side(
    models: list[OpenedModel], data: list[LabelledPairs], html: str | None
) -> dict[str, Any]:
    """Quality and costs: the table, the page, and the results for --json."""
    names = [each.name for each in models]
    sentences = _sentences(data)
    with MemoryMeasurement(names, sentences) as memory:
        report = evaluate_on(data, [each.evaluated for each in models])
        measured = costs(models, sentences, memory.result())
    how = how_measured(len(sentences))
    shown = short_names(names) if len(names) > 1 else names
    console().print(report.table(measured, how, shown))
    if html:
        with atomic_file(Path(html)) as path:
            path.write_text(comparison_page(report, measured, how), encoding="utf-8")
    return report.json() | {"costs": costs_json(names, measured, how)}


def _sentences(data: list[LabelledPairs]) -> list[str]:
    """The distinct sentences of all data sets, mixed."""
    sides = [side for pairs in data for side in (pairs.first, pairs.second)]
    distinct = pa.concat_arrays(sides).unique()
    order = np.random.default_rng(1).permutation(len(distinct))
    found: list[str] = distinct.take(pa.array(order)).to_pylist()
    return found
