"""The prefix trie of a batch. Sentences share the recurrent states of a common prefix."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from paraloom.models.embeddings.ragged_columns import offsets_of, positions


class PrefixTrie(NamedTuple):
    """The prefixes of n sentences. A node on level t is a prefix of t + 1 words."""

    starts: NDArray[np.int64]  # [levels + 1]: level t has the nodes `starts[t]:starts[t + 1]`
    rows: NDArray[np.int64]  # [nodes]: row of the prefix's last word in `RaggedBatch.vectors`
    parents: NDArray[np.int64]  # [nodes]: node of the prefix without its last word; 0 on level 0
    paths: NDArray[np.int32]  # [tokens]: node of the prefix that ends with each token of the batch
    ends: NDArray[np.int64]  # [n]: node of the whole sentence, or -1 for an empty sentence


def build_trie(
    rows: NDArray[np.int32],
    offsets: NDArray[np.int64],
    *,
    backward: bool = False,
    share: bool = True,
) -> PrefixTrie:
    """Build the trie of a `RaggedBatch`.

    Args:
        backward: read sentences from their ends.
        share: let sentences share nodes. Otherwise each sentence has its own nodes, and on every
            level the longest sentence is first, as in torch's `PackedSequence`.
    """
    lengths = np.diff(offsets)
    n, longest = len(lengths), int(lengths.max(initial=0))
    sentence = np.repeat(np.arange(n), lengths)
    step = positions(offsets)
    if backward:
        step = np.repeat(lengths, lengths) - 1 - step
    # Big-endian numbers can be sorted as bytes. 0 is padding.
    grid = np.zeros((n, max(longest, 1)), ">u4")
    grid[sentence, step] = rows + 1
    keys = grid.view(f"V{4 * grid.shape[1]}")[:, 0] if share else -lengths
    order = np.argsort(keys, kind="stable")
    rank = np.empty(n, np.int64)
    rank[order] = np.arange(n)
    grid = grid[order].astype(np.int64)
    fresh = grid > 0  # whether the sentence is the first that has this node
    if share:
        fresh[1:] &= np.logical_or.accumulate(grid[1:] != grid[:-1], axis=1)
    # The number of the node at [level, rank]:
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
