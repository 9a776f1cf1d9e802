"""Tests of phrase vectors: choose the paraphrase, SemEval-2013 task 5(a), Turney 2012."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from models.embeddings.applications.embed import line_batches
from models.embeddings.applications.evaluation import Model
from models.embeddings.datasets.phrases import PhrasePairs
from models.errors import UserError

_BLOCK = 100_000  # scores computed at once
_SPLITS = ("train", "test")


def choose(
    model: Model, pairs: PhrasePairs, others: pa.StringArray, *, among: int = 100, seed: int = 0
) -> float:
    """How often the paraphrase scores highest among so many phrases, × 100 (Zhou et al. 2017).

    Beside the paraphrase (the pair's right side) the phrases are drawn from `others`, which are
    distinct, without the two of the pair; the same for every model. A tie is a miss.

    Raises:
        UserError: there are not as many others.
    """
    if len(others) < among + 1:
        raise UserError(f"{len(others)} phrases are too few to choose among {among}")
    texts = pa.concat_arrays([*pairs, others]).unique()
    vectors = model.embed(texts)
    left, right, pool = (pc.index_in(side, texts).to_numpy() for side in (*pairs, others))
    random = np.random.default_rng(seed)
    hits = 0
    for start in range(0, len(pairs), max(1, _BLOCK // among)):
        here = slice(start, start + max(1, _BLOCK // among))
        # Two more than needed: then enough are left without the pair's own two.
        drawn = pool[_draw(random, len(left[here]), among + 1, len(pool))]
        own = (drawn == left[here, None]) | (drawn == right[here, None])
        order = np.argsort(own, axis=1, kind="stable")[:, : among - 1]
        drawn = np.concatenate([right[here, None], np.take_along_axis(drawn, order, 1)], axis=1)
        first = vectors[np.repeat(left[here], among)]
        scores = model.compare(first, vectors[drawn.ravel()]).reshape(-1, among)
        hits += int((scores[:, 0] > scores[:, 1:].max(axis=1)).sum())
    return 100 * hits / len(pairs)


def _draw(random: np.random.Generator, rows: int, count: int, size: int) -> np.ndarray:
    """`count` different numbers below `size` in each of so many rows: what repeats is redrawn."""
    drawn = random.integers(size, size=(rows, count))
    again = np.arange(rows)
    while len(again):
        order = np.argsort(drawn[again], axis=1, kind="stable")
        ordered = np.take_along_axis(drawn[again], order, 1)
        row, at = np.nonzero(ordered[:, 1:] == ordered[:, :-1])
        drawn[again[row], order[row, at + 1]] = random.integers(size, size=len(row))
        again = again[np.unique(row)]
    return drawn


class WordsAndPhrases(NamedTuple):
    """SemEval-2013 task 5(a): does the phrase say what the word says?"""

    words: pa.StringArray
    phrases: pa.StringArray
    same: np.ndarray
    """bool [n]"""


def read_semeval2013(folder: Path | str) -> dict[str, WordsAndPhrases]:
    """The training and the test set of the task's English part, by name.

    Files are as published: `en.trainSet.positiveInstances-v2`, `en.trainSet.negativeInstances-v2`
    and the two of `en.testSet`, in `folder` or below it; a line is a word, a tab and a phrase.

    Raises:
        UserError: a file is missing, or a line has not two columns.
    """
    found = {}
    for split in _SPLITS:
        words, phrases, same = [], [], []
        for kind in ("positive", "negative"):
            path = _one(Path(folder), f"en.{split}Set.{kind}Instances*")
            for columns in _columns(path, "\t", 2, "a word and a phrase between tabs"):
                words.append(columns[0])
                phrases.append(columns[1])
                same.append(kind == "positive")
        found[split] = WordsAndPhrases(pa.array(words), pa.array(phrases), np.array(same))
    return found


def semeval2013(model: Model, data: dict[str, WordsAndPhrases]) -> dict[str, float]:
    """Accuracy and F1 × 100 on the test set; the training set chooses the score from which on a
    phrase counts as the same, so that its accuracy is highest."""
    scores = {name: _scores(model, part.words, part.phrases) for name, part in data.items()}
    threshold = _threshold(scores["train"], data["train"].same)
    said, same = scores["test"] >= threshold, data["test"].same
    right = float((said & same).sum())
    return {
        "accuracy": 100 * float((said == same).mean()),
        "f1": 100 * 2 * right / max(float(said.sum() + same.sum()), 1.0),
    }


def _threshold(scores: np.ndarray, same: np.ndarray) -> float:
    order = np.argsort(-scores, kind="stable")
    scores, same = scores[order], same[order]
    # right[i]: with the i highest scores said to be the same
    right = np.concatenate([[0], np.cumsum(np.where(same, 1, -1))])
    ends = np.append(scores[1:] < scores[:-1], True)  # equal scores are said to be the same
    best = int(np.argmax(np.where(np.append(True, ends), right, -len(right))))
    if best == 0:
        return float(np.inf)
    return float(scores[best - 1] if best == len(scores) else (scores[best - 1] + scores[best]) / 2)


class Question(NamedTuple):
    """Turney 2012: which of the words says what the two words say? The first one does."""

    stem: str
    choices: tuple[str, ...]


def read_turney2012(path: Path | str) -> list[Question]:
    """The noun-modifier questions, as published: `stem | solution | modifier | head | …`, a line
    a question; behind these four stand words near the modifier and the head, and two at random.

    Raises:
        UserError: the file cannot be read, or a line has not a stem of two words and seven choices.
    """
    questions = []
    form = "a stem of two words and seven choices between bars"
    for number, columns in enumerate(_columns(Path(path), "|", 8, form), 1):
        stem, *choices = columns
        if len(stem.split()) != 2:
            raise UserError(f"{path}, row {number}: the stem {stem!r} has not two words")
        questions.append(Question(" ".join(stem.split()), tuple(choices)))
    return questions


def turney2012(model: Model, questions: list[Question]) -> dict[str, float]:
    """How often the solution scores highest, × 100; a tie is a miss.

    Of five choices: without the stem's own two words, which would be too near to it. Of ten: the
    same five beside those five with the stem's words in reverse order, to all of which the solution
    beside the right order must be preferred.
    """
    stems = [question.stem for question in questions]
    turned = [" ".join(reversed(stem.split())) for stem in stems]
    choices = [[question.choices[0], *question.choices[3:]] for question in questions]
    flat = pa.array([word for row in choices for word in row])
    forward, backward = (
        _scores(model, pa.array(np.repeat(of, 5)), flat).reshape(-1, 5) for of in (stems, turned)
    )
    five = forward[:, 0] > forward[:, 1:].max(axis=1)
    ten = five & (forward[:, 0] > backward.max(axis=1))
    return {"5 choices": 100 * float(five.mean()), "10 choices": 100 * float(ten.mean())}


def _scores(model: Model, first: pa.StringArray, second: pa.StringArray) -> np.ndarray:
    return model.compare(model.embed(first), model.embed(second))


def _one(folder: Path, pattern: str) -> Path:
    found = sorted([*folder.glob(pattern), *folder.glob(f"*/{pattern}")])
    if not found:
        raise UserError(f"{folder}: no {pattern.replace('*', '-v2')} here")
    return found[0]


def _columns(path: Path, separator: str, count: int, form: str) -> Iterator[list[str]]:
    """The columns of every line, without the spaces around them."""
    try:
        with path.open("rb") as stream:
            lines = [line for batch in line_batches(stream, f"{path}, ") for line in batch]
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror or error})") from error
    if not lines:
        raise UserError(f"{path}: empty")
    for number, line in enumerate(lines, 1):
        columns = [column.strip() for column in line.split(separator)]
        if len(columns) != count or not all(columns):
            raise UserError(f"{path}, row {number}: not {form}: {line[:80]!r}")
        yield columns


def evaluate_phrases(
    model: Model,
    *,
    pairs: PhrasePairs | None = None,
    semeval: dict[str, WordsAndPhrases] | None = None,
    questions: list[Question] | None = None,
) -> dict[str, Any]:
    """All tests for which there are data, by name."""
    found: dict[str, Any] = {}
    if pairs is not None:
        found["choose among 100"] = {"accuracy": choose(model, pairs, pairs.phrases())}
    if semeval is not None:
        found["SemEval-2013 5(a)"] = semeval2013(model, semeval)
    if questions is not None:
        found["Turney 2012"] = turney2012(model, questions)
    return found
