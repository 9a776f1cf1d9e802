"""What models cost: sentences/s and bytes on disk."""

import time
from collections.abc import Sequence
from typing import NamedTuple

from paraloom.models.embeddings.applications.opened import OpenedModel

_SECONDS = 1.0  # about as long as each batch size is tried
_FEWEST = 64  # sentences of a try


class Cost(NamedTuple):
    """What a model costs on this machine."""

    sentences_per_second: float
    batch_size: int  # with which this speed was measured
    bytes_on_disk: int  # of all files that loading needs


def cost(model: OpenedModel, sentences: Sequence[str]) -> Cost:
    """The speed of a model with the fastest of its batch sizes, after a warm-up, and its size."""
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
        if rate * _SECONDS < size:  # a larger batch would take longer than a try
            break
    rate, size = max(found)
    return Cost(round(rate, 1), size, model.size)
