"""A cell of a table: an encoder, trained and evaluated. Finished cells are cached in files."""

import hashlib
import json
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from pathlib import Path
from random import Random
from typing import Any, Self

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
from paraloom.models.embeddings.model import SentenceEncoder, load_encoder
from paraloom.models.embeddings.options import EmbeddingOptions, ParagramOptions
from paraloom.models.embeddings.training.paragram import train_paragram
from paraloom.models.errors import UserError
from paraloom.models.files import atomic_file
from paraloom.models.files import digest as files_digest
from paraloom.models.text.vectors import compact_vectors
from paraloom.papers.analyses import transfer
from paraloom.papers.datasets.transfer import find_tasks
from paraloom.papers.options import SystemOptions
from paraloom.papers.tasks import train

VERSION = 2  # bump when cells have other scores: all cells are then computed again
TASK_VERSION = 3  # the same for cells of tasks
digest = cache(files_digest)  # the data do not change while tables are made
DEVELOPMENT = ("STS 2012", "STS 2013", "STS 2014")


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

    @classmethod
    def of(cls, data: Path, *, corpus: Path, folder: Path) -> Self:
        """The data at their usual places in the folder `data`."""
        sets = {name: data / name for name in ("sts", "sick", "books")}
        words = data / "ppdb" / "ppdb-xl-lexicon.txt.gz"
        return cls(corpus=corpus, folder=folder, phrases=words, **sets)

    @property
    def vectors(self) -> Path:
        """The initial word vectors of all encoders, in the compact form."""
        return self.folder / "paragram"

    @property
    def development(self) -> list[str]:
        """The folders of STS 2012 to 2014, the experiments' development data."""
        return [str(self.sts / year.removeprefix("STS ")) for year in DEVELOPMENT]


def transfer_folders(inputs: Inputs) -> list[Path]:
    """The existing folders of transfer tasks, SICK's included."""
    folders = [inputs.sts.parent / name for name in ("transfer", "mrpc")]
    return [folder for folder in [*folders, inputs.sick] if folder.exists()]


Scores = dict[str, Any]
"""Figures by measure, such as Pearson × 100 of STS 2012–2014 (`development`), STS 2015 (`sts_2015`)
and SICK trial (`sick`): numbers, or arrays of a number and its resamples (`bootstrap`)."""


def prepare(inputs: Inputs) -> None:
    """Make once what all cells share: initial word vectors, and phrase pairs as a shard."""
    if not inputs.vectors.exists():
        inputs.folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=inputs.folder) as folder:
            words = Path(folder) / "paragram.txt"
            train_paragram(inputs.phrases, words, ParagramOptions(), seed=1, threads=1)
            compact_vectors(words, inputs.vectors)
    pairs = inputs.folder / "phrases"
    if not shards_in(pairs):
        _write_phrases(inputs, pairs)


class AnyCell:
    """What all cells have in common; each has its own `_key` and `_scores`."""

    def _key(self, seed: int, inputs: Inputs) -> Mapping[str, Any]:
        """What the scores depend on."""
        raise NotImplementedError

    def _scores(self, seed: int, inputs: Inputs, folder: Path) -> tuple[Scores, dict[str, Any]]:
        """The scores, computed on one thread, and what is kept with them; `folder` is for temporary
        files."""
        raise NotImplementedError

    def cell_path(self, seed: int, inputs: Inputs) -> Path:
        """The file of the scores; its name is a hash of what they depend on."""
        return keyed_path(self._key(seed, inputs), inputs)

    def run(self, seed: int, inputs: Inputs, path: Path) -> Scores:
        """Compute the scores, and write them to `path`, with the `seconds` that they took."""
        path.parent.mkdir(parents=True, exist_ok=True)
        started = time.monotonic()
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            found, others = self._scores(seed, inputs, Path(folder))
        others["seconds"] = round(time.monotonic() - started, 6)
        with atomic_file(path) as temporary:
            figures = {name: np.asarray(value).tolist() for name, value in found.items()}
            temporary.write_text(json.dumps({"scores": figures, "seed": seed, **others}))
        return found

    def known(self, seed: int, inputs: Inputs) -> Scores:
        """The scores, which are computed if need be."""
        path = self.cell_path(seed, inputs)
        return load_scores(path) if path.exists() else self.run(seed, inputs, path)


@dataclass(frozen=True, kw_only=True)
class Cell(AnyCell):
    """An encoder's options and its training pairs."""

    options: EmbeddingOptions
    pairs: str = "sentences"
    """`sentences` of the corpus, `phrases`, or the name of a folder with pairs for each seed"""

    def _key(self, seed: int, inputs: Inputs) -> Mapping[str, Any]:
        return {
            "version": VERSION,
            "options": self.options.of_weights(),
            "seed": seed,
            "pairs": digest(folder_of(self, seed, inputs)),
            "evaluation": [digest(inputs.sts), digest(inputs.sick)],
        }

    def _scores(self, seed: int, inputs: Inputs, folder: Path) -> tuple[Scores, dict[str, Any]]:
        shards = shards_in(folder_of(self, seed, inputs))
        metrics = train(self.options, folder / "model", shards=shards, seed=seed, threads=1)
        found = similarity_scores(load_encoder(folder / "model").embed, inputs)
        return found, {"options": self.options.chosen(), "pairs": self.pairs, "metrics": metrics}


@dataclass(frozen=True, kw_only=True, eq=False)
class TaskCell(AnyCell):
    """A task of the papers; its options name the files.

    Compared by identity: options with lists have no hash.
    """

    options: SystemOptions

    def _tests(self, inputs: Inputs) -> dict[str, Any]:
        """The data, beside the options' files, that the model is evaluated on."""
        return {}

    def _measured(
        self, model: SentenceEncoder, metrics: dict[str, Any], inputs: Inputs
    ) -> tuple[Scores, dict[str, Any]]:
        """The scores of the trained model, and what is kept with them."""
        raise NotImplementedError

    def _key(self, seed: int, inputs: Inputs) -> Mapping[str, Any]:
        options = self.options.of_weights()
        return {"options": options, "version": TASK_VERSION, "seed": seed, **self._tests(inputs)}

    def _scores(self, seed: int, inputs: Inputs, folder: Path) -> tuple[Scores, dict[str, Any]]:
        metrics = train(self.options, folder / "model", seed=seed, threads=1)
        found, others = self._measured(load_encoder(folder / "model"), metrics, inputs)
        return found, {"options": self.options.chosen(), "metrics": metrics, **others}


def keyed_path(key: Mapping[str, Any], inputs: Inputs) -> Path:
    """The file named by a hash of `key`."""
    name = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:24]
    return inputs.folder / "cells" / f"{name}.json"


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


def load_scores(path: Path, *, timed: bool = False) -> Scores:
    """The scores that a cell wrote; with `timed`, also the `seconds` that they took.

    Raises:
        UserError: the file is damaged.
    """
    try:
        kept = json.loads(path.read_text())
        figures = kept["scores"]
        if timed and "seconds" in kept:  # earlier versions kept them among the scores
            figures["seconds"] = kept["seconds"]
    except (OSError, ValueError, KeyError) as error:
        raise UserError(f"{path}: damaged; remove it to compute it again ({error})") from error
    return {n: np.array(of) if isinstance(of, list) else of for n, of in figures.items()}


def folder_of(cell: Cell, seed: int, inputs: Inputs) -> Path:
    """The folder of the shards that a cell is trained on."""
    if cell.pairs == "sentences":
        return inputs.corpus
    if cell.pairs == "phrases":
        return inputs.folder / "phrases"
    return inputs.folder / cell.pairs / str(seed)


def _write_phrases(inputs: Inputs, folder: Path) -> None:
    """Write random phrase pairs that together have as many words as the corpus (W&G 4.1)."""
    columns = read_pairs(inputs.corpus).columns
    words = sum(text.count(" ") + 1 for column in columns for text in column.to_pylist())
    pairs = list(read_phrases(inputs.phrases))
    Random(1).shuffle(pairs)
    after = accumulate(left.count(" ") + right.count(" ") + 2 for left, right in pairs)
    enough = 1 + sum(count < words for count in after)
    left, right = zip(*pairs[:enough], strict=True)
    write_pairs(folder, pa.table({"reference": left, "translation": right}))


def read_pairs(folder: Path, *columns: str) -> pa.Table:
    """The pairs in a folder of shards, with further columns."""
    names = ["reference", "translation", *columns]
    files = sorted(folder.glob("*.parquet"))
    return pa.concat_tables([pq.read_table(file, columns=names) for file in files])


def write_pairs(folder: Path, pairs: pa.Table) -> None:
    """Write pairs as the only shard of a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with atomic_file(folder / "part-0.parquet") as temporary:
        pq.write_table(pairs, temporary)


def shards_in(folder: Path) -> list[str]:
    """The paths of a folder's shards, in order."""
    return sorted(map(str, folder.glob("*.parquet")))
