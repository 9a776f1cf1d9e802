"""Parsing and comparison of language codes, and properties of languages."""

import difflib
import re
from functools import cache

from langcodes import Language, tag_distance
from langcodes.tag_parser import LanguageTagError

ENGLISH = "en"

_FAR = 80
"""Minimum CLDR distance of languages that are not closely related. The distance is 24 for Czech and
Slovak, 59 for Croatian and Serbian, and 84 for Czech and Polish."""

_UNSPACED = (
    *("Hani", "Hans", "Hant", "Hira", "Jpan", "Kana", "Khmr", "Lana", "Laoo", "Mymr"),
    *("Tale", "Talu", "Tavt", "Thai", "Tibt", "Yiii"),
)
"""ISO 15924 codes of scripts without spaces between words."""

_NAMES = """
af Afrikaans, am Amharic, ar Arabic, as Assamese, ast Asturian, az Azerbaijani, ba Bashkir,
be Belarusian, bg Bulgarian, bn Bengali, bo Tibetan, br Breton, bs Bosnian, ca Catalan, ceb Cebuano,
cs Czech, cy Welsh, da Danish, de German, dz Dzongkha, el Greek, en English, eo Esperanto,
es Spanish, et Estonian, eu Basque, fa Persian, ff Fulah, fi Finnish, fil Filipino, fo Faroese,
fr French, fy Western Frisian, ga Irish, gd Scottish Gaelic, gl Galician, gu Gujarati, ha Hausa,
he Hebrew, hi Hindi, hr Croatian, ht Haitian Creole, hu Hungarian, hy Armenian, id Indonesian,
ig Igbo, ilo Iloko, is Icelandic, it Italian, ja Japanese, jv Javanese, ka Georgian, kk Kazakh,
km Khmer, kn Kannada, ko Korean, ku Kurdish, ky Kyrgyz, la Latin, lb Luxembourgish, lg Ganda,
ln Lingala, lo Lao, lt Lithuanian, lv Latvian, mg Malagasy, mi Maori, mk Macedonian, ml Malayalam,
mn Mongolian, mni Manipuri, mr Marathi, ms Malay, mt Maltese, my Burmese, nb Norwegian Bokmål,
ne Nepali, nl Dutch, nn Norwegian Nynorsk, no Norwegian, ny Nyanja, oc Occitan, or Odia, pa Punjabi,
pl Polish, ps Pashto, pt Portuguese, ro Romanian, ru Russian, rw Kinyarwanda, sd Sindhi, si Sinhala,
sk Slovak, sl Slovenian, sn Shona, so Somali, sq Albanian, sr Serbian, ss Swati, st Southern Sotho,
su Sundanese, sv Swedish, sw Swahili, ta Tamil, tdt Tetum, te Telugu, tg Tajik, th Thai,
ti Tigrinya, tk Turkmen, tl Tagalog, tn Tswana, tr Turkish, ts Tsonga, tt Tatar, ug Uyghur,
uk Ukrainian, ur Urdu, uz Uzbek, vi Vietnamese, wo Wolof, wuu Wu Chinese, xh Xhosa, yi Yiddish,
yo Yoruba, yue Cantonese, zh Chinese, zu Zulu
"""
_BY_CODE = dict(entry.split(" ", 1) for entry in " ".join(_NAMES.split()).split(", "))
CODES = {name.lower(): code for code, name in _BY_CODE.items()}
"""Codes of well-known languages by English name, in lower case."""


def parse_language(code: str) -> Language | None:
    """Parse a code such as `cs`, `ces`, `cs_CZ` or `ces_Latn`. Return None for an invalid code.

    >>> parse_language("ces_Latn").language, parse_language("cz")
    ('cs', None)
    """
    try:
        found = Language.get(code)
    except LanguageTagError:
        return None
    return found if found.is_valid() else None


def no_code(code: str) -> str:
    """Return "" for a valid language code, and an error message for an invalid code.

    >>> no_code("cz"), no_code("cs")
    ('cz is not a language code; Czech is cs', '')
    """
    if parse_language(code):
        return ""
    meant = short_code(re.split("[_-]", code)[0]).partition("-")[0]
    near = [meant] if meant in _BY_CODE else difflib.get_close_matches(code.lower(), CODES, 1, 0.75)
    hints = (f"{_BY_CODE[short]} is {short}" for short in (CODES.get(of, of) for of in near))
    return f"{code} is not a language code; {next(hints, 'codes are as in ISO 639: cs, en')}"


def differ(code: str, other: str) -> bool:
    """Return whether two codes name well-known languages that are not closely related.

    >>> differ("cs", "de"), differ("ces_Latn", "sk"), differ("hr", "sr"), differ("cs", "src")
    (True, False, False, False)
    """
    one, two = (short_code(each).partition("-")[0] for each in (code, other))
    known = one in _BY_CODE and two in _BY_CODE
    return known and min(tag_distance(one, two), tag_distance(two, one)) >= _FAR


@cache
def short_code(code: str) -> str:
    """Convert all codes of a language to the same short code.

    The region and the language's usual script are omitted. For a country code that is no language
    code (`cz`, `jp`), return the code of the country's most spoken language, unless that is English
    (`us` stays `us`). Return an unknown code in lower case.

    >>> [short_code(code) for code in ("ces_Latn", "cz", "en-GB", "zho_Hans", "zh-TW", "sr-Latn")]
    ['cs', 'cs', 'en', 'zh', 'zh-Hant', 'sr-Latn']
    """
    found = parse_language(code)
    if found is None and len(code) == 2 and code.isalpha():
        found = Language.make(territory=code.upper()).maximize()
        if found.language == ENGLISH:  # langcodes returns English for unknown countries, too
            found = None
    if found is None or not found.language:
        return code.lower()
    found = found.prefer_macrolanguage()
    script = found.maximize().script  # `Hant` for `zh-TW`
    usual = Language.make(language=found.language).maximize().script
    script = None if script == usual else script
    return Language.make(language=found.language, script=script).to_tag()


def language_name(code: str) -> str:
    """Return the English name of a language, or the quoted code if the name is unknown.

    >>> language_name("fra"), language_name("sr-Latn"), language_name("tlh")
    ('French', 'Serbian', "'tlh'")
    """
    short = short_code(code)
    return _BY_CODE.get(short.partition("-")[0], f"'{short}'")


def name_with_script(code: str) -> str:
    """Return the name of a language, followed by its code if the script is not the usual script.

    >>> [name_with_script(code) for code in ("zh-CN", "zh-Hant", "zh-TW", "sr-Latn", "pt-BR")]
    ['Chinese', 'Chinese (zh-Hant)', 'Chinese (zh-TW)', 'Serbian (sr-Latn)', 'Portuguese']
    """
    name, found = language_name(code), parse_language(code)
    if found is None:
        return name
    usual = Language.make(language=found.language).maximize().script
    return name if found.maximize().script == usual else f"{name} ({code})"


@cache
def is_unspaced(code: str) -> bool:
    """Return whether a language is written without spaces between words.

    >>> [is_unspaced(code) for code in ("zh", "jpn", "th", "dz", "ko", "zh-Latn", "fr")]
    [True, True, True, True, False, False, False]
    """
    found = parse_language(short_code(code))
    return found is not None and found.maximize().script in _UNSPACED
