"""Evaluation of sentence vectors on classification tasks, as in SentEval."""

from collections.abc import Sequence
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
_STRENGTHS = (0.001, 0.01, 0.1)  # values of C for standardised features
_HELD_OUT = 0.1  # share of the training examples with which C is selected
PARAPHRASE = "1"  # label of paraphrases in MRPC

TaskScores = dict[str, float]
"""`accuracy` (for MRPC, also `f1`), or `pearson` for SICK-R, in percent."""


def transfer(models: Sequence[tuple[str, Embed]], folder: Path | str) -> dict[str, Any]:
    """Evaluate models on the tasks whose files are below a folder."""
    found, missing = find_tasks(folder)
    tasks: dict[str, Any] = {}
    for task in found:
        scores = {}
        for name, embed in models:
            scores[name] = {key: round(x, 4) for key, x in evaluate(embed, task).items()}
        tasks[task.name] = {"tested": task.tested, "train": len(task.train), "models": scores}
    return {"tasks": tasks, "missing": missing}


def transfer_table(models: Sequence[str], results: dict[str, Any]) -> Table:
    """Format the results of `transfer` as a table with a row per task."""
    rows = []
    for name, of in results["tasks"].items():
        cells = (
            " / ".join(f"{x:.1f}" for x in scores.values()) for scores in of["models"].values()
        )
        rows.append((name, of["tested"], *cells))
    table = number_table("Transfer tasks", "task", "tested on", numbers=models, rows=rows)
    table.caption = "percent"
    if results["missing"]:
        table.add_row(f"without {', '.join(results['missing'])} (not there)", style="dim")
    return table


def evaluate(embed: Embed, task: TransferTask, *, seed: int = 1) -> TaskScores:
    """Return the scores of a logistic regression on the vectors of a model.

    Tasks without test examples are evaluated by cross-validation.
    """
    return _judge(*predictions(embed, task, seed=seed), task.name)


def predictions(
    embed: Embed, task: TransferTask, *, seed: int = 1
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the predicted labels and the true labels that `evaluate` compares."""
    features, labels = _features(embed, task.train), task.train.labels
    if task.test is not None:
        other = _features(embed, task.test)
        return _predictor(features, labels, seed)(other), task.test.labels
    predicted = np.empty_like(labels)
    for train, test in _folds(labels, seed):
        predicted[test] = _predictor(features[train], labels[train], seed)(features[test])
    return predicted, labels


def _features(embed: Embed, examples: LabelledSentences) -> Vectors:
    first, second = examples.first, examples.second
    return embed(first) if second is None else pair_features(embed, first, second)


def pair_features(embed: Embed, first: pa.StringArray, second: pa.StringArray) -> Vectors:
    """Return |a − b| and a ⊙ b, concatenated, of the vectors a and b of n pairs: [n, 2 dim]."""
    a, b = embed_pairs(embed, first, second)
    return np.concatenate([np.abs(a - b), a * b], axis=1)


def _folds(labels: NDArray[Any], seed: int) -> Any:
    from sklearn.model_selection import KFold, StratifiedKFold

    kind = KFold if labels.dtype.kind == "f" else StratifiedKFold
    return kind(FOLDS, shuffle=True, random_state=seed).split(labels, labels)


def _predictor(features: Vectors, labels: NDArray[Any], seed: int) -> Any:
    order = np.random.default_rng(seed).permutation(len(labels))
    held_out, rest = np.split(order, [max(1, round(_HELD_OUT * len(order)))])

    def success(strength: float) -> float:
        predicted = _fit(features[rest], labels[rest], strength)(features[held_out])
        (value,) = list(_judge(predicted, labels[held_out], "").values())
        return float(np.nan_to_num(value, nan=-100.0))

    return _fit(features, labels, max(_STRENGTHS, key=success))


def _fit(features: Vectors, labels: NDArray[Any], strength: float) -> Any:
    """Fit a logistic regression, and return a function from features to labels.

    A numeric label such as 3.2 is an example of class 3 with weight 0.8, and of class 4 with weight
    0.2. The mean class is predicted (Tai et al. 2015).
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = make_pipeline(StandardScaler(), LogisticRegression(C=strength, tol=1e-3, max_iter=200))
    if labels.dtype.kind != "f":
        return model.fit(features, labels).predict
    low = np.floor(labels)
    weights = np.concatenate([low + 1 - labels, labels - low])
    keep = np.flatnonzero(weights)
    classes = np.concatenate([low, low + 1])[keep].astype(int)
    rows = features[keep % len(labels)]
    model.fit(rows, classes, logisticregression__sample_weight=weights[keep])
    return lambda found: model.predict_proba(found) @ model[-1].classes_


def _judge(predicted: NDArray[Any], labels: NDArray[Any], task: str) -> TaskScores:
    if labels.dtype.kind == "f":
        return {"pearson": correlation(predicted, labels).pearson}
    from sklearn.metrics import f1_score

    accuracy = 100 * float(np.mean(predicted == labels))
    if task != "MRPC":
        return {"accuracy": accuracy}
    f1 = f1_score(labels, predicted, pos_label=PARAPHRASE, zero_division=0.0)
    return {"accuracy": accuracy, "f1": 100 * float(f1)}


def command(
    model: OpenModels,
    tasks: Annotated[
        str,
        typer.Option(metavar="DIR", help="Folder with MR, CR, SUBJ, MPQA, SST, TREC, MRPC, SICK."),
    ],
    json: JsonFile = None,
) -> None:
    """Run the tasks that have files below the folder. All tasks are in English."""
    opened = open_models(model, "the transfer tasks are")
    results = transfer([(each.name, each.evaluated.embed) for each in opened], tasks)
    write_json(json, {"models": model, "transfer": results})
    console().print(transfer_table([each.name for each in opened], results))
