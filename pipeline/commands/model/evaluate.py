"""`paraloom evaluate`: evaluates models on STS and SICK, and measures their speed and size."""

from typing import Annotated

import numpy as np
import pyarrow as pa

from paraloom.models.embeddings.applications.evaluation import check_distinct, evaluate_models
from paraloom.models.embeddings.applications.opened import cost, open_model
from paraloom.models.embeddings.datasets.similarity import read_sick, read_sts
from paraloom.models.errors import UserError
from paraloom.pipeline.commands.console import console
from paraloom.pipeline.commands.options import JsonFile, OpenModels, Sick, option, write_json
from paraloom.pipeline.run.notices import notify, of_models


def command(
    model: OpenModels,
    sts: Annotated[
        list[str] | None,
        option("DIR", "Folder of STS (<year>/<data set>.tsv) or the STS Benchmark. Repeatable."),
    ] = None,
    sick: Sick = None,
    json: JsonFile = None,
) -> None:
    """Print a table with one column for each model. --sts, --sick or both are needed."""
    if not (sts or sick):
        raise UserError("evaluate: nothing to evaluate on; give --sts DIR, --sick DIR or both")
    check_distinct(model, "models")
    data = read_sts(*(sts or ()))
    data += read_sick(sick) if sick else []
    opened = [open_model(name) for name in model]
    if sick:
        notify(of_models({of.name: of.encoder.language for of in opened if of.encoder}, "SICK is"))
    report = evaluate_models(data, [each.evaluated for each in opened])
    distinct = pa.concat_arrays([side for of in data for side in (of.first, of.second)]).unique()
    order = np.random.default_rng(1).permutation(len(distinct))
    sentences = distinct.take(pa.array(order)).to_pylist()
    costs = [cost(each, sentences) for each in opened]
    table = report.table()
    table.add_row("sentences/s", "", *(f"{each.sentences_per_second:,.0f}" for each in costs))
    table.add_row("batch size", "", *(f"{each.batch_size:,}" for each in costs))
    table.add_row("size on disk, MB", "", *(f"{each.bytes_on_disk / 1e6:,.1f}" for each in costs))
    console().print(table)
    by_model = {name: each._asdict() for name, each in zip(model, costs, strict=True)}
    write_json(json, report.json() | {"costs": {"models": by_model}})
