"""Evaluation on tasks of MTEB, with the optional package mteb."""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

import numpy as np
import torch
import typer
from numpy.typing import NDArray
from rich.table import Table
from torch.nn.functional import cosine_similarity, normalize

from paraloom.models.embeddings.applications.evaluation import benchmarks
from paraloom.models.embeddings.applications.opened import OpenedModel
from paraloom.models.embeddings.datasets.similarity import LabelledPairs, read_sick, read_sts
from paraloom.models.embeddings.model import SentenceEncoder
from paraloom.models.errors import UserError, in_one_line
from paraloom.papers.analyses.options import Sts, open_models
from paraloom.pipeline.commands.console import console, number_table
from paraloom.pipeline.commands.options import JsonFile, OpenModels, Sick, write_json


def find_tasks(names: Sequence[str]) -> dict[str, Any]:
    """Return the English parts of tasks of the package mteb, by name."""
    try:
        import mteb
    except ImportError as error:
        raise UserError(
            f"the package mteb cannot be imported ({error}); run `pip install mteb`"
        ) from error
    tasks = {}
    for name in names:
        try:
            tasks[name] = mteb.get_task(name, languages=["eng"], exclusive_language_filter=True)
        except KeyError as error:
            raise UserError(f"mteb has no task {name} ({error.args[0]})") from error
    return tasks


def run_mteb(
    models: Sequence[OpenedModel], tasks: Mapping[str, Any], data: Sequence[LabelledPairs]
) -> dict[str, Any]:
    """Run tasks. Return the main score × 100 of each task and model.

    `main_score` is the name of the score. `local` says whether `data` contains the task's pairs.
    Otherwise mteb downloads the pairs.
    """
    import mteb

    found: dict[str, Any] = {}
    for name, task in tasks.items():
        found[name] = {"main_score": task.metadata.main_score, "local": _set_data(task, data)}
        found[name]["models"] = {model.name: _score(model, name, task) for model in models}
    return {"version": mteb.__version__, "tasks": found}


def mteb_table(models: Sequence[str], results: dict[str, Any]) -> Table:
    """Format the results of `run_mteb` as a table with a row per task."""
    rows = []
    for name, found in results["tasks"].items():
        source = "--sts, --sick" if found["local"] else "fetched"
        scores = (f"{score:.2f}" for score in found["models"].values())
        rows.append((name, found["main_score"], source, *scores))
    title = f"mteb {results['version']}, score × 100"
    return number_table(title, "task", "score", "data", numbers=models, rows=rows)


def _set_data(task: Any, data: Sequence[LabelledPairs]) -> bool:
    for benchmark in benchmarks(data):
        if benchmark.task == task.metadata.name and benchmark.complete:
            from datasets import Dataset

            sets = [data[i] for i in benchmark.sets]
            columns = {
                "sentence1": [text for each in sets for text in each.first.to_pylist()],
                "sentence2": [text for each in sets for text in each.second.to_pylist()],
                "score": np.concatenate([each.scores for each in sets]).tolist(),
            }
            (split,), (subset,) = task.eval_splits, task.hf_subsets
            splits = {split: Dataset.from_dict(columns)}
            task.dataset = splits if subset == "default" else {subset: splits}
            task.data_loaded = True
            return True
    return False


def _score(model: OpenedModel, name: str, task: Any) -> float:
    import mteb
    from mteb.models import ModelMeta

    given: Any = model.sentence_model
    if given is None:
        assert model.encoder is not None
        given = MTEBEncoder(ModelMeta.create_empty(), model.encoder)
    with (
        in_one_line(f"{name}: mteb cannot run it on {model.name}"),
        warnings.catch_warnings(action="ignore"),  # warnings about names in sentence-transformers
    ):
        settings = {"cache": None, "co2_tracker": False, "show_progress_bar": False}
        sizes = {"batch_size": model.batch_sizes[0]}
        result = mteb.evaluate(given, task, encode_kwargs=sizes, **settings)
        return round(100 * float(result.task_results[0].get_score()), 4)


class MTEBEncoder:
    """An adapter from `SentenceEncoder` to the `EncoderProtocol` of mteb."""

    def __init__(self, meta: Any, encoder: SentenceEncoder) -> None:
        self.mteb_model_meta = meta
        self._encoder = encoder

    def encode(self, inputs: Iterable[dict[str, Any]], **_: Any) -> NDArray[np.float32]:
        """Return the vectors of the n texts in all batches: [n, dim]."""
        return self._encoder.embed([text for batch in inputs for text in batch["text"]])

    def similarity(self, first: Any, second: Any) -> torch.Tensor:
        """Return the cosine of each of n vectors with each of m vectors: [n, m]."""
        a, b = (normalize(torch.as_tensor(side)) for side in (first, second))
        return a @ b.T

    def similarity_pairwise(self, first: Any, second: Any) -> torch.Tensor:
        """Return the cosine of each of n pairs of vectors: [n]."""
        return cosine_similarity(torch.as_tensor(first), torch.as_tensor(second))


def command(
    model: OpenModels,
    tasks: Annotated[str, typer.Option(metavar="TASKS", help="Tasks, such as STS15,STSBenchmark.")],
    sts: Sts = None,
    sick: Sick = None,
    json: JsonFile = None,
) -> None:
    """Only the English part of a task is run. STS and SICK tasks read the data in --sts and --sick
    if the task's data are complete. mteb downloads all other data.
    """
    found = find_tasks([name.strip() for name in tasks.split(",")])
    data = [*(read_sts(sts) if sts else []), *(read_sick(sick) if sick else [])]
    results = run_mteb(open_models(model, "the tasks of MTEB are"), found, data)
    write_json(json, {"models": model, "mteb": results})
    console().print(mteb_table(model, results))
