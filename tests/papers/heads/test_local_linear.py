import numpy as np
import pytest
from numpy.typing import NDArray

from paraloom.papers.heads import manhattan
from paraloom.papers.heads.manhattan import LocalLinear


def by_least_squares(x: NDArray[np.float64], y: NDArray[np.float64], h: float, at: float) -> float:
    """Solve the weighted least squares of one place as it is written."""
    root = np.sqrt(np.exp(-0.5 * ((x - at) / h) ** 2))
    design = np.stack([np.ones_like(x), x - at], axis=1) * root[:, None]
    return float(np.linalg.lstsq(design, y * root, rcond=None)[0][0])


@pytest.fixture
def points() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    random = np.random.default_rng(0)
    x = random.random(60)
    return x, np.sin(4 * x) + random.normal(scale=0.2, size=60)


@pytest.mark.parametrize(("bandwidth", "block"), [(0.03, 5), (3.0, 512)])
def test_each_estimate_is_a_weighted_least_squares_line(
    points: tuple[NDArray[np.float64], NDArray[np.float64]],
    bandwidth: float,
    block: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(manhattan, "_BLOCK", block)
    x, y = points
    at = np.linspace(0, 1, 23)
    expected = [by_least_squares(x, y, bandwidth, place) for place in at]
    assert LocalLinear(x, y, bandwidth)(at) == pytest.approx(np.array(expected), abs=1e-8)


def test_leaving_one_out_equals_fitting_without_it(
    points: tuple[NDArray[np.float64], NDArray[np.float64]],
) -> None:
    x, y = points
    errors = [
        (y[i] - by_least_squares(np.delete(x, i), np.delete(y, i), 0.1, x[i])) ** 2
        for i in range(len(x))
    ]
    assert LocalLinear(x, y, 0.1).leave_one_out() == pytest.approx(np.mean(errors), abs=1e-9)


def test_the_bandwidth_is_the_one_with_the_least_error(
    points: tuple[NDArray[np.float64], NDArray[np.float64]],
) -> None:
    x, y = points
    fitted = LocalLinear.fit(x, y)
    for h in (0.01, 0.03, 0.1, 0.3, 1.0):
        assert fitted.leave_one_out() <= LocalLinear(x, y, h).leave_one_out() + 1e-3
    assert np.mean((fitted(x) - np.sin(4 * x)) ** 2) < 0.02  # noise has a variance of 0.04


def test_far_away_and_in_one_place() -> None:
    fitted = LocalLinear(np.array([0.0, 0.1, 0.2]), np.array([1.0, 2.0, 3.0]), 0.01)
    assert np.isfinite(fitted(np.array([-5.0, 50.0]))).all()
    same = LocalLinear.fit(np.full(4, 0.5), np.array([1.0, 2.0, 3.0, 6.0]))
    assert same(np.array([0.5, 0.7])) == pytest.approx([3.0, 3.0])
    with pytest.raises(ValueError, match="2 points are too few"):
        LocalLinear.fit(np.zeros(2), np.zeros(2))
    assert fitted(np.zeros(0)).shape == (0,)
