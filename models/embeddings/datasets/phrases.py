"""Phrase pairs to train on, as Zhou et al. 2017 filter PPDB, and held-out ones to test on."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from models.embeddings.training.paragram import read_phrases
from models.errors import UserError

_ROWS = 100_000  # pairs filtered at once
_LETTERS = r"^\p{L}+( \p{L}+)*$"


class PhrasePairs(NamedTuple):
    """n pairs of phrases that mean about the same."""

    left: pa.StringArray
    right: pa.StringArray

    def __len__(self) -> int:
        return len(self.left)

    def take(self, rows: np.ndarray) -> PhrasePairs:
        """The pairs of `rows` (numbers, or a mask)."""
        rows = np.flatnonzero(rows) if rows.dtype == bool else rows
        return PhrasePairs(self.left.take(pa.array(rows)), self.right.take(pa.array(rows)))

    def phrases(self) -> pa.StringArray:
        """The distinct phrases of both sides, in order of first appearance."""
        return pa.concat_arrays([self.left, self.right]).unique()


def read_phrase_pairs(path: Path | str, known: pa.StringArray | None = None) -> PhrasePairs:
    """The pairs of a phrase table (see `read_phrases`) that can be learnt from, lower-cased.

    Left out are pairs of equal phrases, of two single words, of phrases with anything but letters
    and spaces, or with a word that is not `known` (None: all are). A pair that stands there in both
    directions counts once.

    Raises:
        UserError: the table cannot be read, or no pair is left.
    """
    parts, found = [], read_phrases(path)
    while rows := list(islice(found, _ROWS)):
        sides = (pc.utf8_lower(pa.array(side, pa.string())) for side in zip(*rows, strict=True))
        parts.append(usable(PhrasePairs(*sides), known))
    pairs = PhrasePairs(*(pa.concat_arrays(side) for side in zip(*parts, strict=True)))
    first, second = (pc.min_element_wise(*pairs), pc.max_element_wise(*pairs))
    rows = pa.table([first, second, np.arange(len(pairs))], names=["first", "second", "row"])
    rows = rows.group_by(["first", "second"]).aggregate([("row", "min")])
    pairs = pairs.take(np.sort(rows["row_min"].to_numpy()))
    if not len(pairs):
        what = "whose words all have vectors " if known is not None else ""
        raise UserError(
            f"{path}: no two different phrases of letters {what}of which one has several words"
        )
    return pairs


def usable(pairs: PhrasePairs, known: pa.StringArray | None = None) -> PhrasePairs:
    """The pairs that pass the paper's filter."""
    several = pc.or_(*(pc.match_substring(side, " ") for side in pairs))
    letters = pc.and_(*(pc.match_substring_regex(side, _LETTERS) for side in pairs))
    keep = pc.and_(pc.and_(several, letters), pc.not_equal(*pairs))
    if known is not None:
        for side in pairs:
            keep = pc.and_(keep, _all_known(side, known))
    return pairs.take(keep.to_numpy(zero_copy_only=False))


def split(pairs: PhrasePairs, held_out: float) -> tuple[PhrasePairs, PhrasePairs]:
    """Pairs for training, and those for testing: at least one phrase of these is new to training.

    Which phrases (a share `held_out` of them) are kept from training depends on their text alone.
    """
    new = np.zeros(len(pairs), bool)
    for side in pairs:
        hashes = (xxhash.xxh3_64_intdigest(text) for text in side.cast(pa.binary()).to_pylist())
        new |= np.fromiter(hashes, np.uint64, len(pairs)) < np.uint64(held_out * 2**64)
    return pairs.take(~new), pairs.take(new)


def _all_known(phrases: pa.StringArray, known: pa.StringArray) -> pa.BooleanArray:
    words = pc.split_pattern(phrases, " ")
    unknown = pc.invert(pc.is_in(words.flatten(), value_set=known))
    before = np.concatenate([[0], np.cumsum(unknown.to_numpy(zero_copy_only=False))])
    offsets = words.offsets.to_numpy()
    return pa.array(before[offsets[1:]] == before[offsets[:-1]])
