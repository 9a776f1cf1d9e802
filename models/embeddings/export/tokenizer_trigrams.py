"""Overlapping character trigrams of words as a pipeline of the package `tokenizers`.

Its steps can only replace and cut, so the overlap is made of pairs: a character is written as a
mark and a base letter of its own, then every base letter and the mark that follows it, which is
the mark of the next character, as the two characters. In " cat " these pairs are " c", "ca", "at"
and "t ". A pair within a word is written twice with a bar between: " cca|caat|att ", cut at the
bars. So the trigram "cat" is the entry "caat".
"""

import unicodedata
from collections.abc import Iterable, Mapping
from itertools import islice

from tokenizers import Regex, Tokenizer, normalizers, pre_tokenizers
from tokenizers.models import WordLevel

from paraloom.models.embeddings.export.charsmap import precompiled
from paraloom.models.embeddings.export.errors import InexpressibleError
from paraloom.models.embeddings.export.tokenizer_words import (
    boundaries,
    lower,
    separate_stops,
    spaces,
)
from paraloom.models.languages import is_unspaced

# Letters that no text in lower case has.
_BAR, _OTHER, _UNKNOWN = "À", "Á", "Â"
_MAX_JOINERS = 64


def trigrams_tokenizer(trigrams: Mapping[str, int], unknown: str, language: str) -> Tokenizer:
    """The tokeniser of trigrams with their ids.

    Raises:
        InexpressibleError: the language has no spaces, or the trigrams too many characters.
    """
    if is_unspaced(language):
        raise InexpressibleError("trigrams of a language without spaces")
    known = sorted({character for trigram in trigrams for character in trigram} | {" "})
    names = dict(_stand_ins(known))
    marks, bases = _marks(), _bases()
    symbols = [names.get(character, character) for character in [*known, _UNKNOWN]]
    if len(symbols) > min(len(marks), len(bases)):
        raise InexpressibleError(f"trigrams of {len(known):,} different characters")
    mark = dict(zip(symbols, marks, strict=False))
    base = dict(zip(symbols, bases, strict=False)) | {" ": _BAR}

    pairs = {pair for trigram in trigrams for pair in (trigram[:2], trigram[1:])}
    written = {}
    for pair in pairs:
        first, second = (names.get(character, character) for character in (pair[0], pair[1]))
        before, after = pair[0] != " ", pair[1] != " "  # whether a trigram ends, and one begins
        written[base[first] + mark[second]] = pair + _BAR * before + pair * (before and after)
    # An unknown pair remains a base letter, and its mark becomes a bar and the next beginning.
    rest = {mark[symbol]: _BAR if symbol == " " else _BAR + _OTHER for symbol in symbols}

    tokenizer = Tokenizer(
        WordLevel({unknown: 0} | {t[:2] + t[1:]: i for t, i in trigrams.items()}, unk_token=unknown)
    )
    allowed = "".join(rf"\x{{{ord(character):x}}}" for character in known)
    tokenizer.normalizer = normalizers.Sequence(
        [
            *separate_stops(language),
            *lower(),
            normalizers.Prepend(" "),
            normalizers.Replace(Regex(boundaries(language)), " "),
            normalizers.Replace(Regex(r"\z"), " "),
            spaces(),
            normalizers.Replace(Regex(f"[^{allowed}]"), _UNKNOWN),
            *(normalizers.Replace(*pair) for pair in names.items()),
            normalizers.Precompiled(precompiled({s: mark[s] + base[s] for s in symbols})),
            normalizers.Precompiled(precompiled(written | rest)),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.CharDelimiterSplit(_BAR)
    return tokenizer


def _stand_ins(characters: Iterable[str]) -> Iterable[tuple[str, str]]:
    """Characters that join their neighbours to one cluster, and unused characters for them.

    A character map replaces the beginning of a cluster and drops the rest of it.
    """
    characters = list(characters)
    apart = normalizers.Precompiled(precompiled(dict.fromkeys(characters, "+")))
    joiners = [c for c in characters if apart.normalize_str(f" {c} ") != "+++"]
    if len(joiners) > _MAX_JOINERS:
        raise InexpressibleError(f"trigrams with {len(joiners)} different combining characters")
    unused = (chr(point) for point in range(0xE000, 0xF8FF) if chr(point) not in characters)
    return zip(joiners, unused, strict=False)


def _marks() -> list[str]:
    """Combining marks of two or three bytes, the oldest first."""
    return list(_characters(range(0x300, 0x10000), ("Mn",)))


def _bases() -> list[str]:
    """Letters of two bytes, so that a letter and a mark are fewer than 6 bytes."""
    letters = _characters(range(0xC3, 0x800), ("Lu", "Ll", "Lo"))
    return list(islice(letters, 2000))


def _characters(points: range, categories: tuple[str, ...]) -> Iterable[str]:
    old = [chr(p) for p in points if unicodedata.ucd_3_2_0.category(chr(p)) in categories]
    yield from old
    known = set(old)
    for character in map(chr, points):
        if character not in known and unicodedata.category(character) in categories:
            yield character
