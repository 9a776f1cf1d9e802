from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from paraloom.models.embeddings.training import negatives
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
) -> list[int]:
    """Sentence by sentence, as the papers describe it."""
    n = len(left)
    vectors = torch.nn.functional.normalize(torch.cat([left, right]), dim=1)
    keys = np.concatenate([left_keys, right_keys])
    result = []
    for i in range(2 * n):
        side, partner = i // n, (i + n) % (2 * n)
        best, where = -2.0, -1
        for j in range(2 * n):
            allowed = {"other": j // n != side, "same": j // n == side, "both": True}[pool]
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
    unit = vectors / vectors.norm(dim=1, keepdim=True)
    of_row = np.tile(sources, 2)
    right = np.arange(2 * n) >= n
    sides = vectors[:n], vectors[n:], keys[:n], keys[n:]
    found = found_in_blocks(block, *sides, pool, sources)
    for row in range(2 * n):
        allowed = of_row != of_row[row]
        if pool != "both":
            allowed &= right != right[row] if pool == "other" else right == right[row]
        cosines = np.where(allowed, (unit @ unit[row]).numpy(), -np.inf)
        expected = -1 if not allowed.any() else int(cosines.argmax())
        assert found[row] == expected
