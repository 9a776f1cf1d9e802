"""What an encoder can be trained on, by the name that `embeddings.task` has.

A task is a module of this folder, imported when it is chosen, with one function:

    train(options, folder, *, shards, seed) -> metrics

`options` are the `EmbeddingOptions`; what only this task knows, data files included, stands in a
section of them with its name (`models/embeddings/tasks/options.py`). The task leaves a model folder
that `load_encoder` opens, all of it or nothing. `shards` are the corpus's, and empty unless the
task reads the corpus.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from models.embeddings.options import EmbeddingOptions

READ_THE_CORPUS = ("paraphrases",)
"""The tasks that train on a run's own pairs; the others need no run before."""


def train(
    options: EmbeddingOptions,
    folder: Path,
    *,
    shards: Sequence[str] = (),
    seed: int,
    threads: int | None = None,
) -> dict[str, Any]:
    """Train an encoder on its task and write its folder.

    Args:
        options: the encoder, its task and how to train it.
        folder: where the model goes; appears when it is whole.
        shards: Parquet files of the corpus, for a task that reads it.
        seed: the same seed and data give the same weights on a CPU.
        threads: torch's threads; None leaves them as they are.

    Returns:
        what the run was like: `seconds` and what the task counts.

    Raises:
        UserError: data that cannot be read or learnt from; names the file and the row.
    """
    if threads is not None:
        import torch

        torch.set_num_threads(threads)
    task = import_module(f"{__name__}.{options.task}")
    return task.train(options, folder, shards=shards, seed=seed)
