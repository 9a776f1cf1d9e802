"""The prefix trie of a batch: a recurrent state is computed once per distinct prefix.

A recurrent state after t words depends only on these words, so sentences share the states of a
common prefix. The nodes, level by level, are the unpadded form of a batch: each has one state, and
a sentence is a path of nodes.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from paraloom.models.embeddings.ragged_columns import offsets_of, positions


class PrefixTrie(NamedTuple):
    """Prefixes of n sentences, numbered level by level: a prefix on level t has t + 1 words."""

    starts: NDArray[np.int64]  # [levels + 1]: level t has the nodes `starts[t]:starts[t + 1]`
    rows: NDArray[np.int64]  # [nodes]: the last word's row in `RaggedBatch.vectors`
    parents: NDArray[np.int64]  # [nodes]: the prefix one word shorter; 0 on level 0
    paths: NDArray[np.int32]  # [tokens]: the node that reads each token, sentence after sentence
    ends: NDArray[np.int64]  # [n]: the node of the whole sentence; -1 for an empty sentence


def build_trie(
    rows: NDArray[np.int32],
    offsets: NDArray[np.int64],
    *,
    backward: bool = False,
    share: bool = True,
) -> PrefixTrie:
    """Build the trie of a `RaggedBatch`; if `backward`, sentences are read from their ends.

    Without `share`, each sentence has its own nodes, the longest sentence first on every level, as
    in torch's `PackedSequence`.
    """
    lengths = np.diff(offsets)
    n, longest = len(lengths), int(lengths.max(initial=0))
    sentence = np.repeat(np.arange(n), lengths)
    step = positions(offsets)
    if backward:
        step = np.repeat(lengths, lengths) - 1 - step
    # Big-endian bytes are sorted as their numbers are; 0 is padding.
    grid = np.zeros((n, max(longest, 1)), ">u4")
    grid[sentence, step] = rows + 1
    keys = grid.view(f"V{4 * grid.shape[1]}")[:, 0] if share else -lengths
    order = np.argsort(keys, kind="stable")
    rank = np.empty(n, np.int64)
    rank[order] = np.arange(n)
    grid = grid[order].astype(np.int64)
    fresh = grid > 0  # from where on a sentence leaves the previous one's path
    if share:
        fresh[1:] &= np.logical_or.accumulate(grid[1:] != grid[:-1], axis=1)
    # For the node at [level, rank]:
    number = (np.cumsum(fresh.T.ravel()) - 1).reshape(grid.shape[::-1])
    level, ranked = np.nonzero(fresh.T)
    ends = np.full(n, -1, np.int64)
    full = np.flatnonzero(lengths)
    ends[full] = number[lengths[full] - 1, rank[full]]
    return PrefixTrie(
        starts=offsets_of(fresh.sum(axis=0)[:longest]),
        rows=grid[ranked, level] - 1,
        parents=np.where(level > 0, number[level - 1, ranked], 0),
        paths=number[step, rank[sentence]].astype(np.int32),
        ends=ends,
    )
