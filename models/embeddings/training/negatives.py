"""The hardest negatives of a mega-batch, as blocked matrix products (ParaNMT 4.2)."""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch
from torch import Tensor

from models.embeddings.training.loss import unit

Pool = Literal["other", "same", "both"]
Excluded = tuple[np.ndarray, np.ndarray]  # anchors, ascending, and what each may not have

_CPU_BLOCK, _GPU_BLOCK = 500_000, 64_000_000  # cosines held at once: a cache, some memory
_NEVER = -2.0  # below every cosine


def hardest_negatives(
    left: Tensor, right: Tensor, left_keys: np.ndarray, right_keys: np.ndarray, pool: Pool
) -> tuple[Tensor, Tensor]:
    """For every sentence of n pairs the nearest sentence that is neither its like nor its pair's.

    Args:
        left: embeddings of the pairs' first sides, [n, dim].
        right: of their second sides, [n, dim].
        left_keys: equal numbers for equal sentences, [n]; comparable with `right_keys`.
        right_keys: the same for the second sides.
        pool: where negatives come from: the `other` side of the pairs, the `same`, or `both`.

    Returns:
        For left and right, the row in the stack of left and right (0 … 2n-1) of each sentence's
        negative, int64 [n] on the CPU; -1 where every sentence of the pool is excluded.
    """
    n = len(left)
    both, _ = unit(torch.cat([left, right]))
    left, right = both[:n], both[n:]
    if pool == "other":
        not_for_left = _alike(left_keys, right_keys, right_keys)
        not_for_right = _alike(right_keys, left_keys, left_keys)
        of_left, of_right = _nearest_of_each_other(left, right, not_for_left, not_for_right)
        return _shift(of_left, n), of_right
    if pool == "same":
        of_left = _nearest(left, left, _alike(left_keys, right_keys, left_keys))
        of_right = _nearest(right, right, _alike(right_keys, left_keys, right_keys))
        return of_left, _shift(of_right, n)
    keys = np.concatenate([left_keys, right_keys])
    partners = np.concatenate([right_keys, left_keys])
    nearest = _nearest(both, both, _alike(keys, partners, keys))
    return nearest[:n], nearest[n:]


def _nearest(anchors: Tensor, pool: Tensor, excluded: Excluded) -> Tensor:
    """The pool's row nearest to each anchor, int64 on the CPU; -1 if all are excluded."""
    step = _step(pool)
    nearest = []
    for start in range(0, len(anchors), step):
        cosines = anchors[start : start + step] @ pool.T
        cosines[_places(excluded, start, step, pool.device)] = _NEVER
        nearest.append(_argmax(cosines))
    return torch.cat(nearest).cpu()


def _nearest_of_each_other(
    left: Tensor, right: Tensor, not_for_left: Excluded, not_for_right: Excluded
) -> tuple[Tensor, Tensor]:
    """The same for left among right and for right among left, from one product of both.

    The rows of a block of cosines give the nearest of the left. For the right, only the maximum of
    every column is taken, and in which block it stands: where it stands in that block is found by
    making these few products again, as that takes less than looking for the place in all blocks.
    """
    step, device = _step(right), right.device
    order = np.argsort(not_for_right[1], kind="stable")
    not_for_right = not_for_right[1][order], not_for_right[0][order]  # as rows and columns
    starts = range(0, len(left), step)
    of_left: list[Tensor] = []
    of_right = torch.empty(len(right), dtype=torch.int64, device=device)
    best = right.new_full((len(right),), -torch.inf)
    block = torch.zeros(len(right), dtype=torch.int64, device=device)
    for number, start in enumerate(starts):
        cosines = left[start : start + step] @ right.T
        excluded = _places(not_for_left, start, step, device)
        kept = cosines[excluded]
        cosines[excluded] = _NEVER
        of_left.append(_argmax(cosines))
        cosines[excluded] = kept
        cosines[_places(not_for_right, start, step, device)] = _NEVER
        maxima = cosines.amax(dim=0)
        block[maxima > best] = number
        torch.maximum(best, maxima, out=best)
    for number, start in enumerate(starts):
        columns = (block == number).nonzero().squeeze(1)
        cosines = right[columns] @ left[start : start + step].T
        rows, anchors = _places(not_for_right, start, step, device)
        here = block[anchors] == number
        cosines[torch.searchsorted(columns, anchors[here]), rows[here]] = _NEVER
        of_right[columns] = _shift(_argmax(cosines), start)
    return torch.cat(of_left).cpu(), of_right.cpu()


def _shift(rows: Tensor, by: int) -> Tensor:
    return torch.where(rows < 0, rows, rows + by)


def _step(pool: Tensor) -> int:
    """How many anchors to compare with the pool at once."""
    return max(1, (_CPU_BLOCK if pool.device.type == "cpu" else _GPU_BLOCK) // max(len(pool), 1))


def _places(
    excluded: Excluded, start: int, step: int, device: torch.device
) -> tuple[Tensor, Tensor]:
    """Rows and columns that are excluded, in the block of the rows from `start` on."""
    here = slice(*np.searchsorted(excluded[0], [start, start + step]))
    rows, columns = excluded[0][here] - start, excluded[1][here]
    return torch.from_numpy(rows).to(device), torch.from_numpy(columns).to(device)


def _argmax(cosines: Tensor) -> Tensor:
    """The place of each row's maximum, -1 where all are excluded."""
    if cosines.device.type == "cpu":  # numpy's is two to four times as fast as torch's there
        place = torch.from_numpy(cosines.numpy().argmax(axis=1))
    else:
        place = cosines.argmax(dim=1)
    best = cosines.gather(1, place.unsqueeze(1)).squeeze(1)
    return torch.where(best > _NEVER, place, -1)


def _alike(mine: np.ndarray, partner: np.ndarray, pool: np.ndarray) -> Excluded:
    """All (anchor, pool row) where the pool's sentence equals the anchor or the anchor's pair."""
    order = np.argsort(pool, kind="stable")
    ordered = pool[order]
    wanted = np.stack([mine, partner], axis=1).ravel()
    first = np.searchsorted(ordered, wanted, "left")
    lengths = np.searchsorted(ordered, wanted, "right") - first
    rows = np.repeat(np.arange(len(wanted)) // 2, lengths)
    ends = np.cumsum(lengths)
    within = np.arange(len(rows)) - np.repeat(ends - lengths, lengths)
    return rows, order[np.repeat(first, lengths) + within]
