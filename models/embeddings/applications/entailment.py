"""Entailment by a support vector machine on two sentences' vectors (Mueller & Thyagarajan 2016)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from models.embeddings.applications.evaluation import Embed
from models.embeddings.datasets.similarity import LabelledPairs

FOLDS = 5
_C = (1.0, 10.0, 100.0)
_GAMMA = (0.1, 0.3, 1.0)  # over the number of features


def entailment(
    embed: Embed, train: LabelledPairs, tests: Sequence[LabelledPairs], *, seed: int
) -> dict[str, Any]:
    """Train an RBF-kernel SVM on |a − b| and a ⊙ b; cross-validation in `FOLDS` chooses C and γ.

    Returns:
        `cross_validation` (accuracy of what was chosen), and `accuracy` by data set, in percent.
    """
    from sklearn.model_selection import GridSearchCV, StratifiedKFold
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    features = pair_features(embed, train)
    grid = {"svc__C": _C, "svc__gamma": [gamma / features.shape[1] for gamma in _GAMMA]}
    search = GridSearchCV(
        make_pipeline(StandardScaler(), SVC(kernel="rbf", cache_size=500)),
        grid,
        cv=StratifiedKFold(FOLDS, shuffle=True, random_state=seed),
    )
    search.fit(features, _judgments(train))
    return {
        "cross_validation": 100 * float(search.best_score_),
        "accuracy": {
            f"{data.group} {data.name}": 100
            * float(search.score(pair_features(embed, data), _judgments(data)))
            for data in tests
        },
    }


def pair_features(embed: Embed, data: LabelledPairs) -> np.ndarray:
    """|a − b| and a ⊙ b of every pair's vectors, side by side: float32 [n, 2 dim]."""
    vectors = embed(pa.concat_arrays([data.first, data.second]))
    first, second = vectors[: len(data.first)], vectors[len(data.first) :]
    return np.concatenate([np.abs(first - second), first * second], axis=1)


def _judgments(data: LabelledPairs) -> np.ndarray:
    assert data.entailment is not None
    return data.entailment.to_numpy(zero_copy_only=False)
