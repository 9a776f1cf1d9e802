"""What models cost: sentences/s, bytes on disk, memory.

Run as a module, it prints the memory that one model adds to a process.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence

import torch

from paraloom.models import hub, memory
from paraloom.models.cpu import cores
from paraloom.models.embeddings.applications.cost_table import Cost
from paraloom.models.embeddings.applications.opened import OpenedModel, is_ours, open_model

ROUNDS = 5
_SECONDS = 0.5  # of a round, about
_LONGEST = 2.0  # seconds of a try with a larger batch
_FEWEST = 64  # sentences of a round
_IN_MEMORY = 1000  # sentences that are embedded while memory is measured


def how_measured(sentences: int) -> str:
    """One sentence about speed, size and memory in a table of results."""
    return (
        f"Sentences/s: up to {sentences:,} distinct sentences of the data, after a warm-up, in the "
        f"fastest of the batch sizes tried; median of {ROUNDS} rounds in turns; "
        f"cores: {cores()}, threads of PyTorch: {torch.get_num_threads()}. Size: all files that "
        "loading needs. Memory: what loading the model and embedding "
        f"{min(sentences, _IN_MEMORY):,} sentences add to the peak of a process of its own."
    )


def speeds(models: Sequence[OpenedModel], sentences: Sequence[str]) -> list[tuple[float, int]]:
    """Sentences/s of each model and its batch size; the models take turns."""
    rounds = [_round(model, sentences) for model in models]
    seconds: list[list[float]] = [[] for _ in models]
    for _ in range(ROUNDS):
        for model, (size, count, passes), spent in zip(models, rounds, seconds, strict=True):
            spent.append(_seconds(model, sentences[:count], size, passes))
    return [
        (count * passes / statistics.median(spent), size)
        for (size, count, passes), spent in zip(rounds, seconds, strict=True)
    ]


def _round(model: OpenedModel, sentences: Sequence[str]) -> tuple[int, int, int]:
    """The fastest batch size, and the sentences and passes of a round of about `_SECONDS`."""
    chosen, best, count = model.batch_sizes[0], 0.0, min(_FEWEST, len(sentences))
    _seconds(model, sentences[:count], chosen)  # the first call is slower
    for size in model.batch_sizes:
        if best:
            count = min(max(count, 2 * size), len(sentences))
            if count > best * _LONGEST:
                break
        for _ in range(3):  # with more sentences each time
            rate = count / _seconds(model, sentences[:count], size)
            if rate > best:
                chosen, best = size, rate
            count = min(max(int(best * _SECONDS), count), len(sentences))
    count = min(max(int(best * _SECONDS), _FEWEST), len(sentences))
    return chosen, count, max(round(best * _SECONDS / count), 1)


def _seconds(
    model: OpenedModel, sentences: Sequence[str], batch_size: int, passes: int = 1
) -> float:
    started = time.perf_counter()
    for _ in range(passes):
        model.encode(sentences, batch_size)
    return time.perf_counter() - started


def memory_of(name: str, sentences: Sequence[str]) -> int | None:
    """Bytes of a model, measured in a process of its own; None if that fails."""
    done = subprocess.run(
        [sys.executable, "-m", __name__, name],
        input=json.dumps(list(sentences[:_IN_MEMORY])),
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=False,
    )
    *_, last = done.stdout.split() or [""]  # libraries may print, too
    return int(last) if done.returncode == 0 and last.isdecimal() else None


def added_memory(name: str, sentences: Sequence[str]) -> int:
    """Bytes that a model adds to the peak memory of this process, in which it is not loaded yet."""
    if not is_ours(hub.fetch(name)):
        import sentence_transformers  # noqa: F401  # its memory is not the model's

    memory.forget_peak()
    before = memory.peak_memory()
    model = open_model(name)
    model.encode(sentences, model.batch_sizes[0])
    return memory.peak_memory() - before


def costs(
    models: Sequence[OpenedModel], sentences: Sequence[str], memories: Sequence[int | None]
) -> list[Cost]:
    """Speed, size and memory of each model."""
    measured = zip(models, speeds(models, sentences), memories, strict=True)
    return [Cost(rate, size, model.size, more) for model, (rate, size), more in measured]


if __name__ == "__main__":
    print(added_memory(sys.argv[1], json.load(sys.stdin)))
