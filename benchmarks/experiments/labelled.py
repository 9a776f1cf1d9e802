"""Cells that train on labelled pairs, and the table of MaLSTM (Mueller & Thyagarajan 2016).

SICK's test pairs are reported, or the trial pairs if the test pairs are missing. With STS 2012 to
2014, 40% of each data set train the model, 10% select the epoch, and the rest is reported. STS 2015
is only reported.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.experiments.bootstrap import resampled
from benchmarks.experiments.cells import Cell, Inputs, Scores
from benchmarks.experiments.tables import Claim, Table
from paraloom.models.embeddings.applications.evaluation import scores
from paraloom.models.embeddings.datasets.similarity import LabelledPairs, read_sts
from paraloom.models.embeddings.model import SentenceEncoder
from paraloom.papers.datasets.splits import LabelledSplit, split
from paraloom.papers.heads import Manhattan
from paraloom.papers.options import MaLSTMOptions, SystemOptions


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelledCell(Cell):
    """A task that is trained on labelled pairs."""

    options: SystemOptions

    def _tests(self, inputs: Inputs) -> list[Path]:
        return [inputs.sts / "2015"]

    def _measured(
        self, model: SentenceEncoder, metrics: dict[str, Any], inputs: Inputs
    ) -> tuple[Scores, dict[str, Any]]:
        found = _figures(metrics)
        test = _data(self.options).test
        found["pearson"] = _pearson(model, test)
        if isinstance(model.head, Manhattan) and "uncalibrated" in metrics:
            model.head.points = model.head.points[:, :0]
            found["uncalibrated pearson"] = _pearson(model, test)
        if test[0].group != "SICK":
            found["sts_2015"] = _pearson(model, read_sts(inputs.sts / "2015"))
        return found, {}


def _data(options: SystemOptions) -> LabelledSplit:
    """Return the pairs for training, development and test."""
    if options.malstm is not None:
        return split(options.malstm.data, held_out=options.malstm.held_out, train_trial=True)
    assert options.similarity is not None
    return split(options.similarity.data, held_out=options.similarity.held_out)


def _pearson(model: SentenceEncoder, sets: Sequence[LabelledPairs]) -> NDArray[np.float64]:
    """Return the mean of Pearson × 100 over data sets, [1 + RESAMPLES]."""
    found = [resampled(scores(model.embed, pairs, model.compare), pairs) for pairs in sets]
    return np.asarray(np.mean([of.pearson for of in found], axis=0))


def _figures(metrics: Mapping[str, Any]) -> Scores:
    """Return the figures in the metrics of a training."""
    test = metrics["test"]
    found = test.get("mean") or next(iter(test.values()))  # a single set has no mean
    figures = {key: found[key] for key in ("pearson", "spearman", "mse")}
    figures["development"] = metrics["development"]
    if "entailment" in metrics:
        (figures["entailment"],) = metrics["entailment"]["accuracy"].values()
    if "uncalibrated" in metrics:
        (plain,) = metrics["uncalibrated"].values()
        figures |= {f"uncalibrated {key}": plain.get(key, of) for key, of in figures.items()}
    return figures


def tables(inputs: Inputs) -> dict[str, Table]:
    """Return the table of the complete MaLSTM, and of MaLSTM without single parts."""

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
    full = row(epochs=27, pretrain=inputs.development, synonyms=synonyms)
    rows = {
        "MaLSTM": full,
        "without calibration": full,
        "without pre-training": row(epochs=27, synonyms=synonyms),
        "without synonyms": row(pretrain=inputs.development),
        "without pre-training and synonyms (ours)": row(),
    }
    losses = {"calibration": 1.0, "pre-training": 2.0, "synonyms": 4.0}
    claims = [
        Claim("MaLSTM", f"without {part}", {"pearson": loss}) for part, loss in losses.items()
    ]
    title = "MaLSTM on SICK: Tables 2 and 4, and what each part is worth by r (section Results)"
    table = Table(
        f"{title}; the other measures of rows without a part are ours, and synonyms are of PPDB",
        rows,
        claims,
        prefixes={"without calibration": "uncalibrated "},
        measures={
            "development": "held out",
            "pearson": "r",
            "spearman": "ρ",
            "mse": "MSE",
            "entailment": "entailment",
        },
        note="At most 80 epochs (27 with synonyms), or 15 without gain. Batches of 16, 50 units.",
        paper={"MaLSTM": {"pearson": 88.22, "spearman": 83.45, "mse": 0.2286, "entailment": 84.2}},
    )
    return {"malstm": table}
