"""Training tasks: `embeddings.task` names one; `EmbeddingOptions.tasks` has its module.

To add a task, write a module with the function that `train` below calls:

    train(options, folder, *, run, seed, language) -> metrics

It writes a model folder for `load_encoder` atomically. Only the task `paraphrases` reads the inputs
`run`; `new_model` needs the sentences' `language`.
"""

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from paraloom.models.embeddings.options import EmbeddingOptions
from paraloom.models.languages import ENGLISH


class RunInputs(NamedTuple):
    """A task's inputs from the run."""

    shards: Sequence[str] = ()  # the corpus; none with `embeddings.pairs`
    vectors: str | None = None  # PARAGRAM in compact form, for `initial_vectors: auto`


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
    """Train an encoder on its task, write its folder, and return the task's metrics.

    `shards` are the Parquet files of the corpus, `vectors` the run's own word vectors. The same
    seed and data yield the same weights on a CPU. `threads` sets torch's threads.
    """
    if threads is not None:
        import torch

        torch.set_num_threads(threads)
    task = import_module(options.tasks[options.task].module)
    run = RunInputs(shards, vectors)
    metrics: dict[str, Any] = task.train(options, folder, run=run, seed=seed, language=language)
    return metrics
