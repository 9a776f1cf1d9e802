"""Moses' tokeniser with lower-casing, as a pipeline of the package `tokenizers`.

On English text, the tokens equal the tokens of `paraloom.models.text.tokens`. About 5% of random
strings of punctuation have different tokens.
"""

from collections.abc import Iterable
from importlib.resources import files
from importlib.resources.abc import Traversable
from itertools import islice

import numpy as np
import pyarrow as pa
from tokenizers import Regex, Tokenizer, normalizers, pre_tokenizers
from tokenizers.models import WordLevel

from paraloom.models.embeddings.vocabulary import UNKNOWN, Vocabulary
from paraloom.models.languages import ENGLISH, is_unspaced, short_code
from paraloom.models.text.tokens import UNSPACED_SCRIPTS, WITH_SPACING_MARKS

_COMPARED = 4000  # maximum number of sentences that `equal_share` compares

# Characters for regular expressions. Some constants are character classes without their brackets.
# Moses treats C0 controls as spaces, but not the line breaks in `_BREAK`.
_GAP = r"\x{00}-\x{1f}"
_BREAK = r"[\x{85}\x{2029}]"
_SPACE = rf"[\p{{Zs}}{_GAP}]"
_UNCASED, _MARK = r"\p{Lo}\p{Lm}\p{Lt}", r"\p{M}"
_H = r"\-\x{2010}\x{2011}\x{30a0}\x{fe63}\x{ff0d}\x{10ead}"  # hyphens
_WORD = rf"\p{{L}}{_MARK}\p{{N}}\p{{Cf}}"
_ALPHA = rf"\p{{L}}{_MARK}\p{{Cf}}{_H}'"
_CASED = r"[\p{Ll}\p{Lu}]"
_AFTER_HYPHEN = rf"\p{{L}}\p{{N}}\s{_GAP}\p{{Po}}"

_APOSTROPHES = {"fr": "left", "it": "left", "fi": "alone", "sv": "alone"}
"""Whether an apostrophe is part of the word on its left, or a separate token. In other languages,
an apostrophe is a separate token if sacremoses is used, or else part of the word on its right.
"""
_COLONS = ("fi", "sv")  # languages in which a colon between letters is part of the word


def words_tokenizer(vocabulary: Vocabulary) -> Tokenizer:
    """Build a tokeniser that returns the ids of a word vocabulary."""
    language = vocabulary.language
    entries = {word: number for number, word in enumerate(vocabulary.words)}
    tokenizer = Tokenizer(WordLevel(entries, unk_token=UNKNOWN))
    if is_unspaced(language):
        tokenizer.normalizer = normalizers.Sequence(
            [normalizers.Replace(Regex(r"\p{Cf}+"), ""), *_LOWER]
        )
        pattern = _unspaced_tokens()
    else:
        straight = normalizers.Replace(Regex(rf"`|\x{{92}}(?={_CASED})"), "'")
        stops = normalizers.Replace(Regex(_stop(short_code(language))), " .")
        tokenizer.normalizer = normalizers.Sequence([straight, stops, *_LOWER])
        pattern = _tokens(short_code(language))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(pattern), "removed", invert=True)
    return tokenizer


def equal_share(
    tokenizer: Tokenizer, vocabulary: Vocabulary, texts: Iterable[pa.StringArray]
) -> float:
    """Return the share of the first 4000 texts for which `tokenizer` and `vocabulary` give equal
    ids."""
    rows = (row for text in texts for row in text.drop_null().to_pylist())
    if not (sentences := list(islice(rows, _COMPARED))):
        return 1.0
    column = vocabulary.ids(pa.array(sentences, pa.string()))
    wanted = np.split(column.ids, column.offsets[1:-1])
    found = tokenizer.encode_batch(sentences)
    equal = [a.ids == b.tolist() for a, b in zip(found, wanted, strict=True)]
    share: float = sum(equal) / len(equal)
    return share


# Arrow lower-cases İ to one character. `Lowercase` alone would give two characters.
_LOWER = (normalizers.Replace("İ", "i"), normalizers.Lowercase())


def _in_python(code: str) -> bool:
    """Return whether sacremoses, not Moses' C++ code, tokenises the language."""
    return code in WITH_SPACING_MARKS or not _prefixes(code).is_file()


def _prefixes(code: str) -> Traversable:
    """Return the path of Moses' abbreviations in a language."""
    return files("mosestokenizer") / "share" / "nonbreaking_prefixes" / f"nonbreaking_prefix.{code}"


def _side(code: str) -> str:
    return _APOSTROPHES.get(code, "alone" if _in_python(code) else "right")


def _stop(code: str) -> str:
    """Return a pattern of full stops that are separate tokens."""
    always, before_number = _abbreviations(code)
    apostrophe = {"left": r"|\p{L}'", "alone": "|'"}.get(_side(code), "")
    start = rf"(?:\A|[^{_WORD}.{_H}']|[{_H}]{{2}}'?|\A'|[^{_WORD}.{_H}']'{apostrophe})"
    conditions = [  # cheap conditions first, and slow look-behinds last
        rf"\.(?![\p{{Nd}}\p{{Ll}}\p{{Lu}}])(?<=[{_WORD}{_H}']\.)",
        # except the last full stop of abbreviations such as U.S.
        rf"(?!(?<=\.{_CASED}\.)(?<={start}[{_ALPHA}.]{{0,40}}\.{_CASED}\.))",
        # except between a word of letters and a lower-case word or hyphen
        rf"(?!(?={_SPACE}*\p{{Ll}}|\p{{Pd}})(?<={_CASED}\.)(?<={start}[{_ALPHA}]{{0,40}}{_CASED}\.))",
    ]
    if always:  # except after Mr
        conditions.append(rf"(?<!{start}(?:{always})\.)")
    if before_number:  # except between No and a number
        conditions.append(rf"(?!(?={_SPACE}+\p{{Nd}})(?<={start}(?:{before_number})\.))")
    return "".join(conditions)


def _abbreviations(code: str) -> tuple[str, str]:
    """Return a pattern of Moses' abbreviations, and a pattern of the abbreviations that Moses only
    recognises before numbers."""
    path = _prefixes(code)
    if not path.is_file():  # Moses' default
        path = _prefixes(ENGLISH)
    always: list[str] = []
    before_number: list[str] = []
    for line in path.read_text("utf-8").split("\n"):
        word, *rest = line.split() or [""]
        # Entries without letters have no effect.
        if any(map(str.isalpha, word)) and not word.startswith("#"):
            escaped = "".join(c if c.isalnum() else rf"\x{{{ord(c):x}}}" for c in word)
            (before_number if rest == ["#NUMERIC_ONLY#"] else always).append(escaped)
    return "|".join(always), "|".join(before_number)


def _tokens(code: str) -> str:
    inner = (
        rf"\.(?!\.)|[{_H}](?<![{_H}]{{2}})(?=[{_AFTER_HYPHEN}])(?![{_H}])"
        r"|,(?<=\p{N},)(?=\p{Nd})"
    )
    if code in _COLONS:
        inner += r"|:(?<=\p{L}:)(?=\p{L})"
    inner = rf"(?=[.,:{_H}])(?:{inner})"
    side = _side(code)
    dots = rf"\.{{2,}}(?<=[{_WORD}]\.+)"
    end = rf"(?:{dots}|'(?<=\p{{L}}'))?" if side == "left" else rf"(?:{dots})?"
    run = (  # without a number next to a letter that has no case
        rf"[{_WORD}](?:[\p{{Ll}}\p{{Lu}}\p{{Cf}}]++|(?<![{_UNCASED}\p{{Mn}}])\p{{N}}++"
        rf"|[{_MARK}]|(?<!\p{{N}})[{_UNCASED}])*+"
    )
    if _in_python(code):  # sacremoses splits words only at format characters
        run = rf"(?!\p{{Cf}})[{_WORD}](?:(?!\p{{Cf}})[{_WORD}])*+"
    word = rf"{run}(?:{inner}(?:{run})?+)*+{end}"
    bare = rf"(?:{inner}(?:{run})?+)++{end}"
    begin = rf",(?:(?<=\p{{N}},)(?=[{_WORD}])|(?=\p{{Nd}}))"
    if side == "right":
        begin += rf"|'(?<=[{_WORD}.{_H}]')(?<![{_H}]{{2}}')(?=[\p{{Ll}}\p{{Lu}}\p{{Nd}}])"
    return rf"{word}|\.{{2,}}|[{_H}]{{2,}}|(?:{begin})?(?:{word}|{bare})|[^\s{_GAP}]|{_BREAK}"


def _unspaced_tokens() -> str:
    """Return a pattern for a character of an unspaced script with its marks, a run of Latin letters
    and digits, a run of other letters, or any other visible character."""
    latin, marks = r"\p{Latin}\p{Nd}", r"\p{M}"
    character = UNSPACED_SCRIPTS
    other = rf"(?:(?![{latin}{character}])[\p{{L}}\p{{M}}\p{{N}}])+"
    return rf"[{latin}][{latin}{marks}]*|[{character}]{marks}*|{other}|[^\p{{Z}}\p{{Cc}}]"
