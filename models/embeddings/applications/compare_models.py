"""Where two encoders err differently: labelled pairs on which one is far nearer to people than the
other (W&G 2017, 5.1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from models.embeddings.applications.evaluation import Model, scores
from models.embeddings.datasets.similarity import LabelledPairs


class Disagreement(NamedTuple):
    """A pair, its label, and what both models say, on the scale of the label."""

    data: str
    first: str
    second: str
    label: float
    scores: tuple[float, float]

    @property
    def errors(self) -> tuple[float, float]:
        """How far each model is above the label."""
        return self.scores[0] - self.label, self.scores[1] - self.label


def disagreements(
    models: tuple[Model, Model], data: Sequence[LabelledPairs], *, count: int = 10
) -> tuple[list[Disagreement], list[Disagreement]]:
    """The `count` pairs on which the second model is nearer to the label than the first by the
    most, and those on which the first is; the largest difference first.

    A model's scores (cosines, say) are stretched to the scale of each data set's labels, its
    lowest to the lower end, its highest to the upper; predicted labels stay as they are.
    """
    found: list[Disagreement] = []
    gains: list[float] = []
    for pairs in data:
        both = [
            _on_scale(model, scores(model.embed, pairs, model.compare), pairs) for model in models
        ]
        away = [np.abs(one - pairs.scores) for one in both]
        gain = away[0] - away[1]  # of taking the second model
        order = np.argsort(gain, kind="stable")
        for row in {*order[:count].tolist(), *order[-count:].tolist()}:
            texts = pairs.first[row].as_py(), pairs.second[row].as_py()
            said = float(both[0][row]), float(both[1][row])
            name = f"{pairs.group} {pairs.name}"
            found.append(Disagreement(name, *texts, float(pairs.scores[row]), said))
            gains.append(float(gain[row]))
    order = np.argsort(gains, kind="stable")
    for_second = [found[i] for i in order[::-1][:count] if gains[i] > 0]
    return for_second, [found[i] for i in order[:count] if gains[i] < 0]


def _on_scale(model: Model, scored: np.ndarray, data: LabelledPairs) -> np.ndarray:
    if model.scale == data.scale:
        return scored
    lowest, highest = data.scale
    spread = np.ptp(scored)
    share = (scored - scored.min()) / spread if spread else np.full(len(scored), 0.5)
    return np.asarray(lowest + share * (highest - lowest))
