"""Cells of the tables of ParaNMT-50M (Wieting & Gimpel 2017).

Trained encoders stay in the folder `encoders`, because several tables evaluate the same encoder.
"""

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.experiments.bootstrap import RESAMPLES, resampled
from benchmarks.experiments.cells import (
    VERSION,
    AnyCell,
    Cell,
    Inputs,
    Scores,
    digest,
    figure,
    keyed_path,
    read_pairs,
    similarity_scores,
    transfer_folders,
    transfer_scores,
)
from paraloom.beam_jobs.engine.schema import decile
from paraloom.models.embeddings.applications.evaluation import scores
from paraloom.models.embeddings.comparison import Embed
from paraloom.models.embeddings.datasets.lines import rows_of
from paraloom.models.embeddings.datasets.similarity import read_sts
from paraloom.models.embeddings.model import load_encoder
from paraloom.models.embeddings.options import EmbeddingOptions
from paraloom.models.embeddings.tasks import train
from paraloom.papers.datasets.splits import take

_SETS = tuple(f"STS {year} " for year in range(2012, 2017))
_CAPTIONS = "main-captions"  # a genre of the STS Benchmark
CAPTION_SETS = {
    "msrvid": "STS 2012 MSRvid",
    "images_2014": "STS 2014 images",
    "images_2015": "STS 2015 images",
}
"""Data sets of Table 11 by measure."""


class EncoderCell(Cell):
    """A cell whose encoder is kept, and also evaluated on the STS Benchmark."""

    def _tests(self, inputs: Inputs) -> list[Path]:
        return test_data(inputs)

    def _scores(self, seed: int, inputs: Inputs, folder: Path) -> tuple[Scores, dict[str, Any]]:
        found = encoder_scores(load_encoder(self.encoder(seed, inputs)).embed, inputs)
        return found, {"options": self.options.chosen(), "pairs": self.pairs}

    def encoder(self, seed: int, inputs: Inputs) -> Path:
        """Return the folder of the encoder, after training it if it does not exist."""
        name = keyed_path(self._training(seed, inputs), inputs).stem
        folder = inputs.folder / "encoders" / name
        if not folder.exists():
            folder.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
                model = Path(temporary) / "model"
                self._train(seed, inputs, model)
                if not folder.exists():  # another process may have been faster
                    model.rename(folder)
        return folder


@dataclass(frozen=True, kw_only=True)
class TransferCell(AnyCell):
    """An encoder whose vectors are features for the available transfer tasks (Table 8)."""

    encoder: EncoderCell

    def _key(self, seed: int, inputs: Inputs) -> dict[str, Any]:
        cell = self.encoder.cell_path(seed, inputs).stem
        data = [digest(folder) for folder in transfer_folders(inputs)]
        return {"transfer": cell, "data": data, "resamples": RESAMPLES, "version": VERSION}

    def _scores(self, seed: int, inputs: Inputs, folder: Path) -> tuple[Scores, dict[str, Any]]:
        model = load_encoder(self.encoder.encoder(seed, inputs))
        return transfer_scores(model.embed, inputs), {"options": self.encoder.options.chosen()}


@dataclass(frozen=True, kw_only=True)
class OtherCell(AnyCell):
    """A model of sentence-transformers, with the same scores for all seeds (Tables 11 and 12)."""

    folder: str

    def _key(self, seed: int, inputs: Inputs) -> dict[str, Any]:
        tests = [digest(path) for path in test_data(inputs) if path.exists()]
        return {"version": VERSION, "model": digest(self.folder), "tests": tests}

    def _scores(self, seed: int, inputs: Inputs, folder: Path) -> tuple[Scores, dict[str, Any]]:
        from sentence_transformers import SentenceTransformer

        model = SentenceTransformer(self.folder, device="cpu")
        found = encoder_scores(lambda texts: np.asarray(model.encode(texts.to_pylist())), inputs)
        return found, {"model": self.folder}


@dataclass(frozen=True, kw_only=True)
class DifferenceCell(AnyCell):
    """The difference between the figures of two models on the test sets of STS.

    Table 10 has the mean absolute difference. Table 11 has the mean difference and the differences
    on `CAPTION_SETS`.
    """

    first: EncoderCell
    second: EncoderCell | OtherCell

    def _key(self, seed: int, inputs: Inputs) -> dict[str, Any]:
        both = [cell.cell_path(seed, inputs).stem for cell in (self.first, self.second)]
        return {"difference": both, "version": VERSION}

    def _scores(self, seed: int, inputs: Inputs, folder: Path) -> tuple[Scores, dict[str, Any]]:
        first, second = (cell.known(seed, inputs) for cell in (self.first, self.second))
        found = {name: first[name] - second[name] for name in first if name.startswith(_SETS)}
        values = np.array(list(found.values()))
        differences: Scores = {"absolute": np.abs(values).mean(axis=0), "mean": values.mean(axis=0)}
        differences |= {key: found[name] for key, name in CAPTION_SETS.items() if name in found}
        return differences, {"options": self.first.options.chosen()}


@dataclass(frozen=True, kw_only=True)
class FilterCell(AnyCell):
    """The best tenth of the pairs by a score (Table 4).

    All tenths have equally many pairs. The best tenth is the tenth whose encoder is best on STS
    2012 to 2014.
    """

    options: EmbeddingOptions
    score: str

    def _key(self, seed: int, inputs: Inputs) -> dict[str, Any]:
        cell = EncoderCell(options=self.options).cell_path(seed, inputs).stem
        return {"filter": self.score, "cell": cell, "pairs": digest(scored_pairs(inputs))}

    def _scores(self, seed: int, inputs: Inputs, folder: Path) -> tuple[Scores, dict[str, Any]]:
        table = read_pairs(scored_pairs(inputs), decile(self.score))
        results = []
        for k in range(10):
            shard, model = folder / f"part-{k}.parquet", folder / f"model-{k}"
            pq.write_table(table.filter(pc.equal(table[decile(self.score)], k)), shard)
            train(self.options, model, shards=[str(shard)], seed=seed, threads=1)
            found = encoder_scores(load_encoder(model).embed, inputs)
            results.append({**found, "development_decile": float(k)})
        best = max(results, key=lambda found: figure(found["development"]))
        return best, {"options": self.options.chosen()}


def scored_pairs(inputs: Inputs) -> Path:
    """Return the folder of the run's pairs with deciles. The corpus is a part of these pairs."""
    return inputs.corpus.parent / "bucket"


def benchmark(inputs: Inputs) -> Path:
    """Return the folder of the STS Benchmark."""
    return inputs.sts.parent / "stsb"


def encoder_scores(embed: Embed, inputs: Inputs) -> Scores:
    """Return the scores of `similarity_scores` and of the STS Benchmark.

    The measures of the benchmark are `stsb` (all pairs), `captions` and `others`. They are computed
    on the test set or, if the test set is missing, on the development set.
    """
    folder = benchmark(inputs)
    file = next((f for name in ("test", "dev") if (f := folder / f"sts-{name}.csv").exists()), None)
    found = similarity_scores(embed, inputs)
    if file is None:
        return found
    (pairs,) = read_sts(file)
    predicted = scores(embed, pairs)
    of_captions = np.array([row[0] == _CAPTIONS for _, row in rows_of(file)])
    parts = {"stsb": np.full(len(pairs), True), "captions": of_captions, "others": ~of_captions}
    for name, rows in parts.items():
        part = take(replace(pairs, name=name), np.flatnonzero(rows))
        found[name] = resampled(predicted[rows], part).pearson
    return found


def test_data(inputs: Inputs) -> list[Path]:
    """Return the test data of an encoder."""
    return [inputs.sts, inputs.sick, benchmark(inputs)]
