"""Training tasks (`embeddings.task`).

To add a task, add a module to `EmbeddingOptions.tasks`. The module must contain the following
function, which trains an encoder, writes the encoder's folder atomically and returns metrics:

    train(options, folder, *, run, seed, language) -> metrics
"""

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from paraloom.models.embeddings.options import EmbeddingOptions
from paraloom.models.languages import ENGLISH


class RunInputs(NamedTuple):
    """Inputs that a run passes to a task. Only the task `paraphrases` reads them."""

    shards: Sequence[str] = ()  # files of the corpus; empty if `embeddings.pairs` is set
    vectors: str | None = None  # file with PARAGRAM vectors, for `initial_vectors: auto`


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
    """Train an encoder on the task in `options`, write its folder, and return the task's metrics.

    For `shards` and `vectors`, see `RunInputs`. `threads` is the number of torch's threads. The
    checkpoints remain, in case an upload of the encoder fails. `checkpoint.remove_checkpoints`
    removes them.
    """
    if threads is not None:
        import torch

        torch.set_num_threads(threads)
    task = import_module(options.tasks[options.task].module)
    run = RunInputs(shards, vectors)
    metrics: dict[str, Any] = task.train(options, folder, run=run, seed=seed, language=language)
    return metrics
