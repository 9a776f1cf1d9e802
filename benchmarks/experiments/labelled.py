"""Cells of training on labelled pairs, and the table of MaLSTM (Mueller & Thyagarajan 2016).

With SICK, its training pairs are used for training and for the selection of the epoch. With STS
2012 to 2014, 40% of every set are used for training and 10% for the selection. SICK trial, the
other half of each set, and STS 2015 are only reported.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.experiments.cells import Inputs, Scores, digest, save_scores, task_cell
from benchmarks.experiments.tables import Claim, Table
from paraloom.models.embeddings.applications.evaluation import agreement
from paraloom.models.embeddings.datasets.similarity import read_sts
from paraloom.models.embeddings.model import load_encoder
from paraloom.papers import tasks
from paraloom.papers.options import MaLSTMOptions, SystemOptions

VERSION = 2  # bump when cells have other scores: all cells are then computed again
YEARS = ("2012", "2013", "2014")


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelledCell:
    """A task trained on labelled pairs; its options name the files."""

    options: SystemOptions


def cell_path(cell: LabelledCell, seed: int, inputs: Inputs) -> Path:
    """The file of a cell's scores; its name is a hash of what they depend on."""
    tests = digest(inputs.sts / "2015")
    return task_cell(cell.options, inputs, version=VERSION, seed=seed, evaluation=tests)


def run(cell: LabelledCell, seed: int, inputs: Inputs, path: Path) -> Scores:
    """Train on one thread, and write the scores to `path`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        metrics = tasks.train(cell.options, Path(folder) / "model", seed=seed, threads=1)
        scores = {"development": metrics["development"], **_test(metrics)}
        if not any(name.startswith("SICK ") for name in metrics["test"]):
            model = load_encoder(Path(folder) / "model")
            year = read_sts(inputs.sts / "2015")
            pearsons = [agreement(model.embed, pairs, model.compare).pearson for pairs in year]
            scores["sts_2015"] = float(np.mean(pearsons))
    save_scores(path, scores, cell.options, seed=seed, metrics=metrics)
    return scores


def _test(metrics: Mapping[str, Any]) -> Scores:
    test = metrics["test"]
    found = test.get("mean") or next(iter(test.values()))  # a single set has no mean
    scores = {key: found[key] for key in ("pearson", "spearman", "mse")}
    if "entailment" in metrics:
        (scores["entailment"],) = metrics["entailment"]["accuracy"].values()
    if "uncalibrated" in metrics:
        (plain,) = metrics["uncalibrated"].values()
        same = {key: scores[key] for key in ("entailment",) if key in scores}
        without = {**same, "development": metrics["development"], **plain}
        scores |= {f"uncalibrated {key}": without[key] for key in ("development", *scores)}
    return scores


def tables(inputs: Inputs) -> dict[str, Table]:
    """All tables by name."""
    years = [str(inputs.sts / year) for year in YEARS]
    return {"malstm": _malstm(years, inputs)}


def _malstm(years: list[str], inputs: Inputs) -> Table:
    def row(epochs: int = 80, **parts: Any) -> LabelledCell:
        options = SystemOptions(
            task="malstm",
            malstm=MaLSTMOptions(data=[str(inputs.sick)], patience=15, **parts),
            model="lstm",
            hidden=50,
            initial_vectors=str(inputs.vectors),
            epochs=epochs,
            batch_size=16,
            clip=1.0,
        )
        return LabelledCell(options=options)

    synonyms = str(inputs.phrases)
    # With synonyms an epoch has four times as many pairs.
    full = row(epochs=27, pretrain=years, synonyms=synonyms)
    rows = {
        "MaLSTM": full,
        "without calibration": full,
        "without pre-training": row(epochs=27, synonyms=synonyms),
        "without synonyms": row(pretrain=years),
        "without pre-training and synonyms (ours)": row(),
    }
    prefixes = {name: "uncalibrated " if name == "without calibration" else "" for name in rows}
    losses = {"calibration": 1.0, "pre-training": 2.0, "synonyms": 4.0}
    claims = [
        Claim("MaLSTM", f"without {part}", {"pearson": loss}) for part, loss in losses.items()
    ]
    title = "MaLSTM on SICK: Tables 2 and 4, and what each part is worth by r (section Results)"
    return Table(
        f"{title}; the other measures of rows without a part are ours, and synonyms are of PPDB",
        rows,
        claims,
        prefixes=prefixes,
        measures={
            "development": "held out",
            "pearson": "r",
            "spearman": "ρ",
            "mse": "MSE",
            "entailment": "entailment",
        },
        note="At most 80 epochs, 27 with synonyms, 15 without gain; batches of 16, 50 units.",
        paper={"MaLSTM": {"pearson": 88.22, "spearman": 83.45, "mse": 0.2286, "entailment": 84.2}},
    )
