"""`paraloom papers transfer`: logistic regression on sentence vectors, as in SentEval."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import typer
from numpy.typing import NDArray
from rich.table import Table

from paraloom.models.embeddings.applications.evaluation import correlation, embed_pairs
from paraloom.models.embeddings.comparison import Embed, Vectors
from paraloom.papers.analyses.options import open_models
from paraloom.papers.datasets.transfer import LabelledSentences, TransferTask, find_tasks
from paraloom.pipeline.commands.console import console, number_table
from paraloom.pipeline.commands.options import JsonFile, OpenModels, write_json

FOLDS = 10
_STRENGTHS = (0.001, 0.01, 0.1)  # C of the regression, of features with variance 1
_HELD_OUT = 0.1  # share of the training part that selects C
PARAPHRASE = "1"  # the label of MRPC whose F1 counts

TaskScores = dict[str, float]
"""In percent: `accuracy`, for MRPC also `f1`; for SICK-R `pearson`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TransferResults:
    """Results of several models on the available tasks."""

    tasks: list[TransferTask]
    missing: list[str]
    scores: dict[str, list[TaskScores]]  # by model, [tasks]

    def table(self) -> Table:
        """One row per task."""
        rows = [
            (
                *(task.name, task.tested),
                *(" / ".join(f"{x:.1f}" for x in of[i].values()) for of in self.scores.values()),
            )
            for i, task in enumerate(self.tasks)
        ]
        names = list(self.scores)
        table = number_table("Transfer tasks", "task", "tested on", numbers=names, rows=rows)
        table.caption = "percent"
        if self.missing:
            table.add_row(f"without {', '.join(self.missing)} (not there)", style="dim")
        return table

    def json(self) -> dict[str, Any]:
        """`tasks.<task>.models.<model>.accuracy`, and what is missing."""
        tasks: dict[str, Any] = {}
        for i, task in enumerate(self.tasks):
            models = {
                name: {key: round(value, 4) for key, value in of[i].items()}
                for name, of in self.scores.items()
            }
            tasks[task.name] = {"tested": task.tested, "train": len(task.train), "models": models}
        return {"tasks": tasks, "missing": self.missing}


def transfer(models: Sequence[tuple[str, Embed]], folder: Path | str) -> TransferResults:
    """Evaluate every model's vectors on the tasks below a folder."""
    tasks, missing = find_tasks(folder)
    scores = {name: [evaluate(embed, task) for task in tasks] for name, embed in models}
    return TransferResults(tasks=tasks, missing=missing, scores=scores)


def evaluate(embed: Embed, task: TransferTask, *, seed: int = 1) -> TaskScores:
    """The scores of a logistic regression on a model's vectors.

    It is trained on the training part and tested on the test part, if the task has one, else by
    cross-validation in `FOLDS`. A tenth of the training part selects its regularisation.
    """
    return _judge(*predictions(embed, task, seed=seed), task.name)


def predictions(
    embed: Embed, task: TransferTask, *, seed: int = 1
) -> tuple[NDArray[Any], NDArray[Any]]:
    """What the regression of `evaluate` predicts for the tested examples, and their labels."""
    features, labels = _features(embed, task.train), task.train.labels
    if task.test is not None:
        other = _features(embed, task.test)
        return _predictor(features, labels, seed)(other), task.test.labels
    predicted = np.empty_like(labels)
    for train, test in _folds(labels, seed):
        predicted[test] = _predictor(features[train], labels[train], seed)(features[test])
    return predicted, labels


def _features(embed: Embed, examples: LabelledSentences) -> Vectors:
    """The vectors of sentences, or the features of pairs."""
    if examples.second is None:
        return embed(examples.first)
    return pair_features(embed, examples.first, examples.second)


def pair_features(embed: Embed, first: pa.StringArray, second: pa.StringArray) -> Vectors:
    """|a − b| and a ⊙ b of the vectors of n pairs, concatenated: [n, 2 dim]."""
    a, b = embed_pairs(embed, first, second)
    return np.concatenate([np.abs(a - b), a * b], axis=1)


def _folds(labels: NDArray[Any], seed: int) -> Any:
    from sklearn.model_selection import KFold, StratifiedKFold

    kind = KFold if labels.dtype.kind == "f" else StratifiedKFold
    return kind(FOLDS, shuffle=True, random_state=seed).split(labels, labels)


def _predictor(features: Vectors, labels: NDArray[Any], seed: int) -> Any:
    """A fitted regression, as a function of features."""
    order = np.random.default_rng(seed).permutation(len(labels))
    held_out, rest = np.split(order, [max(1, round(_HELD_OUT * len(order)))])

    def success(strength: float) -> float:
        predicted = _fit(features[rest], labels[rest], strength)(features[held_out])
        (value,) = list(_judge(predicted, labels[held_out], "").values())
        return float(np.nan_to_num(value, nan=-100.0))

    return _fit(features, labels, max(_STRENGTHS, key=success))


def _fit(features: Vectors, labels: NDArray[Any], strength: float) -> Any:
    """Logistic regression on classes; for numbers, on whole numbers as classes (Tai et al. 2015).

    A number between two whole numbers is an example of both, with weights such that it is their
    mean; the mean of the distribution is predicted.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = make_pipeline(StandardScaler(), LogisticRegression(C=strength, tol=1e-3, max_iter=200))
    if labels.dtype.kind != "f":
        return model.fit(features, labels).predict
    low = np.floor(labels)
    rows = np.concatenate([np.arange(len(labels))] * 2)
    classes = np.concatenate([low, low + 1])
    weights = np.concatenate([low + 1 - labels, labels - low])
    keep = weights > 0
    model.fit(
        features[rows[keep]],
        classes[keep].astype(int),
        logisticregression__sample_weight=weights[keep],
    )
    values = model[-1].classes_
    return lambda found: model.predict_proba(found) @ values


def _judge(predicted: NDArray[Any], labels: NDArray[Any], task: str) -> TaskScores:
    if labels.dtype.kind == "f":
        return {"pearson": correlation(predicted, labels).pearson}
    from sklearn.metrics import f1_score

    scores = {"accuracy": 100 * float(np.mean(predicted == labels))}
    if task == "MRPC":
        f1 = f1_score(labels, predicted, pos_label=PARAPHRASE, zero_division=0.0)
        scores["f1"] = 100 * float(f1)
    return scores


def command(
    model: OpenModels,
    tasks: Annotated[
        str,
        typer.Option(metavar="DIR", help="Folder of MR, CR, SUBJ, MPQA, SST, TREC, MRPC, SICK."),
    ],
    json: JsonFile = None,
) -> None:
    """Evaluates on the tasks whose files are below the folder. The tasks are English."""
    opened = open_models(model, "the transfer tasks are")
    found = transfer([(each.name, each.evaluated.embed) for each in opened], tasks)
    write_json(json, {"models": model, "transfer": found.json()})
    console().print(found.table())
