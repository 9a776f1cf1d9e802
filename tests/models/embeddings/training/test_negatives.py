"""The hardest negatives against a loop over sentences, and the loss against its equation."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch.nn.functional import cosine_similarity

from paraloom.models.embeddings.training import negatives
from paraloom.models.embeddings.training.loss import margin_loss
from paraloom.models.embeddings.training.negatives import NegativesFrom, hardest_negatives

BLOCKS = st.sampled_from([1, 20, 10_000])
POOLS = st.sampled_from(["other", "same", "both"])
SEEDS = st.integers(0, 1000)


def found_in_blocks(block: int, *of: Any) -> list[int]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(negatives, "_CPU_BLOCK", block)
        return [int(row) for row in torch.cat(hardest_negatives(*of))]


def plain(
    left: torch.Tensor,
    right: torch.Tensor,
    left_keys: NDArray[np.uint64],
    right_keys: NDArray[np.uint64],
    pool: NegativesFrom,
    sources: NDArray[np.uint64] | None = None,
) -> list[int]:
    """Sentence by sentence, as the papers describe it."""
    n = len(left)
    of = np.arange(n) if sources is None else sources
    vectors = torch.nn.functional.normalize(torch.cat([left, right]), dim=1)
    keys = np.concatenate([left_keys, right_keys])
    result = []
    for i in range(2 * n):
        side, partner = i // n, (i + n) % (2 * n)
        best, where = -2.0, -1
        for j in range(2 * n):
            allowed = {"other": j // n != side, "same": j // n == side, "both": True}[pool]
            allowed = allowed and of[j % n] != of[i % n]
            if allowed and keys[j] not in (keys[i], keys[partner]):
                cosine = float(vectors[i] @ vectors[j])
                if cosine > best:
                    best, where = cosine, j
        result.append(where)
    return result


@settings(max_examples=80)
@given(n=st.integers(1, 12), distinct=st.integers(1, 20), pool=POOLS, block=BLOCKS, seed=SEEDS)
def test_equals_a_loop_over_sentences(
    n: int, distinct: int, pool: NegativesFrom, block: int, seed: int
) -> None:
    random = np.random.default_rng(seed)
    keys = random.integers(0, distinct, 2 * n).astype(np.uint64)
    each = torch.from_numpy(random.standard_normal((distinct, 5))).float()
    vectors = each[torch.from_numpy(keys.astype(np.int64))]  # equal keys: equal sentences
    sides = vectors[:n], vectors[n:], keys[:n], keys[n:]
    expected = plain(*sides, pool)
    found = found_in_blocks(block, *sides, pool)
    # of equal sentences any is right
    assert [keys[j] if j >= 0 else -1 for j in found] == [
        keys[j] if j >= 0 else -1 for j in expected
    ]


@settings(max_examples=60)
@given(n=st.integers(1, 12), pool=POOLS, block=BLOCKS, seed=SEEDS)
def test_translations_of_the_same_source_are_no_negatives(
    n: int, pool: NegativesFrom, block: int, seed: int
) -> None:
    random = np.random.default_rng(seed)
    sources = random.integers(0, 4, n).astype(np.uint64)
    keys = np.arange(2 * n, dtype=np.uint64)
    vectors = torch.from_numpy(random.standard_normal((2 * n, 5))).float()
    sides = vectors[:n], vectors[n:], keys[:n], keys[n:]
    assert found_in_blocks(block, *sides, pool, sources) == plain(*sides, pool, sources)


def plain_loss(quads: torch.Tensor, margin: float) -> torch.Tensor:
    left, right, left_negative, right_negative = quads.chunk(4)
    positive = cosine_similarity(left, right)
    hinges = torch.relu(margin - positive + cosine_similarity(left, left_negative))
    hinges = hinges + torch.relu(margin - positive + cosine_similarity(right, right_negative))
    return hinges.mean()


def test_the_loss_equals_the_equation_and_its_gradient() -> None:
    torch.manual_seed(0)
    quads = torch.randn(80, 6, dtype=torch.float64)
    quads[20:40] = quads[:20] + 0.3 * torch.randn(20, 6)  # so that some hinges are closed
    quads.requires_grad_()
    loss, expected = margin_loss(quads, 0.4), plain_loss(quads, 0.4)
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
    apart = torch.tensor([[1.0, 0], [1, 0], [-1, 0], [0, 1]])
    assert margin_loss(apart, 0.4).item() == 0
