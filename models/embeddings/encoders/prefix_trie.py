"""The prefix trie of a batch. Sentences can share the recurrent states of a common prefix."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


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
    order = np.argsort(-lengths, kind="stable")  # the longest sentence first
    starts = (offsets[1:] - 1 if backward else offsets[:-1])[order]
    nodes = np.zeros(len(order), np.int64)  # node of the prefix of each sentence, in `order`
    paths, bounds = np.empty(len(rows), np.int32), [0]
    levels = [np.zeros(0, np.int64)]  # for each node, 2³² · parent + row
    reached = np.searchsorted(-lengths[order], -np.arange(lengths.max(initial=0)))
    for level, count in enumerate(reached):  # the first `count` sentences have this level
        tokens = starts[:count] - level if backward else starts[:count] + level
        keys, number = nodes[:count] << 32 | rows[tokens], np.arange(count)
        if share:
            keys, number = np.unique(keys, return_inverse=True)
        nodes[:count] = paths[tokens] = bounds[-1] + number
        bounds.append(bounds[-1] + len(keys))
        levels.append(keys)
    ends = np.empty(len(order), np.int64)
    ends[order] = np.where(lengths[order] > 0, nodes, -1)
    made = np.concatenate(levels)
    return PrefixTrie(np.array(bounds), made & 0xFFFFFFFF, made >> 32, paths, ends)
