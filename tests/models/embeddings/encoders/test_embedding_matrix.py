from typing import Any

import numpy as np
import torch

from paraloom.models.embeddings.encoders.embedding_matrix import EmbeddingMatrix


def beside_adam(
    start: torch.Tensor, rate: float, **how: Any
) -> tuple[EmbeddingMatrix, torch.nn.Parameter, torch.optim.Adam]:
    """A matrix, and the same one whose rows all take part in every step."""
    table, dense = EmbeddingMatrix(start.clone()), torch.nn.Parameter(start.clone())
    table.prepare(rate, **how)
    return table, dense, torch.optim.Adam([dense], lr=rate)


def test_deferred_steps_equal_a_dense_adam() -> None:
    torch.manual_seed(0)
    start = torch.randn(50, 7, dtype=torch.float64) * 0.1
    table, dense, adam = beside_adam(start, 1e-3)
    rng = np.random.default_rng(0)
    for step in range(700):
        # few rows a step, some of them never, so that gaps of all lengths appear
        rows = np.unique(rng.zipf(1.3, size=4) % 40)
        target = torch.from_numpy(rng.standard_normal((len(rows), 7))) * 10.0 ** -(step % 6)
        ours = table(rows)
        assert torch.allclose(ours, dense[rows], rtol=0, atol=1e-6), step
        torch.autograd.backward((ours * target).sum())
        table.step()
        adam.zero_grad()
        torch.autograd.backward((dense[rows] * target).sum())
        adam.step()
    assert torch.allclose(table.current(), dense, rtol=0, atol=1e-6)
    assert (table.current() - start).abs().max() > 0.05  # there was something to follow


def test_regularisation_towards_the_first_vectors_is_dense() -> None:
    torch.manual_seed(0)
    start = torch.randn(20, 3, dtype=torch.float64)
    table, dense, adam = beside_adam(start, 1e-2, towards=0.3)
    for step in range(30):
        rows = np.arange(step % 5, 20, 5)
        torch.autograd.backward((table(rows) ** 2).sum())
        table.step()
        adam.zero_grad()
        towards = 0.3 * ((dense - start) ** 2).sum()
        torch.autograd.backward((dense[rows] ** 2).sum() + towards)
        adam.step()
    assert torch.allclose(table.current(), dense, rtol=0, atol=1e-12)


def test_reading_changes_nothing() -> None:
    table = EmbeddingMatrix(torch.randn(10, 4))
    table.prepare(1e-3)
    torch.autograd.backward((table(np.array([1, 5])) * 3).sum())
    table.step()
    table.step()
    before = {name: value.clone() for name, value in vars(table).items() if torch.is_tensor(value)}
    first, second = table.current(), table.current()
    assert torch.equal(first, second)
    assert all(torch.equal(vars(table)[name], value) for name, value in before.items())
    assert not torch.equal(first, table.weight)  # row 1 moved in the second step, too
