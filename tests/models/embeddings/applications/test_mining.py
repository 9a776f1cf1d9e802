"""Neighbours and pairs of near vectors, against plain computations over all pairs."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from paraloom.models.embeddings.applications import hard_negatives, mining
from paraloom.models.embeddings.applications.hard_negatives import Bounds, Neighbours, write_vectors
from paraloom.models.embeddings.applications.mining import Mined, mine, write_texts
from tests.run_helpers import Patch

pytest.importorskip("faiss", reason="faiss is not installed")


def mined(of: np.ndarray, folder: Path, k: int = 4, least: float = 0.0) -> Mined:
    return mine(of, Neighbours(of, 1, folder / "index"), folder, k=k, least=least)


def by_hand(of: np.ndarray, k: int) -> dict[tuple[int, int], float]:
    """The margin of every candidate: cos / mean of both sides' mean cosines with k neighbours."""
    cosines = of.astype(np.float32) @ of.astype(np.float32).T
    np.fill_diagonal(cosines, -2)
    near = np.argsort(-cosines, axis=1)[:, :k]
    means = [cosines[row, near[row]].mean() for row in range(len(of))]
    return {
        (min(i, j), max(i, j)): 2 * cosines[i, j] / (means[i] + means[j])
        for i in range(len(of))
        for j in near[i].tolist()
    }


@pytest.mark.parametrize("k", [1, 4, 12])
def test_margins_of_each_pair_once(tmp_path: Path, monkeypatch: Patch, k: int) -> None:
    monkeypatch.setattr(mining, "_BLOCK", 7)  # neighbours are in other blocks
    of = vectors(50, dim=8).astype(np.float16)
    found, expected = mined(of, tmp_path, k), by_hand(of, k)
    expected = {pair: margin for pair, margin in expected.items() if margin > 0}
    pairs = list(zip(found.first.tolist(), found.second.tolist(), strict=True))
    assert len(pairs) == len({*pairs}) and {*pairs} == {*expected}
    assert np.allclose(found.margin, [expected[pair] for pair in pairs], atol=1e-3)
    assert (np.diff(found.margin) <= 0).all()
    some = mined(of, tmp_path, k, least=1.05)
    assert len(some.first) == sum(margin >= 1.05 for margin in expected.values())


def test_files_grow_by_writing(tmp_path: Path, monkeypatch: Patch) -> None:
    """A memory-mapped file has its full size at once, and kills the process if the disk is full."""
    monkeypatch.setattr(mining, "_BLOCK", 2000)
    of, sizes = vectors(6000, dim=4).astype(np.float16), list[int]()

    def tell(_: int) -> None:
        sizes.append((tmp_path / "neighbours").stat().st_size)

    mine(of, Neighbours(of, 1), tmp_path, k=4, least=0.0, tell=tell)
    assert sizes[0] < sizes[-1] <= 6000 * 4 * 8


def test_few_and_empty_vectors(tmp_path: Path) -> None:
    """Sentences without a known word have no neighbours."""
    two = np.array([[1, 0], [0.8, 0.6]], np.float16)
    found = mined(two, tmp_path)
    assert (len(found.first), len(found.second)) == (1, 1)
    assert found.margin[0] == pytest.approx(1, abs=1e-3)
    assert not len(mined(np.zeros((9, 2), np.float16), tmp_path).first)
    one = mined(np.concatenate([two, np.zeros((9, 2), np.float16)]), tmp_path)
    assert list(zip(one.first, one.second, strict=True)) == [(0, 1)]


def test_an_index_on_disk_finds_what_one_in_memory_does(
    tmp_path: Path, monkeypatch: Patch, capfd: pytest.CaptureFixture[str]
) -> None:
    """And faiss does not say that the file grows."""
    monkeypatch.setattr(hard_negatives, "_EXACT", 1000)
    of = vectors(3000, dim=8).astype(np.float16)
    there, here = Neighbours(of, 1, tmp_path / "index"), Neighbours(of, 1)
    assert (tmp_path / "index").stat().st_size > 3000 * 8
    assert not capfd.readouterr().out
    queries = of[:40].astype(np.float32)
    (rows, cosines), (same_rows, same_cosines) = there.nearest(queries), here.nearest(queries)
    assert np.array_equal(rows, same_rows) and np.array_equal(cosines, same_cosines)


def test_texts_on_disk(tmp_path: Path) -> None:
    blocks = [["a", "přece"], [], ["", "two words"]]
    texts = write_texts(tmp_path / "texts", (pa.array(of, pa.string()) for of in blocks))
    assert texts.to_pylist() == [text for block in blocks for text in block]
    assert texts.take(pa.array([3, 1])).to_pylist() == ["two words", "přece"]
    assert write_texts(tmp_path / "none", []).to_pylist() == []


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
    """A margin is below a negative cosine, too."""
    bounds = Bounds(min_score=0.2, max_score=0.8, relative_margin=0.25)
    scores = np.array([[0.9, 0.8, 0.7, 0.2, 0.1], [0.5, 0.4, 0.37, 0.3, 0.2]], np.float32)
    held = bounds.hold(scores, np.array([2.0, 0.5], np.float32))
    # Of the first, 0.8 is the most (before 1.5); of the second, 0.375.
    assert held.tolist() == [[False, True, True, True, False], [False, False, True, True, True]]
    bounds = Bounds(min_score=-1, max_score=0.6, relative_margin=0.5)
    held = bounds.hold(
        np.array([[-0.3, -0.2, -0.1]] * 2, np.float32), np.array([-0.2, 0.0], np.float32)
    )
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
