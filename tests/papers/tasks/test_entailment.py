from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from paraloom.models.embeddings.datasets.similarity import LabelledPairs
from paraloom.papers.analyses.transfer import pair_features
from paraloom.papers.tasks.malstm import entailment
from tests.labelled import labelled

LABELS = ("NEUTRAL", "ENTAILMENT", "CONTRADICTION")


def letters(text: pa.StringArray) -> np.ndarray:
    return np.array([[s.count(c) for c in "abcd"] for s in text.to_pylist()], np.float32)


def pairs(n: int, seed: int) -> LabelledPairs:
    """Judged by how many letters differ: none, one, two."""
    random = np.random.default_rng(seed)
    first = ["".join(random.choice(list("ab"), 5)) for _ in range(n)]
    differ = random.integers(0, 3, n)
    second = [text + "cd"[:d] for text, d in zip(first, differ, strict=True)]
    name, labels = "trial" if seed else "train", pa.array([LABELS[d] for d in differ])
    return labelled(first, second, np.ones(n), "SICK", name, entailment=labels)


def test_what_differs_is_learnt() -> None:
    found = entailment(letters, pairs(90, 0), [pairs(40, 1)], seed=1)
    assert found["accuracy"]["SICK trial"] > 95 and found["cross_validation"] > 95


def test_one_classifier_versus_the_rest_for_each_class(monkeypatch: pytest.MonkeyPatch) -> None:
    from sklearn.svm import SVC

    fitted = []
    fit = SVC.fit

    def record(self: SVC, features: np.ndarray, labels: np.ndarray, *others: Any) -> SVC:
        fitted.append(sorted(set(labels.tolist())))
        return fit(self, features, labels, *others)

    monkeypatch.setattr(SVC, "fit", record)
    entailment(letters, pairs(60, 0), [pairs(5, 1)], seed=1)
    assert {tuple(classes) for classes in fitted} == {(0, 1)}  # this class, or another one
    assert len(fitted) == 3 * (5 * 9 + 1)  # 5 folds, 9 hyperparameters, and the final ones


def test_features() -> None:
    data = pairs(3, 0)
    a, b = letters(data.first), letters(data.second)
    found = pair_features(letters, data.first, data.second)
    assert (found[:, :4] == np.abs(a - b)).all() and (found[:, 4:] == a * b).all()
