"""GRUs against their equations, written out word by word in float64."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from paraloom.models.embeddings.encoders import embedding_matrices
from paraloom.papers.encoders.gru import GRU
from tests.models.embeddings.encoders.test_encoders import (
    SENTENCES,
    D,
    encode,
    encoder_of,
    flat,
    gradient_of,
)

HIDDEN = 4


def torch_s(cell: GRU, x: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
    """Cho et al. 2014, as torch writes it."""
    w, u, b, c = cell.weights.all_weights[0]
    x_r, x_z, x_g = (w @ x + b).chunk(3)
    h_r, h_z, h_g = (u @ h + c).chunk(3)
    r, z = torch.sigmoid(x_r + h_r), torch.sigmoid(x_z + h_z)
    return (1 - z) * torch.tanh(x_g + r * h_g) + z * h


def normalised(cell: Any, x: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
    """Ba et al. 2016: every product is normalised by itself, those of both gates as one."""

    def norm(value: torch.Tensor, how: Any) -> torch.Tensor:
        mean, variance = value.mean(), ((value - value.mean()) ** 2).mean()
        normal = (value - mean) / torch.sqrt(variance + how.eps)
        result: torch.Tensor = normal * how.weight + how.bias
        return result

    w, u, both = cell.from_words.weight, cell.from_states.weight, 2 * len(h)
    gates = norm(w[:both] @ x, cell.word_norms[0]) + norm(u[:both] @ h, cell.state_norms[0])
    z, r = torch.sigmoid(gates).chunk(2)
    g = norm(w[both:] @ x, cell.word_norms[1])
    g = torch.tanh(g + r * norm(u[both:] @ h, cell.state_norms[1]))
    following: torch.Tensor = (1 - z) * g + z * h
    return following


def cho(cell: Any, x: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
    """Zhou, Huang & Ji 2017, 2.2: states are reset before the product with U."""
    W_z, W_r, W = cell.from_words.weight.chunk(3)
    U_z, U_r = cell.gates_from_states.weight.chunk(2)
    z, r = torch.sigmoid(W_z @ x + U_z @ h), torch.sigmoid(W_r @ x + U_r @ h)
    candidate = torch.tanh(W @ x + cell.candidate_from_states.weight @ (r * h))
    following: torch.Tensor = (1 - z) * h + z * candidate
    return following


@pytest.mark.parametrize(
    ("cell", "equation", "with_initial"),
    [
        ("torch", torch_s, False),
        ("normalised", normalised, False),
        ("normalised", normalised, True),
        ("cho", cho, False),
        ("cho", cho, True),
    ],
)
def test_states_and_gradients_follow_the_equations(
    cell: str, equation: Callable[..., torch.Tensor], with_initial: bool
) -> None:
    encoder = encoder_of("gru", cell=cell, hidden=HIDDEN)
    (network,) = encoder.directions
    for parameter in network.parameters():  # other than first gains and biases
        parameter.data += 0.3 * torch.randn_like(parameter)
    last, weight = encode(encoder), encoder.input.table.weight
    table = embedding_matrices(encoder)["input.table"]
    table.prepare(1e-3)
    n = len(SENTENCES)
    initial = torch.randn(n, HIDDEN, dtype=torch.float64) if with_initial else None
    if initial is not None:
        initial.requires_grad_()
    given = () if initial is None else (initial,)
    states, tree = network(encoder.input(flat(SENTENCES)), *given)
    found = states[torch.from_numpy(tree.paths).long()]  # one per word
    target = torch.randn_like(found)
    torch.autograd.backward((found * target).sum())
    parameters = list(network.parameters()) + ([initial] if with_initial else [])
    gradients = [gradient_of(parameter) for parameter in parameters]
    by_word = gradient_of(table.read)
    for parameter in parameters:
        parameter.grad = None

    table.weight.requires_grad_()
    rows = []
    for i, sentence in enumerate(SENTENCES):
        h = torch.zeros(HIDDEN, dtype=torch.float64) if initial is None else initial[i]
        for word in sentence:
            if cell != "torch":
                step = network.step(weight[[word]], h[None])[0]
            h = equation(network, table.weight[word], h)
            rows.append(h)
            assert cell == "torch" or torch.allclose(step, h, rtol=0, atol=1e-12)
        assert with_initial or torch.allclose(last[i], h, rtol=0, atol=1e-12)
    expected = torch.stack(rows)
    assert torch.allclose(found, expected, rtol=0, atol=1e-12)
    torch.autograd.backward((expected * target).sum())
    assert torch.allclose(by_word, gradient_of(table.weight)[1:8], rtol=0, atol=1e-12)
    for gradient, parameter in zip(gradients, parameters, strict=True):
        assert torch.allclose(gradient, gradient_of(parameter), rtol=0, atol=1e-12)


def test_matrices_of_states_start_orthonormal() -> None:
    """As skip-thought's."""
    network = encoder_of("gru", cell="normalised").directions[0]
    for part in network.from_states.weight.chunk(3):
        assert torch.allclose(part @ part.T, torch.eye(D, dtype=torch.float64), atol=1e-6)
