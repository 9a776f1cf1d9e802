"""The JSON Schema and the page of the configuration, both made from the declared keys.

`python -m pipeline.config.documentation` writes `configs/schema.json` and `docs/configuration.md`.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jinja2 import Environment

from pipeline.config.options import Config

ROOT = Path(__file__).resolve().parents[2]
SCHEMA, PAGE = ROOT / "configs" / "schema.json", ROOT / "docs" / "configuration.md"
TEMPLATE = Path(__file__).with_name("configuration.md.j2")

_NAMES = {
    "path": ("path", "paths"),
    "string": ("text", "texts"),
    "integer": ("whole number", "whole numbers"),
    "number": ("number", "numbers"),
    "boolean": ("true or false", "true or false"),
    "null": ("null", "null"),
}
_BOUNDS = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}


def schema() -> dict[str, Any]:
    """The JSON Schema of a configuration."""
    found = _plain(Config.model_json_schema(by_alias=False))
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **found}


def _plain(node: Any) -> Any:
    """Without generated titles and whole sections as defaults; descriptions on one line."""
    if isinstance(node, list):
        return [_plain(item) for item in node]
    if not isinstance(node, dict):
        return node
    kept = {
        key: _plain(value)
        for key, value in node.items()
        if not (key == "title" and isinstance(value, str))
        and not (key == "default" and isinstance(value, dict))
    }
    if isinstance(kept.get("description"), str):
        kept["description"] = " ".join(kept["description"].split())
    return kept


def page() -> str:
    """The configuration page in Markdown: one table for each section."""
    whole = schema()
    environment = Environment(trim_blocks=True, keep_trailing_newline=True)
    template = environment.from_string(TEMPLATE.read_text(encoding="utf-8"))
    sections = _sections("", whole, whole["$defs"])
    return template.render(sections=sections, values=_values, default=_default)


def _sections(
    name: str, section: dict[str, Any], defs: dict[str, Any]
) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Name, description and keys of a section, then of those within it."""
    fields = {f"{name}.{key}".lstrip("."): field for key, field in section["properties"].items()}
    inner = {key: found for key, field in fields.items() if (found := _reference(field))}
    yield name, section["description"], {key: fields[key] for key in fields if key not in inner}
    for key, reference in inner.items():
        yield from _sections(key, defs[reference], defs)


def _reference(field: dict[str, Any]) -> str | None:
    """The name of the section that a key holds."""
    found = (option.get("$ref") for option in (field, *field.get("anyOf", [])))
    return next((reference.rpartition("/")[2] for reference in found if reference), None)


def _values(field: dict[str, Any], *, plural: bool = False) -> str:
    """The values that a key takes, in words."""
    if "anyOf" in field:
        return " or ".join(_values(option, plural=plural) for option in field["anyOf"])
    if "enum" in field:
        return ", ".join(f"`{value}`" for value in field["enum"])
    if field["type"] == "array":
        return f"list of {_values(field['items'], plural=True)}"
    if field["type"] == "object":
        return f"mapping to {_values(field['additionalProperties'], plural=True)}"
    bounds = [f"{sign} {field[key]:,}" for key, sign in _BOUNDS.items() if key in field]
    name = _NAMES[field.get("format", field["type"])][plural]
    return " ".join([name, ", ".join(bounds)]).strip()


def _default(field: dict[str, Any]) -> str:
    if "default" not in field:
        return "required"
    value = field["default"]
    text = value if isinstance(value, str) else json.dumps(value).replace('"', "")
    return f"`{text}`"


if __name__ == "__main__":
    SCHEMA.write_text(json.dumps(schema(), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")
