"""Cells of tables: trained and evaluated encoders, whose scores are cached in files."""

import hashlib
import json
import shutil
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
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
from paraloom.papers.tasks import train

VERSION = 4  # bump to compute all cells again, after a change of their scores
digest = cache(files_digest)  # the data do not change while tables are made
DEVELOPMENT = ("STS 2012", "STS 2013", "STS 2014")
WORD_PAIRS = "phrases"
"""The folder of the shard with random pairs of the lexicon, below the folder of the results."""
_OF_CORPUS = (WORD_PAIRS, "phrases.txt.gz", "universal")
"""Results to remove if the corpus changes. Cells and encoders then get new names instead."""


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
    spacy: str = ""
    """A spaCy pipeline that tags and parses, for the gates of W&G"""
    sources: Mapping[str, Path] = field(default_factory=dict)
    """Files with pairs of one source, by name, for ParaNMT's Table 3"""
    others: Mapping[str, Path] = field(default_factory=dict)
    """Models of sentence-transformers, by name, for ParaNMT's Tables 11 and 12"""

    @classmethod
    def of(cls, data: Path, **more: Any) -> Self:
        """Return the usual paths of the data in the folder `data`. `more` sets other fields."""
        sets: dict[str, Any] = {name: data / name for name in ("sts", "sick", "books")}
        return cls(phrases=data / "ppdb" / "ppdb-xl-lexicon.txt.gz", **sets, **more)

    @property
    def vectors(self) -> Path:
        """The initial word vectors of all encoders, in the compact form."""
        return self.folder / "paragram"

    @property
    def development(self) -> list[str]:
        """The folders of STS 2012 to 2014, the development data of the experiments."""
        return [str(self.sts / year.removeprefix("STS ")) for year in DEVELOPMENT]


Scores = dict[str, Any]
"""Figures by measure, such as Pearson × 100 on STS 2012–2014 (`development`), on STS 2015
(`sts_2015`) and on SICK trial (`sick`). A figure is a number, or an array of a number and its
resamples (see `bootstrap`)."""


def prepare(inputs: Inputs) -> None:
    """Make the initial word vectors and the shard of word pairs, if they do not exist.

    The word pairs are random pairs of the lexicon, with as many words as the corpus (W&G 4.1).
    Results made from another corpus are removed first.
    """
    inputs.folder.mkdir(parents=True, exist_ok=True)
    made_from, corpus = inputs.folder / "corpus.sha256", digest(inputs.corpus)
    if made_from.exists() and made_from.read_text() != corpus:
        for path in (inputs.folder / name for name in _OF_CORPUS):
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    made_from.write_text(corpus)
    if not inputs.vectors.exists():
        with tempfile.TemporaryDirectory(dir=inputs.folder) as folder:
            words = Path(folder) / "paragram.txt"
            train_paragram(inputs.phrases, words, ParagramOptions(), seed=1, threads=1)
            compact_vectors(words, inputs.vectors)
    if shards_in(inputs.folder / WORD_PAIRS):
        return
    columns = read_pairs(inputs.corpus).columns
    count = sum(text.count(" ") + 1 for column in columns for text in column.to_pylist())
    pairs = list(read_phrases(inputs.phrases))
    Random(1).shuffle(pairs)
    after = accumulate(left.count(" ") + right.count(" ") + 2 for left, right in pairs)
    enough = 1 + sum(words < count for words in after)
    left, right = zip(*pairs[:enough], strict=True)
    write_pairs(inputs.folder / WORD_PAIRS, pa.table({"reference": left, "translation": right}))


class AnyCell:
    """The base of all cells. Each kind of cell defines `_key` and `_scores`."""

    def _key(self, seed: int, inputs: Inputs) -> Mapping[str, Any]:
        """Return everything that the scores depend on."""
        raise NotImplementedError

    def _scores(self, seed: int, inputs: Inputs, folder: Path) -> tuple[Scores, dict[str, Any]]:
        """Compute the scores on one thread, and return them with other values to store.

        `folder` is for temporary files.
        """
        raise NotImplementedError

    def cell_path(self, seed: int, inputs: Inputs) -> Path:
        """Return the path of the scores, named by a hash of everything that they depend on."""
        return keyed_path(self._key(seed, inputs), inputs)

    def run(self, seed: int, inputs: Inputs, path: Path) -> Scores:
        """Compute the scores, and write them to `path` with the `seconds` of the computation."""
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
        """Return the scores, after computing them if they are not in the cache."""
        path = self.cell_path(seed, inputs)
        return load_scores(path) if path.exists() else self.run(seed, inputs, path)


@dataclass(frozen=True, kw_only=True, eq=False)
class Cell(AnyCell):
    """A model that is trained on pairs, and evaluated on STS and SICK trial.

    Subclasses train on other tasks, whose options name the training data, or have other tests.
    Cells are compared by identity, because options with lists have no hash.
    """

    options: EmbeddingOptions
    pairs: str = ""
    """Folder of the pairs, below the folder of the results. Without a name, the corpus is used."""

    def _tests(self, inputs: Inputs) -> list[Path]:
        """Return the test data that the options do not name."""
        return [inputs.sts, inputs.sick]

    def _measured(
        self, model: SentenceEncoder, metrics: dict[str, Any], inputs: Inputs
    ) -> tuple[Scores, dict[str, Any]]:
        """Return the scores of the trained model, and other values to store."""
        return similarity_scores(model.embed, inputs), {}

    def _training(self, seed: int, inputs: Inputs) -> dict[str, Any]:
        """Return everything that the trained model depends on."""
        pairs = digest(self._folder(inputs)) if self.options.reads_the_corpus else None
        return {"options": self.options.of_weights(), "seed": seed, "pairs": pairs}

    def _train(self, seed: int, inputs: Inputs, folder: Path) -> dict[str, Any]:
        """Train the model, and return the metrics of the training."""
        shards = shards_in(self._folder(inputs)) if self.options.reads_the_corpus else []
        return train(self.options, folder, shards=shards, seed=seed, threads=1)

    def _folder(self, inputs: Inputs) -> Path:
        return inputs.folder / self.pairs if self.pairs else inputs.corpus

    def _key(self, seed: int, inputs: Inputs) -> Mapping[str, Any]:
        tests = [digest(path) for path in self._tests(inputs) if path.exists()]
        return {"version": VERSION, **self._training(seed, inputs), "tests": tests}

    def _scores(self, seed: int, inputs: Inputs, folder: Path) -> tuple[Scores, dict[str, Any]]:
        metrics = self._train(seed, inputs, folder / "model")
        found, others = self._measured(load_encoder(folder / "model"), metrics, inputs)
        chosen = {"options": self.options.chosen(), "pairs": self.pairs}
        return found, {**chosen, "metrics": metrics, **others}


def keyed_path(key: Mapping[str, Any], inputs: Inputs) -> Path:
    """Return the path of a cell's file, which is named by a hash of `key`."""
    name = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:24]
    return inputs.folder / "cells" / f"{name}.json"


def similarity_scores(embed: Embed, inputs: Inputs) -> Scores:
    """Return resampled Pearson × 100 on STS and SICK trial.

    The measures are data sets of STS (`STS 2015 images`), means by year (`STS 2015` and
    `sts_2015`), the mean of STS 2012 to 2014 (`development`), and `sick`.
    """
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


def transfer_folders(inputs: Inputs) -> list[Path]:
    """Return the existing folders with transfer tasks, including SICK."""
    folders = [inputs.sts.parent / name for name in ("transfer", "mrpc")]
    return [folder for folder in [*folders, inputs.sick] if folder.exists()]


def transfer_scores(embed: Embed, inputs: Inputs) -> Scores:
    """Return the figures of the available transfer tasks by measure, such as `MR accuracy`."""
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
    """Return a score without its resamples."""
    return float(np.ravel(score)[0])


def load_scores(path: Path, *, timed: bool = False) -> Scores:
    """Read the scores of a cell and, with `timed`, the `seconds` of their computation.

    Raises:
        UserError: the file is damaged.
    """
    try:
        kept = json.loads(path.read_text())
        figures = kept["scores"]
        if timed:
            figures["seconds"] = kept["seconds"]
    except (OSError, ValueError, KeyError) as error:
        raise UserError(f"{path}: damaged; remove it to compute it again ({error})") from error
    return {n: np.array(of) if isinstance(of, list) else of for n, of in figures.items()}


def read_pairs(folder: Path, *columns: str) -> pa.Table:
    """Read the pairs in a folder of shards, with further columns."""
    names = ["reference", "translation", *columns]
    files = sorted(folder.glob("*.parquet"))
    return pa.concat_tables([pq.read_table(file, columns=names) for file in files])


def write_pairs(folder: Path, pairs: pa.Table) -> None:
    """Write pairs as the only shard of a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with atomic_file(folder / "part-0.parquet") as temporary:
        pq.write_table(pairs, temporary)


def shards_in(folder: Path) -> list[str]:
    """Return the paths of a folder's shards, in order."""
    return sorted(map(str, folder.glob("*.parquet")))
