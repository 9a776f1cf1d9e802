"""Selection of the hardest negatives in a mega-batch (ParaNMT 4.2), by blocked matrix products."""

from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from paraloom.models.embeddings.encoders.embedding_matrix import on_device
from paraloom.models.embeddings.ragged_columns import ranges
from paraloom.models.embeddings.training.loss import unit

NegativesFrom = Literal["other", "same", "both"]
Excluded = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Pairs of an anchor (a sentence that needs a negative) and a row that must not be its negative.
Anchors are in ascending order."""

_CPU_BLOCK, _GPU_BLOCK = 500_000, 64_000_000  # cosines per block, to fit a cache or a GPU
_NEVER = -2.0  # less than every cosine


def hardest_negatives(
    left: Tensor,
    right: Tensor,
    left_keys: NDArray[np.uint64],
    right_keys: NDArray[np.uint64],
    pool: NegativesFrom,
    sources: NDArray[np.uint64] | None = None,
) -> tuple[Tensor, Tensor]:
    """Find the nearest negative of each sentence in n pairs.

    A negative differs from both sides of the sentence's pair.

    Args:
        left, right: vectors of the sentences on each side, [n, dim].
        left_keys, right_keys: hashes of the sentences on each side, [n].
        pool: the side of a sentence's negatives: the `same` side, the `other` side, or `both`.
        sources: hashes, [n]. Sentences of pairs with equal hashes are paraphrases of each other.

    Returns:
        The negatives of `left` and of `right`, each int64 [n] on the CPU. A negative is a row of
        the concatenation of `left` and `right`, or -1 if there is none.
    """
    n = len(left)
    both, _ = unit(torch.cat([left, right]))
    left, right = both[:n], both[n:]
    if pool == "both":
        keys = np.concatenate([left_keys, right_keys])
        partners = np.concatenate([right_keys, left_keys])
        twice = None if sources is None else np.tile(sources, 2)
        nearest = _nearest(both, both, _excluded(keys, partners, keys, twice))
        return nearest[:n], nearest[n:]
    if pool == "other":
        not_for_left = _excluded(left_keys, right_keys, right_keys, sources)
        not_for_right = _excluded(right_keys, left_keys, left_keys, sources)
        of_left, of_right = _nearest_of_each_other(left, right, not_for_left, not_for_right)
        return _shift(of_left, n), of_right
    of_left = _nearest(left, left, _excluded(left_keys, right_keys, left_keys, sources))
    of_right = _nearest(right, right, _excluded(right_keys, left_keys, right_keys, sources))
    return of_left, _shift(of_right, n)


def nearer_given(
    found: NDArray[np.int64], vectors: Tensor, there: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """For each sentence, choose the nearer of the selected negative and the user's negative.

    Args:
        found: the selected negatives, [2, n].
        vectors: the vectors of left sentences, right sentences and the user's negatives, [3n, dim].
        there: whether each pair has a negative from the user, [n].
    """
    n = len(there)
    directions, _ = unit(vectors)
    anchors, given = directions[: 2 * n].reshape(2, n, -1), directions[2 * n :]
    rows = on_device(found, vectors.device)
    cosines = torch.linalg.vecdot(anchors, directions[rows.clamp_min(0)])
    cosines[rows < 0] = _NEVER
    nearer = (torch.linalg.vecdot(anchors, given) > cosines).cpu().numpy() & there
    return np.where(nearer, np.arange(2 * n, 3 * n), found)


def _nearest(anchors: Tensor, pool: Tensor, excluded: Excluded) -> Tensor:
    """Return each anchor's nearest row of the pool, int64, or -1 if all rows are excluded."""
    step, nearest = _step(pool), []
    for start in range(0, len(anchors), step):
        cosines = anchors[start : start + step] @ pool.T
        cosines[_in_block(excluded, start, step, pool.device)] = _NEVER
        nearest.append(_argmax(cosines))
    return torch.cat(nearest).cpu()


def _nearest_of_each_other(
    left: Tensor, right: Tensor, not_for_left: Excluded, not_for_right: Excluded
) -> tuple[Tensor, Tensor]:
    """Find the nearest right row of each left row, and the nearest left row of each right row.

    Both searches use the same products. For a right row, the first pass stores only the maximum and
    the block with the maximum. The second pass computes this block again to find the index, which
    is faster than finding an index in every block.
    """
    step, device = _step(right), right.device
    order = np.argsort(not_for_right[1], kind="stable")
    not_for_right = not_for_right[1][order], not_for_right[0][order]  # as pairs (left, right)
    best = right.new_full((len(right),), -torch.inf)
    block = torch.zeros(len(right), dtype=torch.int64, device=device)
    of_left, of_right = list[Tensor](), torch.empty_like(block)
    starts = range(0, len(left), step)
    for start in starts:
        cosines = left[start : start + step] @ right.T
        excluded = _in_block(not_for_left, start, step, device)
        original, cosines[excluded] = cosines[excluded], _NEVER
        of_left.append(_argmax(cosines))
        cosines[excluded] = original
        cosines[_in_block(not_for_right, start, step, device)] = _NEVER
        maxima = cosines.amax(dim=0)
        block[maxima > best] = start
        torch.maximum(best, maxima, out=best)
    for start in starts:
        columns = (block == start).nonzero().squeeze(1)
        cosines = right[columns] @ left[start : start + step].T
        rows, anchors = _in_block(not_for_right, start, step, device)
        here = block[anchors] == start
        cosines[torch.searchsorted(columns, anchors[here]), rows[here]] = _NEVER
        of_right[columns] = _shift(_argmax(cosines), start)
    return torch.cat(of_left).cpu(), of_right.cpu()


def _step(pool: Tensor) -> int:
    block = _CPU_BLOCK if pool.device.type == "cpu" else _GPU_BLOCK
    return max(1, block // max(len(pool), 1))


def _in_block(
    excluded: Excluded, start: int, step: int, device: torch.device
) -> tuple[Tensor, Tensor]:
    here = slice(*np.searchsorted(excluded[0], [start, start + step]))
    rows, columns = excluded[0][here] - start, excluded[1][here]
    return on_device(rows, device), on_device(columns, device)


def _shift(rows: Tensor, by: int) -> Tensor:
    return torch.where(rows < 0, rows, rows + by)


def _argmax(cosines: Tensor) -> Tensor:
    if cosines.device.type == "cpu":  # numpy is two to four times as fast as torch here
        index = torch.from_numpy(cosines.numpy().argmax(axis=1))
    else:
        index = cosines.argmax(dim=1)
    best = cosines.gather(1, index.unsqueeze(1)).squeeze(1)
    return torch.where(best == _NEVER, -1, index)


def _excluded(
    own: NDArray[np.uint64],
    partner: NDArray[np.uint64],
    pool: NDArray[np.uint64],
    sources: NDArray[np.uint64] | None,
) -> Excluded:
    """Find rows that equal an anchor or its paraphrase, or have the same source as the anchor."""
    keys = np.stack([own, partner], axis=1).ravel()
    anchors, rows = _equal(keys, pool)
    anchors //= 2
    if sources is not None:
        more = _equal(sources, sources)
        anchors, rows = (np.concatenate(both) for both in zip((anchors, rows), more, strict=True))
        order = np.argsort(anchors, kind="stable")
        anchors, rows = anchors[order], rows[order]
    return anchors, rows


def _equal(keys: NDArray[np.uint64], pool: NDArray[np.uint64]) -> Excluded:
    """Return all pairs of an index i and a row r for which `keys[i] == pool[r]`."""
    order = np.argsort(pool, kind="stable")
    ordered = pool[order]
    first = np.searchsorted(ordered, keys, "left")
    lengths = np.searchsorted(ordered, keys, "right") - first
    return np.repeat(np.arange(len(keys)), lengths), order[ranges(first, lengths)]
