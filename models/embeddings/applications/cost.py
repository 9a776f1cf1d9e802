"""Cost of models: sentences/s and bytes on disk."""

import time
from collections.abc import Sequence
from typing import NamedTuple

from paraloom.models.embeddings.applications.opened import OpenedModel

_SECONDS = 1.0  # approximate duration of each try
_FEWEST = 64  # sentences per try


class Cost(NamedTuple):
    """Cost of a model on this machine."""

    sentences_per_second: float
    batch_size: int  # used for this speed
    bytes_on_disk: int  # of all files needed for loading


def cost(model: OpenedModel, sentences: Sequence[str]) -> Cost:
    """Measure the speed with the model's fastest batch size, after a warm-up, and its size."""
    model.encode(sentences[:_FEWEST], model.batch_sizes[0])
    found = []
    for size in model.batch_sizes:
        rate, count = 0.0, max(_FEWEST, min(size, len(sentences)))
        for _ in range(3):  # with more sentences each time
            given = sentences[:count]
            started = time.perf_counter()
            model.encode(given, size)
            rate = max(rate, len(given) / (time.perf_counter() - started))
            count = max(count, int(rate * _SECONDS))
        found.append((rate, size))
        if rate * _SECONDS < size:  # a larger batch would exceed the duration
            break
    rate, size = max(found)
    return Cost(round(rate, 1), size, model.size)
