"""`paraloom evaluate`: evaluates models on STS and SICK, and measures their speed and size."""

from typing import Annotated

import numpy as np
import pyarrow as pa
from pydantic import BaseModel

from paraloom.models.embeddings.applications.evaluation import check_distinct, evaluate_models
from paraloom.models.embeddings.applications.opened import cost, open_model
from paraloom.models.embeddings.datasets.similarity import read_sick, read_sts
from paraloom.models.errors import UserError
from paraloom.pipeline.commands.console import console
from paraloom.pipeline.commands.options import JsonFile, OpenModels, Sick, option, write_json
from paraloom.pipeline.run.notices import notify, of_models


class Correlations(BaseModel):
    """The correlations of a model with the labels, × 100. An undefined correlation is None."""

    pearson: float | None
    spearman: float | None


class EvaluatedData(BaseModel):
    """The results on a data set."""

    pairs: int
    unscored: int
    models: dict[str, Correlations]


class EvaluatedYear(BaseModel):
    """The results on SICK, on the STS Benchmark, or on one year of STS."""

    data_sets: dict[str, EvaluatedData]
    missing: list[str]
    mean: dict[str, Correlations] | None = None  # only for years of STS


class MtebTask(BaseModel):
    """A task of MTEB, and the number of its pairs that were found."""

    task: str
    pairs: int
    complete: bool


class Mteb(BaseModel):
    """The results by MTEB's protocol."""

    results: dict[str, dict[str, float | None]]
    tasks: dict[str, MtebTask]


class Protocols(BaseModel):
    """The results by protocols other than Paraloom's own."""

    mteb: Mteb


class ModelCost(BaseModel):
    """The fields of `paraloom.models.embeddings.applications.opened.Cost`."""

    sentences_per_second: float
    batch_size: int
    bytes_on_disk: int


class Costs(BaseModel):
    """The costs of the models."""

    models: dict[str, ModelCost]


class Evaluated(BaseModel):
    """The JSON form of `paraloom evaluate`."""

    models: list[str]
    groups: dict[str, EvaluatedYear]
    protocols: Protocols
    costs: Costs


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
    write_json(json, Evaluated.model_validate(report.json() | {"costs": {"models": by_model}}))
