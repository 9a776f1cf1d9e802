"""A cell of a table: an encoder, trained and evaluated. Finished cells are cached in files."""

import hashlib
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from benchmarks.experiments import bootstrap
from benchmarks.experiments.bootstrap import resampled
from paraloom.models.embeddings.applications.evaluation import scores
from paraloom.models.embeddings.comparison import Embed
from paraloom.models.embeddings.datasets.phrases import read_phrases
from paraloom.models.embeddings.datasets.similarity import read_sick, read_sts
from paraloom.models.embeddings.model import load_encoder
from paraloom.models.embeddings.options import EmbeddingOptions, ParagramOptions
from paraloom.models.embeddings.training.paragram import train_paragram
from paraloom.models.errors import UserError
from paraloom.models.files import atomic_file
from paraloom.models.files import digest as files_digest
from paraloom.models.text.vectors import compact_vectors
from paraloom.papers.analyses import transfer
from paraloom.papers.datasets.transfer import find_tasks
from paraloom.papers.tasks import train

VERSION = 2  # bump when cells have other scores: all cells are then computed again
digest = cache(files_digest)  # the data do not change while tables are made
DEVELOPMENT = ("STS 2012", "STS 2013", "STS 2014")


@dataclass(frozen=True, kw_only=True)
class Cell:
    """An encoder's options and its training pairs."""

    options: EmbeddingOptions
    pairs: str = "sentences"
    """`sentences` of the corpus, `phrases`, or the name of a folder with pairs for each seed"""


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """The data of all experiments, and the folder of the results."""

    corpus: Path
    """Parquet shards with the columns reference and translation"""
    phrases: Path
    sts: Path
    sick: Path
    books: Path
    folder: Path

    @property
    def vectors(self) -> Path:
        """The initial word vectors of all encoders, in the compact form."""
        return self.folder / "paragram"

    @property
    def development(self) -> list[str]:
        """The folders of STS 2012 to 2014, by which the experiments choose."""
        return [str(self.sts / year.removeprefix("STS ")) for year in DEVELOPMENT]


def transfer_folders(inputs: Inputs) -> list[Path]:
    """Those of the transfer tasks that are there; SICK is one."""
    folders = [inputs.sts.parent / name for name in ("transfer", "mrpc")]
    return [folder for folder in [*folders, inputs.sick] if folder.exists()]


Scores = dict[str, Any]
"""Figures by measure, such as Pearson × 100 of STS 2012–2014 (`development`), STS 2015 (`sts_2015`)
and SICK trial (`sick`): numbers, or those of `bootstrap`."""


def prepare(inputs: Inputs) -> None:
    """Make once what all cells share: initial word vectors, and phrase pairs as a shard."""
    if not inputs.vectors.exists():
        inputs.folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=inputs.folder) as folder:
            words = Path(folder) / "paragram.txt"
            train_paragram(inputs.phrases, words, ParagramOptions(), seed=1, threads=1)
            compact_vectors(words, inputs.vectors)
    shard = inputs.folder / "phrases" / "part-0.parquet"
    if not shard.exists():
        _write_phrases(inputs, shard)


def cell_path(cell: Cell, seed: int, inputs: Inputs) -> Path:
    """The file of a cell's scores; its name is a hash of what they depend on."""
    key = {
        "version": VERSION,
        "options": cell.options.of_weights(),
        "seed": seed,
        "pairs": digest(folder_of(cell, seed, inputs)),
        "evaluation": [digest(inputs.sts), digest(inputs.sick)],
    }
    return keyed_path(key, inputs)


def task_cell(options: EmbeddingOptions, inputs: Inputs, **others: Any) -> Path:
    """The file of a task's scores, named by a hash of its options, its files and `others`."""
    return keyed_path({"options": options.of_weights(), **others}, inputs)


def keyed_path(key: Mapping[str, Any], inputs: Inputs) -> Path:
    """The file named by a hash of `key`."""
    name = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:24]
    return inputs.folder / "cells" / f"{name}.json"


def run(cell: Cell, seed: int, inputs: Inputs, path: Path) -> Scores:
    """Train on one thread, evaluate, and write the scores to `path`."""
    shards = sorted(str(shard) for shard in folder_of(cell, seed, inputs).glob("*.parquet"))
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        model = Path(folder) / "model"
        metrics = train(cell.options, model, shards=shards, seed=seed, threads=1)
        found = similarity_scores(load_encoder(model).embed, inputs)
    save_scores(path, found, cell.options, pairs=cell.pairs, seed=seed, metrics=metrics)
    return found


def similarity_scores(embed: Embed, inputs: Inputs) -> Scores:
    """Resampled Pearson × 100 of STS sets (`STS 2015 images`), years (`STS 2015`, `sts_2015`),
    STS 2012 to 2014 (`development`), and SICK trial (`sick`)."""
    found: Scores = {}
    years: dict[str, list[NDArray[np.float64]]] = {}
    for pairs in read_sts(inputs.sts):
        if pairs.group.removeprefix("STS ").isdecimal():
            by_set = resampled(scores(embed, pairs), pairs).pearson
            found[f"{pairs.group} {pairs.name}"] = by_set
            years.setdefault(pairs.group, []).append(by_set)
    for year, of_year in years.items():
        found[year] = found[year.lower().replace(" ", "_")] = np.mean(of_year, axis=0)
    if development := [found[year] for year in DEVELOPMENT if year in years]:
        found["development"] = np.mean(development, axis=0)
    (trial,) = (pairs for pairs in read_sick(inputs.sick) if pairs.name == "trial")
    return found | {"sick": resampled(scores(embed, trial), trial).pearson}


def transfer_scores(embed: Embed, inputs: Inputs) -> Scores:
    """The measures of the transfer tasks at hand, such as `MR accuracy`."""
    found: Scores = {}
    for folder in transfer_folders(inputs):
        for task in find_tasks(folder)[0]:
            predicted, labels = transfer.predictions(embed, task)
            if labels.dtype.kind == "f":
                r, _ = bootstrap.correlations(predicted, labels, task.name)
                found[f"{task.name} pearson"] = r
            else:
                found[f"{task.name} accuracy"] = bootstrap.share(predicted == labels, task.name)
            if task.name == "MRPC":
                found["MRPC f1"] = bootstrap.f1(predicted, labels, transfer.PARAPHRASE, task.name)
    return found


def figure(score: float | NDArray[np.float64]) -> float:
    """A score without its resamples."""
    return float(np.ravel(score)[0])


def save_scores(path: Path, scores: Scores, options: EmbeddingOptions, **others: Any) -> None:
    """Write the scores of a cell for `load_scores`, and its settings."""
    with atomic_file(path) as temporary:
        figures = {name: np.asarray(value).tolist() for name, value in scores.items()}
        cell = {"scores": figures, "options": options.chosen(), **others}
        temporary.write_text(json.dumps(cell))


def load_scores(path: Path) -> Scores:
    """The scores that `save_scores` wrote.

    Raises:
        UserError: the file is damaged.
    """
    try:
        figures = json.loads(path.read_text())["scores"]
    except (OSError, ValueError, KeyError) as error:
        raise UserError(f"{path}: damaged; remove it to compute it again ({error})") from error
    return {n: np.array(of) if isinstance(of, list) else of for n, of in figures.items()}


def known_scores(path: Path, compute: Callable[[Path], Scores]) -> Scores:
    """The scores in `path`, which are computed if it is not there."""
    return load_scores(path) if path.exists() else compute(path)


def folder_of(cell: Cell, seed: int, inputs: Inputs) -> Path:
    """The folder of the shards that a cell is trained on."""
    if cell.pairs == "sentences":
        return inputs.corpus
    if cell.pairs == "phrases":
        return inputs.folder / "phrases"
    return inputs.folder / cell.pairs / str(seed)


def _write_phrases(inputs: Inputs, shard: Path) -> None:
    """Write random phrase pairs that together have as many words as the corpus (W&G 4.1)."""
    words = 0
    for path in sorted(inputs.corpus.glob("*.parquet")):
        table = pq.read_table(path, columns=["reference", "translation"])
        words += sum(text.count(" ") + 1 for column in table.columns for text in column.to_pylist())
    pairs = list(read_phrases(inputs.phrases))
    Random(1).shuffle(pairs)
    chosen = list(islice(pairs, _enough(iter(pairs), words)))
    left, right = zip(*chosen, strict=True)
    shard.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(shard) as temporary:
        pq.write_table(pa.table({"reference": left, "translation": right}), temporary)


def _enough(pairs: Iterator[tuple[str, str]], words: int) -> int:
    count = 0
    for left, right in pairs:
        if words <= 0:
            break
        words -= left.count(" ") + right.count(" ") + 2
        count += 1
    return count
