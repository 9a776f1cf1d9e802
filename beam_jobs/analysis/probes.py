"""Trials side by side: small encoders trained on parts of a draw and judged by labelled pairs.

A trial is a unit of work as a shard is for other jobs: its receipt holds its score, and says by its
key whether it is finished.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache

import apache_beam as beam
import numpy as np
import pyarrow as pa

from beam_jobs.analysis.sampling import Draw
from beam_jobs.io.shards import Receipt, Shard, content_key, finished, read_shard, write_receipt
from beam_jobs.runners.launch import launch
from models.embeddings.datasets.similarity import LabelledPairs
from models.embeddings.options import EmbeddingOptions

VERSION = 1
"""Raised when a trial gives another score for the same pairs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Some of the pairs of a draw.

    Attributes:
        scorer: whose deciles count; None takes the pairs of all deciles.
        most: so many of them at most, drawn at random.
    """

    scorer: str | None = None
    deciles: tuple[int, ...] = ()
    most: int | None = None

    def rows(self, draw: Draw, seed: int) -> np.ndarray:
        """Their rows in the table of the draw."""
        return draw.rows(seed, self.scorer, self.deciles, most=self.most)

    @property
    def name(self) -> str:
        """A name for files."""
        deciles = "".join(map(str, self.deciles))
        most = [] if self.most is None else [str(self.most)]
        return "-".join([self.scorer or "random", *([deciles] if deciles else []), *most])


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A part of a draw, and the seed to draw and to train with."""

    name: str
    key: str
    rows: int
    part: Part
    seed: int


class Try(beam.PTransform):
    """Trials in, receipts out."""

    def __init__(
        self,
        output: str,
        drawn: Shard,
        below: Mapping[str, np.ndarray],
        options: EmbeddingOptions,
        labelled: Sequence[LabelledPairs],
    ):
        super().__init__()
        self.work = _Try(output, drawn, below, options, list(labelled))

    def expand(self, trials: beam.PCollection) -> beam.PCollection:
        """Trial by trial."""
        return trials | "Try" >> beam.ParDo(self.work)


def run(
    parts: Sequence[Part],
    seeds: Sequence[int],
    draw: Draw,
    drawn: Shard,
    output: str,
    options: EmbeddingOptions,
    labelled: Sequence[LabelledPairs],
    arguments: Sequence[str],
    *,
    base: str,
) -> list[list[float]]:
    """The scores of all parts, one per seed: Pearson × 100, the mean over the labelled data sets.

    Args:
        draw: the pairs; `drawn` is its table as a file that workers can read.
        base: the key of what the options and the labelled pairs hold (files by their content).
    """
    keys: list[list[str]] = [[] for _ in parts]
    trials: dict[str, Trial] = {}  # two parts may have the same pairs
    for part, of_part in zip(parts, keys, strict=True):
        for seed in seeds:
            rows = part.rows(draw, seed)
            key = content_key("trial", VERSION, base, seed, draw.digest(rows))
            trial = Trial(name=f"{part.name}.{seed}", key=key, rows=len(rows), part=part, seed=seed)
            trials.setdefault(key, trial)
            of_part.append(key)
    transform = Try(output, drawn, draw.below, options, labelled)
    result = launch("choice", list(trials.values()), transform, output, arguments)
    scores = {receipt.key: receipt.numbers["score"] for receipt in result.receipts}
    return [[scores[key] for key in of_part] for of_part in keys]


def key_of(
    options: EmbeddingOptions, labelled: Sequence[LabelledPairs], vectors: str | None
) -> str:
    """The `base` of `run`; `vectors` is the digest of the initial vectors."""
    kept = asdict(replace(options, initial_vectors=vectors))
    texts = [
        [pairs.group, pairs.name, *map(_list, (pairs.first, pairs.second, pairs.scores))]
        for pairs in labelled
    ]
    return content_key(kept, texts)


def _list(values: pa.Array | np.ndarray) -> list:
    return values.tolist()


class _Try(beam.DoFn):
    def __init__(
        self,
        output: str,
        drawn: Shard,
        below: Mapping[str, np.ndarray],
        options: EmbeddingOptions,
        labelled: list[LabelledPairs],
    ):
        self.output, self.drawn, self.below = output, drawn, below
        self.options, self.labelled = options, labelled

    def setup(self) -> None:
        import torch

        pa.set_cpu_count(1)
        torch.set_num_threads(1)  # small products gain nothing from more, other trials do

    def process(self, trial: Trial) -> Iterator[Receipt]:
        done = finished(self.output, trial.name, trial.key)
        yield done or self.try_out(trial)

    def try_out(self, trial: Trial) -> Receipt:
        from models.embeddings.training.probe import trial as train

        started = time.monotonic()
        draw = Draw(table=_table(self.drawn), below=self.below)
        rows = trial.part.rows(draw, trial.seed)
        score = train(*draw.texts(rows), self.options, self.labelled, seed=trial.seed)
        receipt = Receipt(
            name=trial.name,
            key=trial.key,
            rows_in=len(rows),
            shards=(),
            rejected={},
            seconds=round(time.monotonic() - started, 3),
            numbers={"score": score},
        )
        write_receipt(self.output, receipt)
        return receipt


@lru_cache(maxsize=1)
def _table(drawn: Shard) -> pa.Table:
    """Read once in a worker process."""
    return read_shard(drawn)
