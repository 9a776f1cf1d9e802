"""`paraloom evaluate`: models on STS and SICK; their speed and size."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated

import numpy as np
import pyarrow as pa
import typer

from paraloom.models.embeddings.applications.cost import costs, how_measured, memory_of
from paraloom.models.embeddings.applications.cost_table import costs_json
from paraloom.models.embeddings.applications.evaluation import check_distinct, evaluate_on
from paraloom.models.embeddings.applications.opened import open_model
from paraloom.models.embeddings.datasets.similarity import LabelledPairs, read_sick, read_sts
from paraloom.models.errors import UserError
from paraloom.models.files import atomic_file, check_writable
from paraloom.pipeline.commands.model.comparison_page import comparison_page, short_names
from paraloom.pipeline.commands.options import JsonFile, OpenModels, Sick, write_json
from paraloom.pipeline.console import console
from paraloom.pipeline.notices import notify, of_models


def command(
    model: OpenModels,
    sts: Annotated[
        list[str] | None,
        typer.Option(
            metavar="DIR",
            help="Folder with <year>/<data set>.tsv, or of the STS Benchmark; repeatable.",
        ),
    ] = None,
    sick: Sick = None,
    json: JsonFile = None,
    html: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Also write a page: the table, quality against speed."),
    ] = None,
) -> None:
    """Give --sts, --sick or both. Several models stand side by side, with sentences/s, size on disk
    and memory.
    """
    if not (sts or sick):
        raise UserError("evaluate: nothing to evaluate on; give --sts DIR, --sick DIR or both")
    check_distinct(model, "models")
    if html:
        check_writable(Path(html))
    data = [pairs for folder in sts or () for pairs in read_sts(folder)]
    data += read_sick(sick) if sick else []
    opened = [open_model(name) for name in model]
    if sick:
        notify(of_models([(each.name, each.encoder) for each in opened if each.encoder], "SICK is"))
    sentences = _sentences(data)
    with ThreadPoolExecutor(1) as executor:
        memories = executor.map(lambda name: memory_of(name, sentences), model)
        report = evaluate_on(data, [each.evaluated for each in opened])
        measured = costs(opened, sentences, list(memories))
    how = how_measured(len(sentences))
    console().print(report.table(measured, how, short_names(model) if len(model) > 1 else model))
    if html:
        with atomic_file(Path(html)) as path:
            path.write_text(comparison_page(report, measured, how), encoding="utf-8")
    write_json(json, report.json() | {"costs": costs_json(model, measured, how)})


def _sentences(data: list[LabelledPairs]) -> list[str]:
    """The distinct sentences of all data sets, mixed."""
    sides = [side for pairs in data for side in (pairs.first, pairs.second)]
    distinct = pa.concat_arrays(sides).unique()
    order = np.random.default_rng(1).permutation(len(distinct))
    found: list[str] = distinct.take(pa.array(order)).to_pylist()
    return found
