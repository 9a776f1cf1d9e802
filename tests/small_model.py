"""Short pairs of the sample, and a translation model trained on them, which is often wrong."""

import os
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from paraloom.models.nmt.options import NmtTrainingOptions
from paraloom.models.nmt.train import train_nmt
from tests.sample import sample_rows

TEXTS = 600
"""Number of short pairs on which the model is not trained."""
TRAINED_ON = 3000
SEED = int(os.environ.get("PARALOOM_TEST_SEED", "1"))
OPTIONS = NmtTrainingOptions(
    pieces=2000, layers=1, dim=64, heads=2, ffn=128, dropout=0.0, learning_rate=0.007,
    warmup=40, updates=500, batch_tokens=800, checkpoints=2, held_out=20,
)  # fmt: skip


def short_pairs() -> Iterator[tuple[str, str]]:
    """Yield the sample's Czech sentences of at most five words, with the English sentences."""
    for row in sample_rows():
        try:
            _, _, czech, english = row.decode().split("\t")
        except ValueError:
            continue
        text = czech.isprintable() and english.isprintable() and not re.search(r"\d", czech)
        if text and 0 < len(czech.split()) <= 5 and english.strip() and czech != english:
            yield czech, english


def new_pairs(count: int) -> list[tuple[str, str]]:
    """Return the first short pairs, on which the model is not trained."""
    assert count <= TEXTS
    return list(islice(short_pairs(), count))


def train_small_model(folder: Path) -> None:
    """Train the small model, and write it to `folder/model`."""
    pairs = list(islice(short_pairs(), TEXTS, TEXTS + TRAINED_ON))
    sources, references = zip(*pairs, strict=True)
    ids = [f"pair-{number}" for number in range(len(pairs))]
    path = folder / "pairs.parquet"
    pq.write_table(pa.table({"id": ids, "source": sources, "reference": references}), path)
    train_nmt([path], folder / "model", OPTIONS, seed=SEED, threads=1)
