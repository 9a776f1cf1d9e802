"""Moses tokens of text columns, as flat integer arrays that all scorers share."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paraloom.models.errors import UserError, one_line
from paraloom.models.languages import ENGLISH, is_unspaced, short_code
from paraloom.models.text.files import is_text

# Most English sentences are plain: they have only words, numbers, commas, apostrophes and a final
# mark. Moses' tokens of plain sentences begin exactly after white space and at marks, so NumPy can
# split whole columns. A sentence whose last word may be an abbreviation (Mr.) is not plain.
_MARKS = b",'.?!"
_WORD = r"(?:[A-Za-z]+(?:-[A-Za-z]+)*(?:'[A-Za-z]+)?|[0-9]+)"
_NO_ABBREVIATION = r"(?:[A-Za-z]+-)*(?:[a-z]{4,}|[a-z]{2}[a-uw-z]|[a-z][a-rt-z])"
_PLAIN = rf"^(?:{_WORD},? )*(?:{_WORD}(?: ?[?!]| [.])?|{_NO_ABBREVIATION}[.])$"

WITH_SPACING_MARKS = {"as", "bn", "gu", "hi", "kn", "ml", "mni", "mr", "or", "pa", "ta", "te"}
"""Languages with vowel signs that Moses' tokeniser in C++ replaces by spaces."""

# Unicode names of the scripts in `paraloom.models.languages.is_unspaced`.
_SCRIPTS = (
    "Han Hiragana Katakana Bopomofo Khmer Tai_Tham Lao Myanmar Tai_Le New_Tai_Lue Tai_Viet Thai"
)
UNSPACED_SCRIPTS = "".join(rf"\p{{{script}}}" for script in [*_SCRIPTS.split(), "Tibetan", "Yi"])
_CHARACTERS = (
    (r"\p{Cf}+", ""),  # joiners, and invisible marks for line breaks
    (r"[\p{Z}\p{Cc}]+", " "),
    (rf"[\p{{Latin}}\p{{Nd}}][\p{{Latin}}\p{{Nd}}\p{{M}}]*|[{UNSPACED_SCRIPTS}]\p{{M}}*", r" \0 "),
    (r"[^\p{L}\p{M}\p{N} ]", r" \0 "),
)
"""Patterns and replacements that put spaces around each token. They are applied in order."""


def as_texts(texts: Sequence[str | None] | pa.Array | pa.ChunkedArray) -> pa.StringArray:
    """Convert a list of texts to an Arrow array, with "" for nulls. A single text is an error."""
    if isinstance(texts, str):  # Arrow would split it into letters
        raise UserError("one text is given where a list of texts is needed")
    if isinstance(texts, pa.Array | pa.ChunkedArray) and not is_text(texts.type):
        texts = texts.to_pylist()
    if not isinstance(texts, pa.Array | pa.ChunkedArray):
        try:
            texts = pa.array(texts, pa.string())
        except (pa.ArrowException, KeyError, TypeError, UnicodeError) as error:
            raise UserError(_no_texts(texts)) from error
    if isinstance(texts, pa.ChunkedArray):
        texts = texts.combine_chunks()
    return pc.fill_null(texts.cast(pa.string()), "")


def _no_texts(values: object) -> str:
    """Describe the first value that is not a text."""
    for row, value in enumerate(values if isinstance(values, Iterable) else (), 1):
        if not isinstance(value, str | None) or re.search(r"[\ud800-\udfff]", value or ""):
            return f"row {row:,} is {one_line(repr(value))}, which is not a text"
    return f"a {type(values).__name__} is given where a list of texts is needed"


def moses_tokens(
    text: pa.Array | pa.ChunkedArray, language: str = ENGLISH, *, lower: bool = True
) -> pa.ListArray:
    """Split a text column into Moses tokens: list<string>, one list per row.

    In languages without spaces, a token is a letter with its marks, a run of Latin letters and
    digits, a punctuation mark or a symbol. With `lower`, tokens are lower-cased after tokenising,
    because the tokeniser considers letter case. Empty texts and nulls become empty lists.
    `language` is a code (cs, ces, ces_Latn).

    >>> moses_tokens(pa.array(["It's Mr. Smith.", ""])).to_pylist()
    [['it', "'s", 'mr.', 'smith', '.'], []]
    >>> moses_tokens(pa.array(["L'été de M. Hulot."]), "fr").to_pylist()
    [["l'", 'été', 'de', 'm.', 'hulot', '.']]
    >>> moses_tokens(pa.array(["猫はIBMを。"]), "ja").to_pylist()
    [['猫', 'は', 'ibm', 'を', '。']]
    """
    text = as_texts(text)
    if is_unspaced(language):
        spaced = text
        for pattern, replacement in _CHARACTERS:
            spaced = pc.replace_substring_regex(spaced, pattern, replacement)
        spaced = pc.ascii_trim_whitespace(spaced)
    elif (code := short_code(language)) == ENGLISH:
        plain = pc.match_substring_regex(text, _PLAIN)
        other = pc.invert(plain)
        spaced = _tokenized(pc.filter(text, other), ENGLISH)
        # `replace_with_mask` returns a copy that starts at byte 0 of its buffer. For text that
        # starts at a later byte, Arrow's `ascii_lower` returns garbage.
        text = pc.replace_with_mask(text, other, pc.utf8_lower(spaced) if lower else spaced)
        # Only plain sentences still have capitals. They are ASCII, so a faster function suffices.
        return _split(pc.ascii_lower(text) if lower else text, plain)
    else:
        spaced = _tokenized(text, code)
    return _split(pc.utf8_lower(spaced) if lower else spaced)


def _split(text: pa.StringArray, plain: pa.BooleanArray | None = None) -> pa.ListArray:
    """Split texts at white space, and in `plain` rows also before `_MARKS`."""
    rows = np.frombuffer(text.buffers()[1], np.int32)[text.offset : text.offset + len(text) + 1]
    data = np.frombuffer(text.buffers()[2] or b"", np.uint8)[rows[0] : rows[-1]]
    rows = rows - rows[0]
    visible = (data != ord(" ")) & ((data < ord("\t")) | (data > ord("\r")))
    begins = np.zeros(len(data) + 1, bool)  # the extra element is for empty rows at the end
    begins[1:-1] = ~visible[:-1]
    begins[rows] = True
    begins = begins[:-1]
    if plain is not None:
        marks = data == _MARKS[0]
        for mark in _MARKS[1:]:
            marks |= data == mark
        if not pc.all(plain).as_py():
            marks &= np.repeat(plain.to_numpy(zero_copy_only=False), np.diff(rows))
        begins |= marks
    begins &= visible
    offsets = np.searchsorted(np.flatnonzero(begins), rows).astype(np.int32)
    kept = np.flatnonzero(visible)  # indices are several times faster than masks
    data, starts = data.take(kept), np.flatnonzero(begins.take(kept))
    ends = np.append(starts, len(data)).astype(np.int32)
    values = pa.StringArray.from_buffers(len(starts), pa.py_buffer(ends), pa.py_buffer(data))
    return pa.ListArray.from_arrays(pa.array(offsets), values)


def _tokenized(text: pa.StringArray, language: str) -> pa.StringArray:
    tokenize = _tokenizer(language)
    lines = pc.replace_substring(text, "\0", " ").to_pylist()  # C++ strings end at \0
    return pa.array([" ".join(tokenize(line)) for line in lines], pa.string())


@cache
def _tokenizer(language: str) -> Callable[[str], list[str]]:
    """Return Moses' tokeniser in C++, or sacremoses if the C++ version cannot be used."""
    # Threads can share a tokeniser, because it has no state.
    if language not in WITH_SPACING_MARKS:
        with suppress(ImportError, RuntimeError):
            from mosestokenizer import MosesTokenizer

            return super(MosesTokenizer, MosesTokenizer(language)).tokenize  # type: ignore[no-any-return]  # without the Python wrapper
    from sacremoses import MosesTokenizer as PythonTokenizer

    return partial(PythonTokenizer(language).tokenize, escape=False)  # not &apos;s for 's


@dataclass(frozen=True, eq=False)
class TokenIds:
    """Token ids of n texts. The tokens of row r are `ids[offsets[r]:offsets[r + 1]]`."""

    ids: np.ndarray  # int32 [tokens]
    offsets: np.ndarray  # int32 [n + 1]

    @cached_property
    def lengths(self) -> np.ndarray:
        """Number of tokens per row: int32 [n]."""
        return _shared(np.diff(self.offsets))

    @cached_property
    def rows(self) -> np.ndarray:
        """Row of each token: int32 [tokens]."""
        return _shared(np.repeat(np.arange(len(self.lengths), dtype=np.int32), self.lengths))


def _shared(values: np.ndarray) -> np.ndarray:
    values.flags.writeable = False  # a scorer must not change the input of other scorers
    return values


@dataclass(eq=False)
class PairText:
    """Columns of n pairs as Arrow arrays [n], and the lower-case tokens of both sides.

    `vocabulary[i]` is the token with id i on either side. `language` is the language of both sides.
    Slices select rows.

    >>> pairs = PairText(pa.array(["A dog runs ."]), pa.array(["The dog runs ."]))
    >>> pairs.reference.ids.tolist(), pairs.translation.ids.tolist()
    ([0, 1, 2, 3], [4, 1, 2, 3])
    """

    reference_text: pa.Array
    translation_text: pa.Array
    source_text: pa.Array | None = None
    ids: pa.Array | None = None
    translation_score: pa.Array | None = None
    language: str = ENGLISH

    def __post_init__(self) -> None:
        references, translations = len(self.reference_text), len(self.translation_text)
        if references != translations:
            raise UserError(f"{references} references but {translations} translations")

    def __len__(self) -> int:
        return len(self.reference_text)

    def __getitem__(self, rows: slice) -> PairText:
        columns = (of for of in vars(self).items() if isinstance(of[1], pa.Array | pa.ChunkedArray))
        return replace(self, **{name: column[rows] for name, column in columns})

    @property
    def reference(self) -> TokenIds:
        """Tokens of the references."""
        return self._tokens[0]

    @property
    def translation(self) -> TokenIds:
        """Tokens of the translations."""
        return self._tokens[1]

    @property
    def vocabulary(self) -> pa.StringArray:
        """Distinct tokens of both sides."""
        return self._tokens[2]

    @cached_property
    def _tokens(self) -> tuple[TokenIds, TokenIds, pa.StringArray]:
        sides = (self.reference_text, self.translation_text)
        first, second = (moses_tokens(side, self.language) for side in sides)
        encoded = pa.concat_arrays([first.values, second.values]).dictionary_encode()
        ids, cut = encoded.indices.to_numpy(), len(first.values)
        reference = TokenIds(ids[:cut], first.offsets.to_numpy())
        translation = TokenIds(ids[cut:], second.offsets.to_numpy())
        return reference, translation, encoded.dictionary
