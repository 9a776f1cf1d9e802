"""Training tasks, by their names in `embeddings.task`.

A task is a module in `TASKS` with one function; it is imported when it is chosen:

    train(options, folder, *, run, seed, language) -> metrics

`options` are the `EmbeddingOptions`; a section with the name of the task has the options and data
files of this task only (`models/embeddings/tasks/options.py`). The task writes a model folder for
`load_encoder`, completely or not at all. `run` is what task `paraphrases` reads of the run; others
read nothing of it. `new_model` takes the `language` of the sentences.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from paraloom.models.errors import UserError
from paraloom.models.languages import ENGLISH

if TYPE_CHECKING:
    from paraloom.models.embeddings.options import EmbeddingOptions


TASKS = {name: f"{__name__}.{name}" for name in ("paraphrases", "similarity")}
"""The modules of the tasks by name. `paraloom papers train` adds the papers' tasks."""


class RunInputs(NamedTuple):
    """What a task reads of the run."""

    shards: Sequence[str] = ()  # of the corpus; none with `embeddings.pairs`
    vectors: str | None = None  # PARAGRAM vectors in compact form, for `initial_vectors: auto`


def train(
    options: EmbeddingOptions,
    folder: Path,
    *,
    shards: Sequence[str] = (),
    vectors: str | None = None,
    seed: int,
    language: str = ENGLISH,
    threads: int | None = None,
) -> dict[str, Any]:
    """Train an encoder on its task, write its folder, and return the metrics of the task.

    `shards` are the Parquet files of the corpus, `vectors` the run's own word vectors.
    The same seed and data give the same weights on a CPU. `threads` are torch's.
    """
    if threads is not None:
        import torch

        torch.set_num_threads(threads)
    task = import_module(module_of(options.task))
    run = RunInputs(shards, vectors)
    metrics: dict[str, Any] = task.train(options, folder, run=run, seed=seed, language=language)
    return metrics


def module_of(task: str) -> str:
    """The name of the module of a task."""
    if task not in TASKS:
        raise UserError(f"embeddings.task: {task} is for `paraloom papers train --config FILE`")
    return TASKS[task]
