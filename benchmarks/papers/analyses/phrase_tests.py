"""Tests of phrase vectors: choosing the paraphrase, SemEval-2013 task 5(a), Turney 2012."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import typer
from numpy.typing import NDArray

from paraloom.models.embeddings.comparison import ComparedModel, Scores
from paraloom.models.embeddings.datasets.lines import numbered_lines
from paraloom.models.embeddings.model import SentenceEncoder, load_encoder
from paraloom.models.errors import UserError
from paraloom.papers.datasets.phrases import HeldOut, PhrasePairs, read_phrase_pairs, split
from paraloom.papers.options import SystemOptions
from paraloom.pipeline.commands.console import console, number_table
from paraloom.pipeline.commands.options import JsonFile, write_json
from paraloom.pipeline.run.notices import notify, of_models

_BLOCK = 100_000  # number of scores to compute at once
_SPLITS = ("train", "test")


def choose(
    model: ComparedModel,
    pairs: PhrasePairs,
    others: pa.StringArray,
    *,
    among: int = 100,
    seed: int = 0,
) -> NDArray[np.bool_]:
    """Return whether the model finds each pair's paraphrase, bool [n] (Zhou et al. 2017).

    The paraphrase must score higher than `among` − 1 phrases, which are sampled from `others`. The
    phrases in `others` must be distinct.
    """
    if len(others) < among + 1:
        raise UserError(f"{len(others)} phrases are too few to choose among {among}")
    texts = pa.concat_arrays([*pairs, others]).unique()
    vectors = model.embed(texts)
    left, right, pool = (pc.index_in(side, texts).to_numpy() for side in (*pairs, others))
    random = np.random.default_rng(seed)
    hits = []
    for start in range(0, len(pairs), max(1, _BLOCK // among)):
        here = slice(start, start + max(1, _BLOCK // among))
        # Sample two more phrases than needed, because both sides of the pair are removed.
        sampled = pool[_sample(random, len(left[here]), among + 1, len(pool))]
        own = (sampled == left[here, None]) | (sampled == right[here, None])
        order = np.argsort(own, axis=1, kind="stable")[:, : among - 1]
        choices = np.concatenate([right[here, None], np.take_along_axis(sampled, order, 1)], axis=1)
        first = vectors[np.repeat(left[here], among)]
        scores = model.compare(first, vectors[choices.ravel()]).reshape(-1, among)
        hits.append(scores[:, 0] > scores[:, 1:].max(axis=1))
    return np.concatenate(hits)


def percent_chosen(model: ComparedModel, pairs: PhrasePairs, others: pa.StringArray) -> float:
    """Return the percentage of pairs for which `choose` is true."""
    return 100 * float(choose(model, pairs, others).mean())


def _sample(random: np.random.Generator, rows: int, count: int, size: int) -> NDArray[np.int64]:
    sampled = random.integers(size, size=(rows, count))
    again = np.arange(rows)
    while len(again):
        order = np.argsort(sampled[again], axis=1, kind="stable")
        ordered = np.take_along_axis(sampled[again], order, 1)
        row, column = np.nonzero(ordered[:, 1:] == ordered[:, :-1])
        sampled[again[row], order[row, column + 1]] = random.integers(size, size=len(row))
        again = again[np.unique(row)]
    return sampled


class WordsAndPhrases(NamedTuple):
    """n pairs of a word and a phrase from SemEval-2013 task 5(a)."""

    words: pa.StringArray
    phrases: pa.StringArray
    same: NDArray[np.bool_]  # [n], whether the phrase has the meaning of the word

    def take(self, rows: NDArray[np.bool_]) -> Self:
        """Return the pairs for which the mask `rows` is true."""
        mask = pa.array(rows)
        return type(self)(self.words.filter(mask), self.phrases.filter(mask), self.same[rows])


def read_semeval2013(
    folder: Path | str, splits: Sequence[str] = _SPLITS
) -> dict[str, WordsAndPhrases]:
    """Read the English training set and test set of the task, by name.

    The published files are in `folder` or one level below it. A line is a word, a tab and a phrase.
    """
    found = {}
    for name in splits:
        words, phrases, same = [], [], []
        for kind in ("positive", "negative"):
            pattern = f"en.{name}Set.{kind}Instances*"
            paths = sorted([*Path(folder).glob(pattern), *Path(folder).glob(f"*/{pattern}")])
            if not paths:
                raise UserError(f"{folder}: no {pattern.replace('*', '-v2')} here")
            for word, phrase in _columns(paths[0], "\t", 2, "a word and a phrase between tabs"):
                words.append(word)
                phrases.append(phrase)
                same.append(kind == "positive")
        found[name] = WordsAndPhrases(pa.array(words), pa.array(phrases), np.array(same))
    return found


def semeval2013(model: ComparedModel, data: dict[str, WordsAndPhrases]) -> dict[str, float]:
    """Return accuracy and F1 × 100 on the test set. The threshold is fitted on the training set."""
    scores = {name: _scores(model, part.words, part.phrases) for name, part in data.items()}
    threshold = _threshold(scores["train"], data["train"].same)
    predicted, same = scores["test"] >= threshold, data["test"].same
    right = float((predicted & same).sum())
    return {
        "accuracy": 100 * float((predicted == same).mean()),
        "f1": 100 * 2 * right / max(float(predicted.sum() + same.sum()), 1.0),
    }


def semeval2013_training(model: ComparedModel, data: WordsAndPhrases) -> float:
    """Return the accuracy × 100 on a set, with the best threshold for the same set."""
    return semeval2013(model, dict.fromkeys(_SPLITS, data))["accuracy"]


def _threshold(scores: Scores, same: NDArray[np.bool_]) -> float:
    order = np.argsort(-scores, kind="stable")
    scores, same = scores[order], same[order]
    # right[i] is the number of correct minus wrong predictions among the i highest scores.
    right = np.concatenate([[0], np.cumsum(np.where(same, 1, -1))])
    ends = np.append(scores[1:] < scores[:-1], True)  # a threshold cannot separate equal scores
    best = int(np.argmax(np.where(np.append(True, ends), right, -len(right))))
    around = np.concatenate([[np.inf], scores, scores[-1:]])[best : best + 2]
    return float(around.mean())


class Question(NamedTuple):
    """A question of Turney 2012: which choice has the meaning of the stem?"""

    stem: str  # two words
    choices: tuple[str, ...]  # the solution, both words of the stem, and further choices

    @property
    def reverse(self) -> str:
        """The stem with its words in reverse order."""
        return " ".join(reversed(self.stem.split()))

    @property
    def five(self) -> list[str]:
        """The solution and four other choices. The words of the stem are not among them."""
        return [self.choices[0], *self.choices[3:]]


def is_turney2012(path: Path | str) -> bool:
    """Return whether a file contains Turney's questions rather than a phrase table."""
    _, line = next(numbered_lines(Path(path)), (1, ""))
    return line.count("|") == 7 and "|||" not in line


def read_turney2012(path: Path | str) -> list[Question]:
    """Read the published noun-modifier questions: `stem | solution | modifier | head | …`."""
    questions = []
    form = "a stem of two words and seven choices between bars"
    for number, columns in enumerate(_columns(Path(path), "|", 8, form), 1):
        stem, *choices = columns
        if len(stem.split()) != 2:
            raise UserError(f"{path}, row {number}: the stem {stem!r} must have two words")
        questions.append(Question(" ".join(stem.split()), tuple(choices)))
    return questions


def turney2012(model: ComparedModel, questions: list[Question]) -> dict[str, float]:
    """Return the percentage of questions whose solution scores highest, for 5 and 10 choices.

    The 10 choices are the 5 choices compared with the stem, and again compared with the reverse
    stem. A model that ignores word order then has half its percentage for 5 choices (Zhou et al.
    2017, Table 1). If the solution is among t choices with the highest score, it counts as 1/t.
    """
    stems = [question.stem for question in questions]
    reverse = [question.reverse for question in questions]
    flat = pa.array([choice for question in questions for choice in question.five])
    forward, backward = (
        _scores(model, pa.array(np.repeat(of, 5)), flat).reshape(-1, 5) for of in (stems, reverse)
    )
    percent = {}
    for number, scores in ((5, forward), (10, np.hstack([forward, backward]))):
        best = scores == scores.max(axis=1, keepdims=True)
        percent[f"{number} choices"] = 100 * float((best[:, 0] / best.sum(axis=1)).mean())
    return percent


def turney2012_mean(model: ComparedModel, questions: list[Question]) -> float:
    """Return the mean of the percentages of `turney2012`."""
    return float(np.mean(list(turney2012(model, questions).values())))


def _scores(model: ComparedModel, first: pa.StringArray, second: pa.StringArray) -> Scores:
    return model.compare(model.embed(first), model.embed(second))


def _columns(path: Path, separator: str, count: int, form: str) -> Iterator[list[str]]:
    number = 0
    for number, line in numbered_lines(path):
        columns = [column.strip() for column in line.split(separator)]
        if len(columns) != count or not all(columns):
            raise UserError(f"{path}, row {number}: not {form}: {line[:80]!r}")
        yield columns
    if not number:
        raise UserError(f"{path}: empty")


def evaluate_phrases(
    model: ComparedModel,
    *,
    pairs: PhrasePairs | None = None,
    semeval: dict[str, WordsAndPhrases] | None = None,
    questions: list[Question] | None = None,
) -> dict[str, Any]:
    """Return the measures of each test whose data are given, by name of the test."""
    found: dict[str, Any] = {}
    if pairs is not None:
        found["choose among 100"] = {"accuracy": percent_chosen(model, pairs, pairs.phrases())}
    found |= {"SemEval-2013 5(a)": semeval2013(model, semeval)} if semeval else {}
    return found | ({"Turney 2012": turney2012(model, questions)} if questions else {})


def _split_of(encoders: Sequence[tuple[str, SentenceEncoder]]) -> HeldOut:
    options = (encoder.options for _, encoder in encoders)
    found = {of.phrases.split for of in options if isinstance(of, SystemOptions) and of.phrases}
    if len(found) > 1:
        raise UserError(
            "--held-out: these models held out pairs in different ways "
            "(embeddings.phrases.split); evaluate them one by one"
        )
    return found.pop() if found else "pairs"


def command(
    model: Annotated[
        list[str], typer.Option(metavar="DIR", help="Folder of an encoder. Repeatable.")
    ],
    table: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Phrase table. Models must find the paraphrase."),
    ] = None,
    held_out: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            min=0,
            max=1,
            help="Use only the pairs of the table that the training held out for the test. SHARE "
            "is the value of embeddings.phrases.held_out in the training.",
        ),
    ] = None,
    semeval2013: Annotated[
        str | None,
        typer.Option(
            metavar="DIR", help="Folder of SemEval-2013 5(a), with en.trainSet.…Instances-v2."
        ),
    ] = None,
    turney2012: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Questions of Turney 2012: `stem | solution | …`."),
    ] = None,
    json: JsonFile = None,
) -> None:
    """Give at least one of --table, --semeval2013 and --turney2012."""
    if not (table or semeval2013 or turney2012):
        raise UserError("give --table, --semeval2013 or --turney2012")
    pairs = read_phrase_pairs(table) if table else None
    semeval = read_semeval2013(semeval2013) if semeval2013 else None
    questions = read_turney2012(turney2012) if turney2012 else None
    encoders = [(folder, load_encoder(folder)) for folder in model]
    if pairs is not None and held_out is not None:
        pairs = split(pairs, held_out, _split_of(encoders)).test
    if semeval or questions:
        languages = {folder: encoder.language for folder, encoder in encoders}
        notify(of_models(languages, "the tests of SemEval and Turney are"))
    data: dict[str, Any] = {"pairs": pairs, "semeval": semeval, "questions": questions}
    results = {
        folder: evaluate_phrases(encoder.named(folder), **data) for folder, encoder in encoders
    }
    first, *_ = results.values()
    rows = [
        (f"{test}: {measure}", *(f"{of[test][measure]:.1f}" for of in results.values()))
        for test, measures in first.items()
        for measure in measures
    ]
    console().print(number_table("Phrase tests, × 100", "test", numbers=[*results], rows=rows))
    write_json(json, results)
