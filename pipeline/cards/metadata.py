"""The metadata block at the beginning of a card."""

import re
from collections.abc import Iterable
from pathlib import Path

from paraloom.models.errors import UserError
from paraloom.models.languages import short_code
from paraloom.models.structured import parse_yaml


def hub_languages(codes: Iterable[str]) -> list[str]:
    """Languages as the Hub names them: codes of two or three letters, each once.

    >>> hub_languages(["en_GB", "cs", "en"])
    ['en', 'cs']
    """
    short = (short_code(code).partition("-")[0] for code in codes)
    return [code for code in dict.fromkeys(short) if re.fullmatch("[a-z]{2,3}", code)]


def license_of(folder: Path) -> str | None:
    """The `license` in the metadata of a folder's README.md; None if it says none."""
    try:
        text = (folder / "README.md").read_text(encoding="utf-8")
        _, metadata, _ = text.split("---\n", 2)
        value = parse_yaml(metadata, "").get("license")
    except (OSError, ValueError, AttributeError, UserError):
        return None
    return ", ".join(map(str, value if isinstance(value, list) else [value])) if value else None
