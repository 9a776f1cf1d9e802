"""Generates what documents say about declared keys and classes.

`python -m paraloom.papers.documentation` writes `configs/schema.json`, `docs/configuration.md`,
`docs/results.schema.json`, and the `tables` of other pages.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jinja2 import Environment
from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode

from paraloom.papers import tables
from paraloom.papers.options import SystemConfig
from paraloom.pipeline.commands.corpus.estimate import Estimated
from paraloom.pipeline.commands.corpus.select import Counted
from paraloom.pipeline.commands.model.mine import Mining
from paraloom.pipeline.commands.run.compare import Comparisons
from paraloom.pipeline.commands.run.contamination import Counts
from paraloom.pipeline.commands.run.doctor import Doctor
from paraloom.pipeline.commands.run.explain import Explanation
from paraloom.pipeline.commands.run.publish import Published
from paraloom.pipeline.commands.run.status import Status
from paraloom.pipeline.pages.generators import Generators
from paraloom.pipeline.pages.tradeoffs import Curve

ROOT = Path(__file__).resolve().parents[2]
SCHEMA, PAGE = ROOT / "configs" / "schema.json", ROOT / "docs" / "configuration.md"
RESULTS = ROOT / "docs" / "results.schema.json"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FORMS: dict[str, TypeAdapter[Any]] = {
    "status": TypeAdapter(Status),
    "estimate": TypeAdapter(Estimated),
    "explain": TypeAdapter(Explanation),
    "compare": TypeAdapter(Comparisons),
    "contamination": TypeAdapter(Counts),
    "frontier": TypeAdapter(Curve),
    "generators": TypeAdapter(Generators),
    "select": TypeAdapter(Counted),
    "publish": TypeAdapter(Published),
    "doctor": TypeAdapter(Doctor),
    "mine": TypeAdapter(Mining),
}
"""What `--json` of each command writes."""
TEMPLATE = Path(__file__).with_name("configuration.md.j2")


def schema() -> dict[str, Any]:
    """Return the JSON Schema of a configuration."""
    found = _plain(SystemConfig.model_json_schema())
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **found}


class _Written(GenerateJsonSchema):
    """The schema of written values. Values with a default are always written, too."""

    def field_is_required(self, field: Any, total: bool) -> bool:
        return True


def results_schema() -> dict[str, Any]:
    """Return the JSON Schema of what `--json` writes, with a property for each command."""
    forms: list[tuple[str, JsonSchemaMode, TypeAdapter[Any]]]
    forms = [(name, "serialization", form) for name, form in FORMS.items()]
    found, whole = TypeAdapter.json_schemas(forms, schema_generator=_Written)
    properties = {name: of for (name, _), of in found.items()}
    draft = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": draft, **_plain({"properties": properties, **whole})}


def _plain(node: Any) -> Any:
    """Remove generated titles and whole sections as defaults, and put descriptions on one line."""
    if isinstance(node, list):
        return [_plain(item) for item in node]
    if not isinstance(node, dict):
        return node
    kept = {
        key: _plain(value)
        for key, value in node.items()
        if not (key == "title" and isinstance(value, str))
        and not (key == "default" and isinstance(value, dict) and value)
    }
    if isinstance(kept.get("description"), str):
        kept["description"] = " ".join(kept["description"].split())
    return kept


def page() -> str:
    """Return the configuration page in Markdown, with one table for each section."""
    environment = Environment(trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True)
    template = environment.from_string(TEMPLATE.read_text(encoding="utf-8"))
    whole = schema()
    return template.render(sections=_sections("", whole, whole["$defs"]))


def _sections(
    name: str, section: dict[str, Any], defs: dict[str, Any]
) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield the name, description and keys of a section, and of the sections within it."""
    keys, inner = {}, {}
    for key, field in section["properties"].items():
        options = (field, *field.get("anyOf", []))
        items = [option["items"] for option in options if "items" in option]
        kinds = [of["$ref"] for item in items for of in item.get("oneOf", ())]
        for kind in (defs[of.rpartition("/")[2]] for of in kinds):  # a list of several kinds
            own = {n: of for n, of in kind["properties"].items() if n != "kind"}
            about = f"{field['description']} {kind['description']}"
            name_of_kind = f"{key}[{kind['properties']['kind']['const']}]"
            inner[f"{name}.{name_of_kind}".lstrip(".")] = {"description": about, "properties": own}
        if kinds:
            continue
        if reference := max(option.get("$ref", "") for option in (*options, *items)):
            inner[f"{name}.{key}".lstrip(".")] = defs[reference.rpartition("/")[2]]
        else:
            keys[f"{name}.{key}".lstrip(".")] = field
    yield name, section["description"], keys
    for key, found in inner.items():
        yield from _sections(key, found, defs)


if __name__ == "__main__":
    for path, made in ((SCHEMA, schema()), (RESULTS, results_schema())):
        path.write_text(json.dumps(made, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")
    for path in PAGES:
        path.write_text(tables.filled(path.read_text(encoding="utf-8")), encoding="utf-8")
