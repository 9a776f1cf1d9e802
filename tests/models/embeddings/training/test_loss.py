import torch
from torch.nn.functional import cosine_similarity

from paraloom.models.embeddings.training.loss import margin_loss


def plain(quads: torch.Tensor, margin: float) -> torch.Tensor:
    left, right, left_negative, right_negative = quads.chunk(4)
    positive = cosine_similarity(left, right)
    hinges = torch.relu(margin - positive + cosine_similarity(left, left_negative))
    hinges = hinges + torch.relu(margin - positive + cosine_similarity(right, right_negative))
    return hinges.mean()


def test_equals_the_equation_and_its_gradient() -> None:
    torch.manual_seed(0)
    quads = torch.randn(80, 6, dtype=torch.float64)
    quads[20:40] = quads[:20] + 0.3 * torch.randn(20, 6)  # so that some hinges are closed
    quads.requires_grad_()
    loss, expected = margin_loss(quads, 0.4), plain(quads, 0.4)
    gradient, expected_gradient = (
        torch.autograd.grad(3 * value, quads)[0] for value in (loss, expected)
    )
    assert torch.allclose(loss, expected, rtol=0, atol=1e-12)
    assert torch.allclose(gradient, expected_gradient, rtol=0, atol=1e-12)
    assert 0 < (gradient[40:60] == 0).all(dim=1).sum() < 20


def test_a_vector_without_a_direction_has_cosine_0_and_gets_no_gradient() -> None:
    quads = torch.tensor([[0.0, 0], [1, 0], [0, 1], [0, 1]], requires_grad=True)
    loss = margin_loss(quads, 0.4)
    assert loss.item() == torch.tensor(0.8)
    torch.autograd.backward(loss)
    assert quads.grad is not None
    assert quads.grad[0].tolist() == [0, 0] and quads.grad.isfinite().all()


def test_no_pairs_apart_give_no_loss() -> None:
    quads = torch.tensor([[1.0, 0], [1, 0], [-1, 0], [0, 1]])
    assert margin_loss(quads, 0.4).item() == 0
