"""Batches of fairseq's training are those that its compiled function cuts."""

import pytest

from paraloom.models.nmt.fairseq_run import _batch_by_size


@pytest.mark.parametrize(
    ("lengths", "max_tokens", "multiple", "sizes"),
    # What fairseq 0.12.3.1's compiled `batch_by_size_vec` gave.
    [
        ([1, 2, 3, 3, 3, *[4] * 4, 5, 6, 7, *[8] * 4, *[9] * 4], 24, 8, [6, 4, 3, 3, 2]),
        ([*[1] * 4, 2, 2, 3, 3, 3, 5, 5, 6, *[7] * 4, 8, 8, 9], 30, 4, [8, 4, 4]),
        ([8, 4, 5, 7, 5, 7, 9, 7, 6, 9, 7, 4], 12, 1, [1, 2, *[1] * 9]),
        (
            [*[1] * 7, *[2] * 8, 3, 3, *[4] * 3, *[5] * 6, *[6] * 4, *[7] * 4, 8, 8, *[9] * 4],
            64,
            8,
            [16, 8, 8, 7],
        ),
    ],
)
def test_batches_are_those_of_fairseq(
    lengths: list[int], max_tokens: int, multiple: int, sizes: list[int]
) -> None:
    batches = _batch_by_size(
        range(len(lengths)),
        lengths.__getitem__,
        max_tokens=max_tokens,
        required_batch_size_multiple=multiple,
    )
    assert [len(batch) for batch in batches] == sizes
