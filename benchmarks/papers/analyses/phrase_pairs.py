"""Extracts phrase pairs from sentence pairs: the spans by which two sentences differ.

Reference and translation are aligned by a longest common subsequence of their tokens. The spans
between aligned tokens are candidate paraphrases, alone or with the aligned words next to them:
`he jumps off the wall` and `he is jumping from the wall` give `jumps off` and `is jumping from`,
`he jumps off` and `he is jumping from`, and so on.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from rapidfuzz.distance import LCSseq

from paraloom.models.text.tokens import PairText, TokenIds

LONGEST = 6
"""The largest number of words in a phrase."""

SCHEMA = pa.schema([("phrase", pa.string()), ("paraphrase", pa.string()), ("count", pa.int64())])
"""A phrase table; of the two phrases of a pair, `phrase` is the first in the order of bytes."""


def find_phrases(pairs: PairText) -> pa.Table:
    """The phrase pairs of a block of sentence pairs, with the number of their occurrences.

    As in the filter of Zhou et al. (2017) for PPDB, words consist of letters, and one of the two
    phrases has at least two words. The phrases of a pair always differ: equal words are aligned.

    >>> pairs = PairText(pa.array(["It is very big ."]), pa.array(["It is huge ."]))
    >>> find_phrases(pairs).to_pylist()[0]
    {'phrase': 'huge', 'paraphrase': 'very big', 'count': 1}
    """
    sides = pairs.reference, pairs.translation
    letters = pc.utf8_is_alpha(pairs.vocabulary).to_numpy(zero_copy_only=False)
    others = [np.concatenate([[0], np.cumsum(~letters[side.ids])]) for side in sides]
    gaps = _gaps(*sides)
    texts: list[list[pa.StringArray]] = [[], []]
    for before in (0, 1):
        for after in (0, 1):
            spans = _extended(gaps, before, after)
            shorter, longer = np.sort([span.ends - span.starts for span in spans], axis=0)
            keep = (shorter > 0) & (longer > 1) & (longer <= LONGEST)
            for other, span in zip(others, spans, strict=True):
                keep &= other[span.ends] == other[span.starts]
            for column, side, span in zip(texts, sides, spans, strict=True):
                selected = _Spans(span.starts[keep], span.ends[keep])
                column.append(_texts(side, pairs.vocabulary, selected))
    left, right = (pa.concat_arrays(column) for column in texts)
    ordered = pc.less(left.cast(pa.binary()), right.cast(pa.binary()))
    first, second = pc.if_else(ordered, left, right), pc.if_else(ordered, right, left)
    ones = pa.array(np.ones(len(first), np.int64))
    return merge_phrases([pa.table([first, second, ones], schema=SCHEMA)])


def merge_phrases(tables: Iterable[pa.Table]) -> pa.Table:
    """Add up the counts of phrase tables; the order of the result is arbitrary."""
    table = pa.concat_tables([SCHEMA.empty_table(), *tables])
    sums = table.group_by(SCHEMA.names[:2]).aggregate([("count", "sum")])
    return sums.select([*SCHEMA.names[:2], "count_sum"]).rename_columns(SCHEMA.names)


class _Spans(NamedTuple):
    """Spans of tokens, numbered over all sentences of one side: int64 [n] each."""

    starts: np.ndarray
    ends: np.ndarray


class _Gaps(NamedTuple):
    """Unaligned spans: one on each side, one of which may be empty."""

    reference: _Spans
    translation: _Spans
    aligned: np.ndarray  # bool [n, 2]: whether an aligned word comes before, and after


def _gaps(reference: TokenIds, translation: TokenIds) -> _Gaps:
    ids, other_ids = reference.ids.tolist(), translation.ids.tolist()
    offsets, other_offsets = reference.offsets.tolist(), translation.offsets.tolist()
    found: list[tuple[int, int, int, int, bool, bool]] = []
    for row in range(len(offsets) - 1):
        (first, last), (other, other_last) = offsets[row : row + 2], other_offsets[row : row + 2]
        edits = LCSseq.editops(ids[first:last], other_ids[other:other_last])
        start, other_start = first, other
        for block in edits.as_matching_blocks():  # the last one is empty, at the end
            end, other_end = first + block.a, other + block.b
            if end > start or other_end > other_start:
                found.append((start, end, other_start, other_end, start > first, end < last))
            start, other_start = end + block.size, other_end + block.size
    columns = np.array(found, np.int64).reshape(-1, 6).T
    return _Gaps(_Spans(*columns[:2]), _Spans(*columns[2:4]), columns[4:].T.astype(bool))


def _extended(gaps: _Gaps, before: int, after: int) -> list[_Spans]:
    """Spans with `before` and `after` aligned words added, of the gaps that have these words."""
    there = (gaps.aligned >= (before, after)).all(axis=1)
    sides = (gaps.reference, gaps.translation)
    return [_Spans(side.starts[there] - before, side.ends[there] + after) for side in sides]


def _texts(side: TokenIds, words: pa.StringArray, spans: _Spans) -> pa.StringArray:
    """The words of each span, joined by spaces."""
    lengths = spans.ends - spans.starts
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    positions = np.arange(offsets[-1]) + np.repeat(spans.starts - offsets[:-1], lengths)
    tokens = words.take(pa.array(side.ids[positions]))
    return pc.binary_join(pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), tokens), " ")
