import numpy as np
import pytest

from paraloom.models.embeddings.applications.components import distant_rows, principal_components


def test_components_are_those_of_the_covariance() -> None:
    random = np.random.default_rng(0)
    vectors = (random.normal(size=(200, 5)) * [5, 3, 1, 0.5, 0.1]) @ random.normal(size=(5, 5))
    found = principal_components(vectors)
    values, directions = np.linalg.eigh(np.cov(vectors.T))
    expected = (vectors - vectors.mean(0)) @ directions[:, ::-1][:, :2]
    assert np.abs(found.points) == pytest.approx(np.abs(expected), abs=1e-9)
    assert found.shares == pytest.approx(values[::-1][:2] / values.sum())
    assert principal_components(vectors[::-1]).points == pytest.approx(found.points[::-1])
    with pytest.raises(ValueError, match="1 vectors of length 5 are too few"):
        principal_components(vectors[:1])


def test_rows_far_from_each_other() -> None:
    points = np.array([[0.0, 0], [10, 0], [10, 0.1], [0, 8], [-9, -9]])
    assert distant_rows(points, 4).tolist() == [4, 2, 3, 0]
    assert len(distant_rows(np.zeros((5, 2)), 3)) == 0
    assert len(distant_rows(points[:2], 9)) == 2
