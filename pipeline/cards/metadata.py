"""The metadata block at the beginning of a card."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from paraloom.models.errors import UserError
from paraloom.models.languages import short_code
from paraloom.models.structured import parse_yaml
from paraloom.pipeline.report.render import Markdown


class _Dumper(yaml.SafeDumper):
    """Writes every text on one line, where it can end neither the metadata nor a block of code."""

    def represent_str(self, data: str) -> yaml.ScalarNode:
        style = '"' if data.splitlines() not in ([], [data]) else None
        return self.represent_scalar("tag:yaml.org,2002:str", data, style)


_Dumper.add_representer(str, _Dumper.represent_str)


def yaml_block(values: Any) -> Markdown:
    """Values as YAML for a card."""
    text = yaml.dump(values, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=10**6)
    return Markdown(text)


def front_matter(values: Mapping[str, Any]) -> Markdown:
    """The metadata as YAML, without the lines `---` around it."""
    return yaml_block(dict(values))


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
