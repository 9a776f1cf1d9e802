"""Sentences as a tree of their beginnings: a recurrent state is computed once per beginning.

What a recurrent network has read after t words depends on these t words alone, so sentences that
begin alike share their first states. The tree of all beginnings (its nodes, level by level) is the
unpadded form of a batch: there is one state per node, and a sentence is a path of nodes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Tree(NamedTuple):
    """The beginnings of n sentences, numbered level by level: those on level t have t + 1 words."""

    starts: np.ndarray
    """int64 [levels + 1]: level t has the nodes `starts[t]:starts[t + 1]`."""
    words: np.ndarray
    """int64 [nodes]: the place of each beginning's last word."""
    parents: np.ndarray
    """int64 [nodes]: the beginning one word shorter; 0 for those on level 0, which have none."""
    paths: np.ndarray
    """int32 [tokens]: the node at which each token is read, sentence after sentence."""
    lasts: np.ndarray
    """int64 [n]: the node of the whole sentence; -1 for an empty one."""


def tree_of(
    places: np.ndarray, offsets: np.ndarray, *, backward: bool = False, share: bool = True
) -> Tree:
    """The tree of a batch (see `Tokens`).

    Args:
        places: tokens that are equal have equal places, [tokens].
        offsets: where each sentence begins among them, [n + 1].
        backward: read every sentence from its end.
        share: let sentences that begin alike have the same nodes. Otherwise each has its own, the
            longest sentence first on every level, as in torch's `PackedSequence`.
    """
    lengths = np.diff(offsets)
    n, longest = len(lengths), int(lengths.max(initial=0))
    row = np.repeat(np.arange(n), lengths)
    step = np.arange(len(row)) - np.repeat(offsets[:-1], lengths)
    if backward:
        step = np.repeat(lengths, lengths) - 1 - step
    # Big-endian, so that the bytes of a row compare as its words do; 0 stands behind the end.
    grid = np.zeros((n, max(longest, 1)), ">u4")
    grid[row, step] = places + 1
    keys = grid.view(f"V{4 * grid.shape[1]}")[:, 0] if share else -lengths
    order = np.argsort(keys, kind="stable")
    rank = np.empty(n, np.int64)
    rank[order] = np.arange(n)
    grid = grid[order].astype(np.int64)
    fresh = grid > 0  # where a sentence leaves the path of the one before it
    if share:
        fresh[1:] &= np.logical_or.accumulate(grid[1:] != grid[:-1], axis=1)
    # Of the node at [level, rank]:
    number = (np.cumsum(fresh.T.ravel()) - 1).reshape(grid.shape[::-1])
    level, ranked = np.nonzero(fresh.T)
    lasts = np.full(n, -1, np.int64)
    full = np.flatnonzero(lengths)
    lasts[full] = number[lengths[full] - 1, rank[full]]
    return Tree(
        starts=np.concatenate([[0], np.cumsum(fresh.sum(axis=0))[:longest]]),
        words=grid[ranked, level] - 1,
        parents=np.where(level > 0, number[level - 1, ranked], 0),
        paths=number[step, rank[row]].astype(np.int32),
        lasts=lasts,
    )
