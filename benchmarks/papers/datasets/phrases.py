"""Phrase pairs for training and test, filtered as by Zhou et al. 2017."""

from pathlib import Path
from typing import Literal, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paraloom.models.embeddings.datasets.phrases import phrase_blocks
from paraloom.models.errors import UserError
from paraloom.models.hashing import text_hashes, threshold

_LETTERS = r"^\p{L}+( \p{L}+)*$"
HeldOut = Literal["pairs", "phrases"]


class PhrasePairs(NamedTuple):
    """n pairs of paraphrases."""

    left: pa.StringArray
    right: pa.StringArray

    def __len__(self) -> int:
        return len(self.left)

    def take(self, rows: np.ndarray) -> Self:
        """Return the pairs at `rows` (indices or a mask)."""
        index = pa.array(np.flatnonzero(rows) if rows.dtype == bool else rows)
        return type(self)(self.left.take(index), self.right.take(index))

    def phrases(self) -> pa.StringArray:
        """Return the distinct phrases of both sides, in order of first appearance."""
        return pa.concat_arrays([self.left, self.right]).unique()


def read_phrase_pairs(path: Path | str, known: pa.StringArray | None = None) -> PhrasePairs:
    """Read the pairs of a phrase table that are `usable`, in lower case.

    A pair that occurs in both directions is returned once.
    """
    blocks = [
        usable(PhrasePairs(*map(pc.utf8_lower, sides)), known) for sides in phrase_blocks(path)
    ]
    pairs = PhrasePairs(*(pa.concat_arrays(side) for side in zip(*blocks, strict=True)))
    first, second = (pc.min_element_wise(*pairs), pc.max_element_wise(*pairs))
    rows = pa.table([first, second, np.arange(len(pairs))], names=["first", "second", "row"])
    rows = rows.group_by(["first", "second"]).aggregate([("row", "min")])
    pairs = pairs.take(np.sort(rows["row_min"].to_numpy()))
    if not len(pairs):
        vectors = "" if known is None else "; every word must have a vector"
        raise UserError(
            f"{path}: no usable pair of phrases: the two must differ and have only letters and "
            f"spaces, and at least one must have several words{vectors}"
        )
    return pairs


def usable(pairs: PhrasePairs, known: pa.StringArray | None = None) -> PhrasePairs:
    """Return the pairs of different phrases that consist of letters and spaces. At least one phrase
    of a pair must have several words.

    Args:
        known: the words that phrases may contain. By default, all words are allowed.
    """
    several = pc.or_(*(pc.match_substring(side, " ") for side in pairs))
    letters = pc.and_(*(pc.match_substring_regex(side, _LETTERS) for side in pairs))
    keep = pc.and_(pc.and_(several, letters), pc.not_equal(*pairs))
    if known is not None:
        for side in pairs:
            keep = pc.and_(keep, _all_known(side, known))
    return pairs.take(keep.to_numpy(zero_copy_only=False))


class PhraseSplit(NamedTuple):
    """Pairs for training, for selection of the epoch (development), and for the test."""

    train: PhrasePairs
    development: PhrasePairs
    test: PhrasePairs


def split(pairs: PhrasePairs, held_out: float, by: HeldOut = "pairs") -> PhraseSplit:
    """Split pairs by a hash. Test pairs and development pairs are each a share `held_out`.

    With `by="phrases"`, shares of the phrases are held out, with all pairs that contain them. At
    least one phrase of a test pair then does not occur in training.
    """
    texts = [pc.binary_join_element_wise(*pairs, "\t")] if by == "pairs" else list(pairs)
    hashes = np.min([text_hashes(text) for text in texts], axis=0)
    ends = [threshold(held_out), threshold(2 * held_out)]
    part = np.searchsorted(np.array(ends, np.uint64), hashes, side="right")
    test, development, train = (pairs.take(part == number) for number in range(3))
    return PhraseSplit(train, development, test)


def _all_known(phrases: pa.StringArray, known: pa.StringArray) -> pa.BooleanArray:
    words = pc.split_pattern(phrases, " ")
    unknown = pc.invert(pc.is_in(words.flatten(), value_set=known))
    before = np.concatenate([[0], np.cumsum(unknown.to_numpy(zero_copy_only=False))])
    offsets = words.offsets.to_numpy()
    return pa.array(before[offsets[1:]] == before[offsets[:-1]])
