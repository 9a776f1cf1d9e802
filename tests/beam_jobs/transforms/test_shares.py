"""The largest numbers of rows in which no kind has more than its share."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paraloom.beam_jobs.transforms.shares import quotas

FEW = st.lists(st.integers(0, 9), min_size=1, max_size=3)


def largest(rows: list[int], share: float, size: int) -> int:
    """By trying everything: a total T is possible if some counts add up to it."""
    found = 0
    for counts in product(*(range(n + 1) for n in rows)):
        total = sum(counts)
        if total <= size and all(n <= share * total + 1e-9 for n in counts):
            found = max(found, total)
    return found


@given(FEW, st.sampled_from([0.4, 0.5, 0.6, 0.75, 0.9]), st.integers(1, 30))
def test_the_total_is_the_largest_that_is_possible(
    rows: list[int], share: float, size: int
) -> None:
    found = quotas({str(i): n for i, n in enumerate(rows)}, share, size)
    total = sum(found.values())
    assert total == largest(rows, share, size)
    assert all(found[str(i)] <= n for i, n in enumerate(rows))
    assert all(n <= share * total + 1e-9 for n in found.values())


def test_without_a_share_the_size_is_drawn_from_all() -> None:
    assert quotas({"sample": 10}, None, 4) == {"sample": 4}
    assert quotas({"sample": 3}, None, 4) == {"sample": 3}


def test_what_is_left_out_is_in_proportion() -> None:
    assert quotas({"a": 600, "b": 400, "c": 200}, 0.9, 100) == {"a": 50, "b": 33, "c": 17}


@pytest.mark.parametrize("share", [0.1, 0.7])
def test_decimal_shares_are_exact(share: float) -> None:
    """0.7 × 10 is 7, although in floating point 0.7 × 10 may be below."""
    rows = dict.fromkeys("abcdefghijkl", 1000)
    assert max(quotas(rows, share, 10).values()) <= share * 10 + 1e-9
    assert sum(quotas(rows, share, 10).values()) == 10
