"""Probes: small encoders, each trained on a subset of a sample and scored on labelled pairs.

A probe is a unit of work, as a shard is for other jobs: its receipt holds its score and the key of
what it was trained on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import apache_beam as beam
import numpy as np
import pyarrow as pa

from paraloom.beam_jobs.analysis.sampling import DecileSample
from paraloom.beam_jobs.io.shards import (
    Measurements,
    Receipt,
    Shard,
    content_key,
    read_shard,
    write_receipt,
)
from paraloom.beam_jobs.runners.launch import UnitJob, launch
from paraloom.beam_jobs.transforms.unit_dofn import UnitDoFn
from paraloom.models.embeddings.datasets.similarity import LabelledPairs
from paraloom.models.embeddings.options import EmbeddingOptions
from paraloom.models.languages import ENGLISH

VERSION = 1
"""Bump when a probe gives another score for the same pairs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subset:
    """Some of the pairs of a sample."""

    scorer: str | None = None  # the score of `deciles`; None: the pairs of all deciles
    deciles: tuple[int, ...] = ()
    most: int | None = None  # the largest number of pairs, chosen at random

    def rows(self, sample: DecileSample, seed: int) -> np.ndarray:
        """The rows of the subset in the sample's table."""
        return sample.rows(seed, self.scorer, self.deciles, most=self.most)

    @property
    def name(self) -> str:
        """A name for files."""
        deciles = "".join(map(str, self.deciles))
        most = [] if self.most is None else [str(self.most)]
        return "-".join([self.scorer or "random", *([deciles] if deciles else []), *most])


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """A subset of a sample, and the seed of the sample and of the training."""

    name: str
    key: str
    rows: int
    subset: Subset
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeTraining:
    """What all probes have in common: the training, and the pairs that judge it."""

    options: EmbeddingOptions
    labelled: list[LabelledPairs]
    vectors: str | None = None  # the digest of the initial vectors
    language: str = ENGLISH

    @property
    def key(self) -> str:
        """The key of all of it."""
        settings = self.options.replace(initial_vectors=self.vectors).chosen()
        texts = [
            [p.group, p.name, p.first.tolist(), p.second.tolist(), p.scores.tolist()]
            for p in self.labelled
        ]
        return content_key(settings, texts, *([self.language] if self.language != ENGLISH else []))


def run(
    subsets: Sequence[Subset],
    seeds: Sequence[int],
    sample: DecileSample,
    shard: Shard,
    output: str,
    training: ProbeTraining,
    arguments: Sequence[str],
) -> list[list[float]]:
    """The scores of each subset, one per seed: Pearson × 100, the mean over labelled data sets.

    Args:
        sample: the pairs.
        shard: the sample's table as a file that workers can read.
    """
    base = training.key
    keys: list[list[str]] = [[] for _ in subsets]
    probes: dict[str, Probe] = {}  # two subsets may have the same pairs
    for subset, of_subset in zip(subsets, keys, strict=True):
        for seed in seeds:
            rows = subset.rows(sample, seed)
            key = content_key("trial", VERSION, base, seed, sample.digest(rows))
            name = f"{subset.name}.{seed}"
            probe = Probe(name=name, key=key, rows=len(rows), subset=subset, seed=seed)
            probes.setdefault(key, probe)
            of_subset.append(key)
    dofn = _RunProbe(output, shard, sample.thresholds, training)
    train = "Train" >> beam.ParDo(dofn)
    job = UnitJob(name="probes", units=list(probes.values()), transform=train, output=output)
    result = launch(job, arguments)
    scores = {receipt.key: receipt.numbers.score for receipt in result.receipts}
    return [[scores[key] for key in of_subset] for of_subset in keys]


@dataclass(eq=False)
class _RunProbe(UnitDoFn):
    shard: Shard
    thresholds: Mapping[str, np.ndarray]
    training: ProbeTraining

    def setup(self) -> None:
        import torch

        super().setup()
        torch.set_num_threads(1)  # more threads do not speed up small products

    def make(self, probe: Probe) -> Receipt:
        from paraloom.models.embeddings.tasks.paraphrases import run_probe as train

        sample = DecileSample(table=_table(self.shard), thresholds=self.thresholds)
        rows = probe.subset.rows(sample, probe.seed)
        score = train(
            *sample.texts(rows),
            self.training.options,
            self.training.labelled,
            seed=probe.seed,
            language=self.training.language,
        )
        receipt = Receipt(
            name=probe.name,
            key=probe.key,
            rows_in=len(rows),
            shards=(),
            rejected={},
            seconds=self.seconds(),
            numbers=Measurements(score=score),
        )
        write_receipt(self.output, receipt)
        return receipt


@lru_cache(maxsize=1)
def _table(shard: Shard) -> pa.Table:
    """The table, read once in a worker process."""
    return read_shard(shard)
