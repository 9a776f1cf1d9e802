"""Phrase pairs: the file formats, the filter of Zhou et al. 2017, and held-out pairs."""

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Literal, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paraloom.models.embeddings.datasets.lines import numbered_lines
from paraloom.models.errors import UserError
from paraloom.models.hashing import text_hashes, threshold

Format = Literal["ppdb", "tsv", "lexicon"]

_ROWS = 20_000  # pairs of a block
_LETTERS = r"^\p{L}+( \p{L}+)*$"


class PhrasePairs(NamedTuple):
    """n pairs of paraphrases."""

    left: pa.StringArray
    right: pa.StringArray

    def __len__(self) -> int:
        return len(self.left)

    def take(self, rows: np.ndarray) -> Self:
        """The pairs of `rows` (numbers, or a mask)."""
        index = pa.array(np.flatnonzero(rows) if rows.dtype == bool else rows)
        return type(self)(self.left.take(index), self.right.take(index))

    def phrases(self) -> pa.StringArray:
        """The distinct phrases of both sides, in order of first appearance."""
        return pa.concat_arrays([self.left, self.right]).unique()


def read_phrases(
    path: Path | str, format: Literal["auto"] | Format = "auto"
) -> Iterator[tuple[str, str]]:
    """The phrase pairs of a file, plain or gzip, in order.

    Formats; `auto` detects them by the first line:
        ppdb: fields separated by ` ||| `: an optional syntactic label (`[NP]`), phrase and
            paraphrase; further fields are ignored.
        tsv: phrase and paraphrase, separated by tabs; further fields are ignored.
        lexicon: a word and its paraphrases, all single words, separated by spaces.
    """
    empty = True
    for number, line in numbered_lines(Path(path)):
        text = line.strip(" \r\n")  # other Unicode white space can be a word in PPDB
        if not text:
            continue
        if format == "auto":
            format = "ppdb" if "|||" in text else "tsv" if "\t" in text else "lexicon"
        pairs = list(_parse(text, format))
        if not pairs or not all(left and right for left, right in pairs):
            raise UserError(f"{path}: line {number} holds no pair of phrases (format {format})")
        empty = False
        yield from pairs
    if empty:
        raise UserError(f"{path}: empty, no phrase pairs")


def _parse(text: str, format: Format) -> Iterable[tuple[str, str]]:
    if format == "lexicon":
        head, *paraphrases = text.split(" ")
        return [(head, paraphrase) for paraphrase in paraphrases if paraphrase]
    fields = [field.strip(" ") for field in text.split("|||" if format == "ppdb" else "\t")]
    if format == "ppdb" and fields[0].startswith("[") and fields[0].endswith("]"):
        fields = fields[1:]
    return [(fields[0], fields[1])] if len(fields) > 1 else []


def phrase_blocks(
    path: Path | str, format: Literal["auto"] | Format = "auto"
) -> Iterator[PhrasePairs]:
    """The pairs of `read_phrases` in blocks."""
    pairs = read_phrases(path, format)
    while rows := list(islice(pairs, _ROWS)):
        yield PhrasePairs(*(pa.array(side, pa.string()) for side in zip(*rows, strict=True)))


def read_phrase_pairs(path: Path | str, known: pa.StringArray | None = None) -> PhrasePairs:
    """The usable pairs of a phrase table (see `read_phrases`), lower-cased.

    Left out are pairs of equal phrases, of two single words, with other characters than letters and
    spaces, or with a word that is not `known` (None: all words are). A pair that occurs in both
    directions is kept once.
    """
    blocks = [
        usable(PhrasePairs(*map(pc.utf8_lower, block)), known) for block in phrase_blocks(path)
    ]
    pairs = PhrasePairs(*(pa.concat_arrays(side) for side in zip(*blocks, strict=True)))
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


class Split(NamedTuple):
    """Pairs to train on, to choose the epoch by, and to report."""

    train: PhrasePairs
    development: PhrasePairs
    test: PhrasePairs


def split(pairs: PhrasePairs, held_out: float, by: Literal["pairs", "phrases"] = "pairs") -> Split:
    """Pairs at random: a share `held_out` for the test, the same for development, and the rest.

    By `phrases`, these shares of the phrases are left out with all their pairs, so that a test pair
    has at least one phrase that training does not contain. What is left out depends only on its
    text.
    """
    texts = [pc.binary_join_element_wise(*pairs, "\t")] if by == "pairs" else list(pairs)
    hashes = np.min([text_hashes(text) for text in texts], axis=0)
    ends = [threshold(held_out), threshold(2 * held_out)]
    part = np.searchsorted(np.array(ends, np.uint64), hashes, side="right")
    test, development, train = (pairs.take(part == number) for number in range(3))
    return Split(train, development, test)


def _all_known(phrases: pa.StringArray, known: pa.StringArray) -> pa.BooleanArray:
    words = pc.split_pattern(phrases, " ")
    unknown = pc.invert(pc.is_in(words.flatten(), value_set=known))
    before = np.concatenate([[0], np.cumsum(unknown.to_numpy(zero_copy_only=False))])
    offsets = words.offsets.to_numpy()
    return pa.array(before[offsets[1:]] == before[offsets[:-1]])
