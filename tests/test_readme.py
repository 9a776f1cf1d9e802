"""The README names what there is: every configuration key."""

from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

from pipeline.config import Config

README = Path(__file__).resolve().parent.parent / "README.md"


def keys(kind: Any, prefix: str = "") -> list[str]:
    found = []
    hints = get_type_hints(kind)
    for item in fields(kind):
        sections = [t for t in (hints[item.name], *get_args(hints[item.name])) if is_dataclass(t)]
        if sections:
            found += keys(sections[0], f"{prefix}{item.name}.")
        else:
            found.append(prefix + item.name)
    return found


@pytest.mark.parametrize("key", keys(Config))
def test_every_key_has_its_row(key):
    assert f"| `{key}` |" in README.read_text(encoding="utf-8")


def test_no_row_without_a_key():
    lines = README.read_text(encoding="utf-8").split("## Configuration")[1].split("##")[0]
    rows = [line.split("`")[1] for line in lines.splitlines() if line.startswith("| `")]
    assert sorted(rows) == sorted(keys(Config))
