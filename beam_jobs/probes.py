"""Train probes. A probe is a small encoder, trained on a sample of the pairs in some deciles.

Each probe is a unit of work. Its receipt contains the probe's score on labelled pairs.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import apache_beam as beam
import numpy as np
import pyarrow as pa

from paraloom.beam_jobs import VERSIONS
from paraloom.beam_jobs.engine import schema
from paraloom.beam_jobs.engine.launch import launch
from paraloom.beam_jobs.engine.shards import (
    Measurements,
    Receipt,
    Shard,
    content_key,
    read_shard,
    write_receipt,
)
from paraloom.beam_jobs.engine.unit_dofn import UnitDoFn
from paraloom.models.embeddings.datasets.similarity import LabelledPairs
from paraloom.models.embeddings.options import EmbeddingOptions
from paraloom.models.languages import ENGLISH


class ProbeMeasurements(Measurements):
    """The result of a probe."""

    score: float = 0.0  # Pearson × 100


@dataclass(frozen=True, slots=True)
class Probe:
    """A range of deciles to train on, and the seed for sampling and training."""

    key: str
    deciles: tuple[int, ...]
    seed: int
    rows: int  # number of pairs to train on

    @property
    def name(self) -> str:
        """Name of the probe's receipt."""
        return f"{''.join(map(str, self.deciles))}.{self.seed}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Probing:
    """The settings of all probes."""

    shards: tuple[Shard, ...]
    score: str  # name of the score that defines the deciles
    most: int  # largest number of pairs per probe
    options: EmbeddingOptions
    labelled: list[LabelledPairs]
    vectors: str | None = None  # digest of the initial vectors
    language: str = ENGLISH

    @property
    def key(self) -> str:
        """Digest of everything that all probes depend on."""
        settings = self.options.replace(initial_vectors=self.vectors).chosen()
        sets = [[p.first.tolist(), p.second.tolist(), p.scores.tolist()] for p in self.labelled]
        digests = [shard.digest for shard in self.shards]
        return content_key(
            VERSIONS["probes"], digests, self.score, self.most, settings, sets, self.language
        )

    def counts(self) -> np.ndarray:
        """Return the number of pairs in each decile: int64 [10]."""
        return np.bincount(_deciles(self.shards, self.score), minlength=10)

    def pairs(self, probe: Probe) -> list[pa.StringArray]:
        """Draw the pairs of a probe; return their references and translations.

        With the same seed, overlapping ranges of deciles share pairs.
        """
        deciles = _deciles(self.shards, self.score)
        order = np.random.default_rng(probe.seed).permutation(len(deciles))
        rows = np.sort(order[np.isin(deciles[order], probe.deciles)][: self.most])
        return [column.take(pa.array(rows)) for column in _texts(self.shards)]


def run(
    ranges: Sequence[tuple[int, ...]],
    seeds: Sequence[int],
    probing: Probing,
    output: str,
    arguments: Sequence[str],
) -> list[tuple[float, ...]]:
    """Train a probe for each range of deciles and each seed.

    Return one tuple per range, with one score (Pearson × 100) per seed.
    """
    key, counts = probing.key, probing.counts()
    probes = [
        Probe(content_key(key, deciles, seed), deciles, seed, min(of, probing.most))
        for deciles in ranges
        for of in [int(counts[list(deciles)].sum())]
        for seed in seeds
    ]
    train = "Train" >> beam.ParDo(_RunProbe(output, probing))
    result = launch("probes", probes, train, output, arguments)
    scores = {receipt.key: receipt.measured(ProbeMeasurements).score for receipt in result.receipts}
    found = iter(scores[probe.key] for probe in probes)
    return list(zip(*[found] * len(seeds), strict=True))


@dataclass(eq=False)
class _RunProbe(UnitDoFn):
    probing: Probing

    def setup(self) -> None:
        import torch

        super().setup()
        torch.set_num_threads(1)  # more threads do not speed up small matrix products

    def make(self, probe: Probe) -> Receipt:
        from paraloom.models.embeddings.tasks.paraphrases import run_probe as train

        of = self.probing
        first, second = of.pairs(probe)
        score = train(first, second, of.options, of.labelled, seed=probe.seed, language=of.language)
        receipt = Receipt(
            name=probe.name,
            key=probe.key,
            rows_in=probe.rows,
            shards=(),
            rejected={},
            seconds=round(time.monotonic() - self._started, 3),
            numbers={"score": score},
        )
        write_receipt(self.output, receipt)
        return receipt


@lru_cache(maxsize=1)
def _texts(shards: tuple[Shard, ...]) -> list[pa.StringArray]:
    """Read the references and translations, once per worker process."""
    sides = ["reference", "translation"]
    table = pa.concat_tables([read_shard(shard, sides) for shard in shards])
    return [column.combine_chunks() for column in table.columns]


@lru_cache(maxsize=1)
def _deciles(shards: tuple[Shard, ...], score: str) -> np.ndarray:
    """Read the decile of each pair, once per worker process: int8 [n]."""
    name = schema.decile(score)
    return np.concatenate([read_shard(shard, [name])[name].to_numpy() for shard in shards])
