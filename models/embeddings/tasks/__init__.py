"""Training tasks: `embeddings.task` names one, whose module is in `EmbeddingOptions.tasks`.

`train` below calls the task's module, imported when it is chosen, which has one function:

    train(options, folder, *, run, seed, language) -> metrics

The task writes a model folder for `load_encoder`, completely or not at all. `run` is what the task
`paraphrases` reads of the run; others read nothing of it. `new_model` takes the `language` of the
sentences.
"""

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from paraloom.models.embeddings.options import EmbeddingOptions
from paraloom.models.languages import ENGLISH


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
    task = import_module(options.tasks[options.task].module)
    run = RunInputs(shards, vectors)
    metrics: dict[str, Any] = task.train(options, folder, run=run, seed=seed, language=language)
    return metrics
