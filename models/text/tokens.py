"""Moses tokens of text columns, as flat integer arrays that all scorers share."""

from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from mosestokenizer import MosesTokenizer

# Most English sentences are plain: words, numbers, commas, apostrophes and one final mark. For them
# Moses' rules only insert a space before every mark. Arrow does that for whole columns, five times
# faster. A final word that may be an abbreviation (Mr., vs.) is not plain.
_WORD = r"(?:[A-Za-z]+(?:-[A-Za-z]+)*(?:'[A-Za-z]+)?|[0-9]+)"
_NO_ABBREVIATION = r"(?:[A-Za-z]+-)*(?:[a-z]{4,}|[a-z]{2}[a-uw-z]|[a-z][a-rt-z])"
_PLAIN = rf"^(?:{_WORD},? )*(?:{_WORD}(?: ?[?!]| [.])?|{_NO_ABBREVIATION}[.])$"


@cache
def _tokenizer() -> MosesTokenizer:
    # One per process, shared by its threads: it has no state, and a call holds the GIL.
    return MosesTokenizer("en")  # no XML escapes: `'s`, not `&apos;s`


def moses_tokens(text: pa.Array | pa.ChunkedArray, *, lower: bool = True) -> pa.ListArray:
    """English Moses tokens of a column of texts: list<string>, one list per row.

    Lower-casing follows tokenising, because Moses considers case; it maps characters one to one.
    Empty text, white space and null give an empty list.

    >>> moses_tokens(pa.array(["It's Mr. Smith.", ""])).to_pylist()
    [['it', "'s", 'mr.', 'smith', '.'], []]
    """
    if isinstance(text, pa.ChunkedArray):
        text = text.combine_chunks()
    text = pc.fill_null(text.cast(pa.string()), "")
    spaced = text
    for mark in ",'.?!":
        spaced = pc.replace_substring(spaced, mark, f" {mark}")
    other = pc.invert(pc.match_substring_regex(text, _PLAIN))
    tokenize = super(MosesTokenizer, _tokenizer()).tokenize  # without the Python wrapper
    lines = pc.replace_substring(pc.filter(text, other), "\0", " ").to_pylist()  # C++ ends at \0
    others = [" ".join(tokenize(line)) for line in lines]
    spaced = pc.replace_with_mask(spaced, other, pa.array(others, pa.string()))
    if lower:
        spaced = pc.utf8_lower(spaced)
    rows = pc.ascii_split_whitespace(pc.if_else(pc.equal(spaced, ""), None, spaced))
    return pa.ListArray.from_arrays(rows.offsets, rows.values)  # no nulls: empty lists


@dataclass(frozen=True, eq=False)
class TokenIds:
    """Token ids of a column of n texts; those of row r are `ids[offsets[r]:offsets[r + 1]]`."""

    ids: np.ndarray  # int32 [tokens]
    offsets: np.ndarray  # int32 [n + 1]

    @cached_property
    def lengths(self) -> np.ndarray:
        """Tokens per row: int32 [n]."""
        return np.diff(self.offsets)

    @cached_property
    def rows(self) -> np.ndarray:
        """The row of every token: int32 [tokens]."""
        return np.repeat(np.arange(len(self.lengths), dtype=np.int32), self.lengths)


class PairText:
    """Two text columns of n rows each, and their tokens.

    Both sides are lower-cased and have a common vocabulary, local to these rows: equal tokens have
    equal ids, `vocabulary[i]` is the token with id i, in order of first appearance. The source,
    which few scorers read, has no tokens here.

    >>> pairs = PairText(pa.array(["A dog runs ."]), pa.array(["The dog runs ."]))
    >>> pairs.reference.ids.tolist(), pairs.translation.ids.tolist()
    ([0, 1, 2, 3], [4, 1, 2, 3])
    """

    def __init__(
        self, reference: pa.Array, translation: pa.Array, source: pa.Array | None = None
    ) -> None:
        if len(reference) != len(translation):
            raise ValueError(f"{len(reference)} references but {len(translation)} translations")
        self.reference_text, self.translation_text = reference, translation
        self.source_text = source
        first, second = moses_tokens(reference), moses_tokens(translation)
        encoded = pa.concat_arrays([first.values, second.values]).dictionary_encode()
        ids, cut = encoded.indices.to_numpy(), len(first.values)
        self.reference = TokenIds(ids[:cut], first.offsets.to_numpy())
        self.translation = TokenIds(ids[cut:], second.offsets.to_numpy())
        self.vocabulary: pa.StringArray = encoded.dictionary

    def __len__(self) -> int:
        return len(self.reference_text)
