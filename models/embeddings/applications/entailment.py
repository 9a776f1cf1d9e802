"""Entailment by a support vector machine on the vectors of two sentences (Mueller & Thyagarajan
2016)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.embeddings.applications.evaluation import Embed, pair_features
from models.embeddings.datasets.similarity import LabelledPairs

FOLDS = 5
_C = (1.0, 10.0, 100.0)
_GAMMA = (0.1, 0.3, 1.0)  # over the number of features


def entailment(
    embed: Embed, train: LabelledPairs, tests: Sequence[LabelledPairs], *, seed: int
) -> dict[str, Any]:
    """Train an RBF-kernel SVM on |a − b| and a ⊙ b; cross-validation in `FOLDS` selects C and γ.

    Returns:
        `cross_validation` (accuracy of the selected C and γ), and `accuracy` by data set, in
        percent.
    """
    from sklearn.model_selection import GridSearchCV, StratifiedKFold
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    features = pair_features(embed, train.first, train.second)
    grid = {"svc__C": _C, "svc__gamma": [gamma / features.shape[1] for gamma in _GAMMA]}
    search = GridSearchCV(
        make_pipeline(StandardScaler(), SVC(kernel="rbf", cache_size=500)),
        grid,
        cv=StratifiedKFold(FOLDS, shuffle=True, random_state=seed),
    )
    search.fit(features, _judgments(train))
    accuracy = {}
    for data in tests:
        features = pair_features(embed, data.first, data.second)
        accuracy[f"{data.group} {data.name}"] = 100 * float(
            search.score(features, _judgments(data))
        )
    return {"cross_validation": 100 * float(search.best_score_), "accuracy": accuracy}


def _judgments(data: LabelledPairs) -> NDArray[Any]:
    assert data.entailment is not None
    return np.asarray(data.entailment.to_numpy(zero_copy_only=False))
