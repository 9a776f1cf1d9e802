import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from paraloom.papers import heads
from paraloom.papers.heads import Distribution, LocalLinear, Manhattan, open_head
from tests.run_helpers import Patch


def random_vectors(n: int, dim: int, seed: int = 0) -> list[np.ndarray]:
    random = np.random.default_rng(seed)
    return [random.normal(size=(n, dim)) for _ in range(2)]


def tai(head: Distribution, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """p̂ of one pair, as Tai et al. write it (Eq. 15)."""
    state = {name: tensor.numpy() for name, tensor in head.double().state_dict().items()}
    hidden = state["products.weight"] @ (a * b) + state["distances.weight"] @ np.abs(a - b)
    hidden += state["products.bias"]
    hidden = 1 / (1 + np.exp(-hidden))
    scores = state["classes.weight"] @ hidden + state["classes.bias"]
    chances: np.ndarray = np.exp(scores) / np.exp(scores).sum()
    return chances


def sparse_target(y: float, classes: np.ndarray) -> np.ndarray:
    """p of one label (Tai et al., Eq. 16)."""
    p = np.zeros(len(classes))
    for i, r in enumerate(classes):
        if r == np.floor(y) + 1:
            p[i] = y - np.floor(y)
        elif r == np.floor(y):
            p[i] = np.floor(y) - y + 1
    return p


def test_the_kl_objective_is_the_papers() -> None:
    torch.manual_seed(1)
    head = Distribution(dim=7, units=4, lowest=1, highest=5).double()
    a, b = random_vectors(9, 7)
    labels = np.array([1, 5, 3, 3.5, 1.25, 4.9, 2.0, 4.999, 1.001])
    classes = np.arange(1, 6)
    kl = []
    for x, y, label in zip(a, b, labels, strict=True):
        p, found = sparse_target(label, classes), tai(head, x, y)
        assert p.sum() == pytest.approx(1) and p @ classes == pytest.approx(label)
        kl.append(sum(p[i] * np.log(p[i] / found[i]) for i in range(5) if p[i] > 0))
    first, second = torch.from_numpy(a), torch.from_numpy(b)
    loss = head.loss(first, second, torch.from_numpy(labels))
    assert loss.item() == pytest.approx(np.mean(kl), abs=1e-12)
    expected = [tai(head, x, y) @ classes for x, y in zip(a, b, strict=True)]
    assert head(first, second).detach().numpy() == pytest.approx(np.array(expected), abs=1e-12)
    assert head.predict(a, b) == pytest.approx(np.array(expected), abs=1e-12)


def test_the_distance_of_malstm() -> None:
    head = Manhattan(lowest=1, highest=5).double()
    a, b = (side / 5 for side in random_vectors(6, 8))
    labels = np.array([1.0, 5.0, 2.5, 3.0, 4.0, 1.5])
    g = np.array([np.exp(-sum(abs(p - q))) for p, q in zip(a, b, strict=True)])
    first, second = torch.from_numpy(a), torch.from_numpy(b)
    expected = np.mean((g - (labels - 1) / 4) ** 2)
    loss = head.loss(first, second, torch.from_numpy(labels)).item()
    assert loss == pytest.approx(expected, abs=1e-12)
    assert head.predict(a, b) == pytest.approx(1 + 4 * g, abs=1e-12)
    assert head.predict(a, a) == pytest.approx(np.full(6, 5.0))


def test_calibration_lessens_the_error_and_survives_the_way_to_disk() -> None:
    random = np.random.default_rng(3)
    a, b = (side / 8 for side in random_vectors(200, 8))
    head = Manhattan(lowest=0, highest=5)
    g = head.predict(a, b) / 5
    labels = np.clip(5 * g**3 + random.normal(scale=0.1, size=200), 0, 5)
    before = np.mean((head.predict(a, b) - labels) ** 2)
    assert head.calibrate(a, b, labels) > 0
    after = head.predict(a, b)
    assert np.mean((after - labels) ** 2) < 0.2 * before
    assert after.min() >= 0 and after.max() <= 5
    again = open_head(head.settings())
    again.load_state_dict(head.state_dict())
    assert (again.predict(a, b) == after).all()
    assert again.predict(a[:0], b[:0]).shape == (0,)


Points = tuple[NDArray[np.float64], NDArray[np.float64]]


def by_least_squares(x: NDArray[np.float64], y: NDArray[np.float64], h: float, at: float) -> float:
    """Solve the weighted least squares of one place as it is written."""
    root = np.sqrt(np.exp(-0.5 * ((x - at) / h) ** 2))
    design = np.stack([np.ones_like(x), x - at], axis=1) * root[:, None]
    return float(np.linalg.lstsq(design, y * root, rcond=None)[0][0])


@pytest.fixture
def points() -> Points:
    random = np.random.default_rng(0)
    x = random.random(60)
    return x, np.sin(4 * x) + random.normal(scale=0.2, size=60)


@pytest.mark.parametrize(("bandwidth", "block"), [(0.03, 5), (3.0, 512)])
def test_estimates_are_least_squares(
    points: Points, bandwidth: float, block: int, monkeypatch: Patch
) -> None:
    monkeypatch.setattr(heads, "_BLOCK", block)
    x, y = points
    at = np.linspace(0, 1, 23)
    expected = [by_least_squares(x, y, bandwidth, place) for place in at]
    assert LocalLinear(x, y, bandwidth)(at) == pytest.approx(np.array(expected), abs=1e-8)


def test_leaving_one_out_equals_fitting_without_it(points: Points) -> None:
    x, y = points
    others = [(np.delete(x, i), np.delete(y, i)) for i in range(len(x))]
    found = (by_least_squares(*of, 0.1, value) for of, value in zip(others, x, strict=True))
    errors = np.square(y - np.array([*found]))
    assert LocalLinear(x, y, 0.1).leave_one_out() == pytest.approx(np.mean(errors), abs=1e-9)


def test_the_bandwidth_is_the_one_with_the_least_error(points: Points) -> None:
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
