"""Neighbours among made-up vectors, against all cosines."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from paraloom.models.embeddings.applications import hard_negatives
from paraloom.models.embeddings.applications.hard_negatives import Bounds, Neighbours, write_vectors
from tests.run_helpers import Patch

pytest.importorskip("faiss", reason="faiss is not installed")


def vectors(n: int, dim: int = 16) -> np.ndarray:
    found = np.random.default_rng(1).normal(size=(n, dim)).astype(np.float32)
    return np.asarray(found / np.linalg.norm(found, axis=1, keepdims=True))


def recall(n: int) -> float:
    """The share of the nearest 20 that are found."""
    stored = vectors(n).astype(np.float16)
    queries = vectors(n)[:30]
    rows, scores = Neighbours(stored, seed=1).nearest(queries)
    exact = queries @ stored.astype(np.float32).T
    assert np.allclose(scores, np.take_along_axis(exact, rows, 1), atol=1e-5)
    assert (np.diff(scores, axis=1) <= 0).all()
    best = np.argsort(-exact, axis=1)[:, :20]
    return float(np.mean([len({*a} & {*b}) / 20 for a, b in zip(rows, best, strict=True)]))


def test_few_are_searched_exactly_and_many_nearly(monkeypatch: Patch) -> None:
    assert recall(3000) == 1
    monkeypatch.setattr(hard_negatives, "_EXACT", 1000)
    assert 0.5 < recall(3000) <= 1


def test_fewer_than_are_asked_for() -> None:
    rows, _ = Neighbours(vectors(5).astype(np.float16), seed=1).nearest(vectors(5))
    assert sorted(rows[0]) == [0, 1, 2, 3, 4] and rows[3][0] == 3


def test_bounds() -> None:
    bounds = Bounds(min_score=0.2, max_score=0.8, relative_margin=0.25)
    scores = np.array([[0.9, 0.8, 0.7, 0.2, 0.1], [0.5, 0.4, 0.37, 0.3, 0.2]], np.float32)
    held = bounds.hold(scores, np.array([2.0, 0.5], np.float32))
    # Of the first, 0.8 is the most (before 1.5); of the second, 0.375.
    assert held.tolist() == [[False, True, True, True, False], [False, False, True, True, True]]


def test_a_margin_is_below_a_negative_cosine_too() -> None:
    bounds = Bounds(min_score=-1, max_score=0.6, relative_margin=0.5)
    scores = np.array([[-0.3, -0.2, -0.1]] * 2, np.float32)
    held = bounds.hold(scores, np.array([-0.2, 0.0], np.float32))
    # The most is -0.3 for the first, and 0 for the second.
    assert held.tolist() == [[True, False, False], [True, True, True]]


def test_vectors_that_are_written_are_not_made_again(tmp_path: Path) -> None:
    asked: list[str] = []

    def embed(text: pa.Array) -> np.ndarray:
        asked.extend(text.to_pylist())
        return np.array([[len(t), 1.0] for t in text.to_pylist()], np.float32).reshape(-1, 2)

    blocks = [pa.array(["a", "bb"]), pa.array(["ccc", "dddd"]), pa.array(["e"])]
    whole = write_vectors(tmp_path / "whole", embed, blocks)
    assert whole.shape == (5, 2) and np.allclose(np.linalg.norm(whole, axis=1), 1, atol=1e-3)
    data = (tmp_path / "whole").read_bytes()
    (tmp_path / "cut").write_bytes(data[: 3 * 4 + 1])  # killed in the second block
    asked.clear()
    assert (write_vectors(tmp_path / "cut", embed, blocks) == whole).all()
    assert asked == ["", "ccc", "dddd", "e"]
