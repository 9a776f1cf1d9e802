"""Phrases to train on, to choose the epoch by, and to test: a table of pairs, or a phrase task."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from paraloom.models.embeddings.comparison import ComparedModel
from paraloom.models.errors import UserError
from paraloom.models.hashing import text_hashes, threshold
from paraloom.papers.analyses.phrase_tests import (
    choose,
    is_turney2012,
    percent_chosen,
    read_semeval2013,
    read_turney2012,
    semeval2013_training,
    turney2012_mean,
)
from paraloom.papers.datasets.phrases import PhrasePairs, read_phrase_pairs, split
from paraloom.papers.options import PhrasesOptions

AMONG = 100  # phrases, one of which is the paraphrase (Zhou et al. 2017, 3.1)


class PhraseData(NamedTuple):
    """What a training reads.

    −1 in `contrasts` means no phrase; without `contrasts`, contrast phrases are sampled from
    `phrases`.
    """

    phrases: pa.StringArray  # distinct
    train: PhrasePairs
    contrasts: NDArray[np.int64] | None  # [n, c]: rows of `phrases`
    development: Callable[[ComparedModel], float] | None  # higher is better
    development_pairs: int
    test: PhrasePairs

    def take(self, rows: NDArray[np.int64]) -> "PhraseData":
        """The data with only these training pairs."""
        contrasts = None if self.contrasts is None else self.contrasts[rows]
        return self._replace(train=self.train.take(rows), contrasts=contrasts)

    def chosen(self, model: ComparedModel) -> NDArray[np.bool_] | None:
        """For each test pair, whether its paraphrase is found among 100: [n]; None if there are too
        few."""
        enough = len(self.test) and len(self.phrases) > AMONG
        return choose(model, self.test, self.phrases) if enough else None


def read_phrase_data(section: PhrasesOptions, known: pa.StringArray | None) -> PhraseData:
    """The data of the task; `known` are the words with vectors (None: all words).

    A phrase task has no test pairs here: its own test set is published with it.
    """
    path = Path(section.table)
    if path.is_dir():
        data = _of_semeval(path, section.held_out)
    elif is_turney2012(path):
        data = _of_turney(path, section.held_out)
    else:
        data = _of_table(path, section, known)
    if section.development:
        data = data._replace(development=_of_task(Path(section.development)), development_pairs=0)
    return data


def _of_table(path: Path, section: PhrasesOptions, known: pa.StringArray | None) -> PhraseData:
    pairs = read_phrase_pairs(path, known)
    parts = split(pairs, section.held_out, section.split)
    phrases = pairs.phrases()
    count = len(parts.development)
    evaluate = partial(percent_chosen, pairs=parts.development, others=phrases)
    enough = count and len(phrases) > AMONG
    return PhraseData(phrases, parts.train, None, evaluate if enough else None, count, parts.test)


def _of_semeval(folder: Path, held_out: float) -> PhraseData:
    """Words and phrases with the same meaning; any phrase of the training set may be a contrast."""
    data = read_semeval2013(folder, ("train",))["train"]
    development = text_hashes(data.phrases) < threshold(held_out)
    used = ~development
    rest = PhrasePairs(data.words, data.phrases).take(used & data.same)
    phrases = pa.concat_arrays([data.take(used).words, data.take(used).phrases]).unique()
    evaluate = partial(semeval2013_training, data=data.take(development))
    count = int(development.sum())
    return PhraseData(phrases, rest, None, evaluate if count else None, count, rest.take(_NONE))


def _of_turney(path: Path, held_out: float) -> PhraseData:
    """Each question as two examples: its stem, solution and other choices (5 choices), and its
    solution, stem and the stem's words in reverse order (10 choices)."""
    questions = read_turney2012(path)
    hashes = text_hashes(pa.array([question.stem for question in questions]))
    chosen = hashes < threshold(held_out)
    development = [q for q, left_out in zip(questions, chosen, strict=True) if left_out]
    train = [q for q, left_out in zip(questions, chosen, strict=True) if not left_out]
    if not train:
        raise UserError(
            f"{path}: no question is left to train on; lower embeddings.phrases.held_out"
        )
    left, right, others = [], [], list[Sequence[str]]()
    for question in train:
        solution, *wrong = question.five
        left += [question.stem, solution]
        right += [solution, question.stem]
        others += [wrong, [question.reverse]]
    pairs = PhrasePairs(pa.array(left), pa.array(right))
    phrases = pa.array([*left, *(phrase for of in others for phrase in of)]).unique()
    rows = {phrase: row for row, phrase in enumerate(phrases.to_pylist())}
    contrasts = np.full((len(pairs), max(map(len, others))), -1)
    for row, of in enumerate(others):
        contrasts[row, : len(of)] = [rows[phrase] for phrase in of]
    evaluate = partial(turney2012_mean, questions=development) if development else None
    return PhraseData(phrases, pairs, contrasts, evaluate, len(development), pairs.take(_NONE))


_NONE = np.zeros(0, np.int64)


def _of_task(path: Path) -> Callable[[ComparedModel], float]:
    """The score on a phrase task's training set."""
    if not path.is_dir():
        return partial(turney2012_mean, questions=read_turney2012(path))
    return partial(semeval2013_training, data=read_semeval2013(path, ("train",))["train"])
