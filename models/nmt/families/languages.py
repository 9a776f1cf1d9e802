"""Conversion of users' language codes to models' language tags."""

import difflib
import re
from collections.abc import Iterable, Mapping

import langcodes

from paraloom.models.errors import UserError
from paraloom.models.languages import parse_language, short_code

_NEAR = 3  # maximum CLDR distance between codes of one language; `no` and `nb` have distance 1


def tags_by_language(tokens: Iterable[str], pattern: str) -> dict[str, str]:
    """Return the tags in a vocabulary by language. Group 1 of `pattern` is the language.

    >>> tags_by_language(["a", "__cs__", "__en__"], r"__([a-z]{2,3})__")
    {'cs': '__cs__', 'en': '__en__'}
    """
    found = (re.fullmatch(pattern, token) for token in tokens)
    return {match[1]: match[0] for match in found if match}


def find_tag(key: str, language: str | None, tags: Mapping[str, str]) -> str:
    """Return a model's tag for a user's language code.

    >>> find_tag("key", "cs", {"ces_Latn": "ces_Latn", "slk_Latn": "slk_Latn"})
    'ces_Latn'
    >>> find_tag("key", "cz", {"cs": "__cs__", "en": "__en__"})
    Traceback (most recent call last):
    paraloom.models.errors.UserError: key: the model has no language 'cz'; did you mean cs?
    """
    if language is None:
        raise UserError(f"{key}: is missing; the model's languages are {_listed(sorted(tags))}")
    known = {**{tag: tag for tag in tags.values()}, **tags}
    if language in known:
        return known[language]
    code = _closest(language, tags)
    if code is None:
        # Suggest the right code if a country (`cz`) or a wrong script (`ces_Cyrl`) is given.
        meant = _closest(short_code(language).partition("-")[0], tags)
        near = [meant] if meant else difflib.get_close_matches(language.lower(), tags, 5, 0.4)
        hint = f"did you mean {' or '.join(near)}?" if near else f"it has {_listed(sorted(tags))}"
        raise UserError(f"{key}: the model has no language {language!r}; {hint}")
    return tags[code]


def _closest(language: str, tags: Mapping[str, str]) -> str | None:
    """Return the model's code for a language. Regions may differ, but scripts may not."""
    wanted = parse_language(language)
    if wanted is None:
        return None
    codes = [code for code in tags if langcodes.tag_is_valid(code)]
    full = wanted.maximize()  # adds the script, such as `Hant` for `zh-TW`
    for tag in (wanted, langcodes.Language.make(language=full.language, script=full.script)):
        found = langcodes.closest_match(tag, codes, max_distance=_NEAR)[0]
        if found in tags:
            return found
    return None


def _listed(codes: list[str]) -> str:
    more = len(codes) - 10
    return ", ".join(codes[:10]) + (f" and {more} more" if more > 0 else "")
