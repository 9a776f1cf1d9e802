"""The hardest negatives of a mega-batch, as blocked matrix products (ParaNMT 4.2)."""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch
from torch import Tensor

from models.embeddings.loss import unit

Pool = Literal["other", "same", "both"]

_CPU_BLOCK, _GPU_BLOCK = 1_000_000, 64_000_000  # cosines held at once: a cache, some memory


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
    both = unit(torch.cat([left, right]))
    keys = np.concatenate([left_keys, right_keys])
    found = []
    for side, mine, partner in ((0, left_keys, right_keys), (1, right_keys, left_keys)):
        first, last = {
            "other": ((1 - side) * n, (2 - side) * n),
            "same": (side * n, (side + 1) * n),
            "both": (0, 2 * n),
        }[pool]
        anchors = both[side * n : (side + 1) * n]
        nearest = _nearest(anchors, both[first:last], *_alike(mine, partner, keys[first:last]))
        found.append(torch.where(nearest < 0, nearest, nearest + first))
    return found[0], found[1]


def _nearest(anchors: Tensor, pool: Tensor, rows: np.ndarray, columns: np.ndarray) -> Tensor:
    """The pool's row nearest to each anchor, without the pairs (rows, columns); -1 if none."""
    step = max(1, (_CPU_BLOCK if pool.device.type == "cpu" else _GPU_BLOCK) // max(len(pool), 1))
    nearest = []
    for start in range(0, len(anchors), step):
        cosines = anchors[start : start + step] @ pool.T
        here = slice(*np.searchsorted(rows, [start, start + step]))
        excluded = torch.from_numpy(rows[here] - start), torch.from_numpy(columns[here])
        cosines[excluded[0].to(pool.device), excluded[1].to(pool.device)] = -2.0
        place = _argmax(cosines)
        best = cosines.gather(1, place.unsqueeze(1)).squeeze(1)
        nearest.append(torch.where(best > -1.5, place, -1))
    return torch.cat(nearest).cpu()


def _argmax(matrix: Tensor) -> Tensor:
    if matrix.device.type == "cpu":  # numpy's is two to four times as fast as torch's there
        return torch.from_numpy(matrix.numpy().argmax(axis=1))
    return matrix.argmax(dim=1)


def _alike(mine: np.ndarray, partner: np.ndarray, pool: np.ndarray) -> tuple[np.ndarray, ...]:
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
