import numpy as np
import pyarrow as pa

from models.embeddings.applications.evaluation import pair_features
from models.embeddings.datasets.similarity import LabelledPairs
from models.embeddings.tasks.malstm import entailment

LABELS = ("NEUTRAL", "ENTAILMENT", "CONTRADICTION")


def letters(text: pa.StringArray) -> np.ndarray:
    return np.array([[s.count(c) for c in "abcd"] for s in text.to_pylist()], np.float32)


def pairs(n: int, seed: int) -> LabelledPairs:
    """Judged by how many letters differ: none, one, two."""
    random = np.random.default_rng(seed)
    first = ["".join(random.choice(list("ab"), 5)) for _ in range(n)]
    differ = random.integers(0, 3, n)
    second = [text + "cd"[:d] for text, d in zip(first, differ, strict=True)]
    return LabelledPairs(
        group="SICK",
        name="train" if seed == 0 else "trial",
        first=pa.array(first),
        second=pa.array(second),
        scores=np.ones(n),
        entailment=pa.array([LABELS[d] for d in differ]),
    )


def test_what_differs_is_learnt() -> None:
    found = entailment(letters, pairs(90, 0), [pairs(40, 1)], seed=1)
    assert found["accuracy"]["SICK trial"] > 95 and found["cross_validation"] > 95


def test_features() -> None:
    data = pairs(3, 0)
    a, b = letters(data.first), letters(data.second)
    found = pair_features(letters, data.first, data.second)
    assert (found[:, :4] == np.abs(a - b)).all() and (found[:, 4:] == a * b).all()
