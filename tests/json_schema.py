"""A validator for the part of JSON Schema that pydantic writes. Unknown properties are errors."""

import json
from typing import Any

from paraloom.papers.documentation import RESULTS

TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "null": (type(None),),
}
SCHEMA = json.loads(RESULTS.read_text(encoding="utf-8"))
"""The committed schema of the output of `--json`."""
ABOUT = {"description", "readOnly", "default", "title"}


def errors(value: Any, schema: dict[str, Any], whole: dict[str, Any], at: str = "") -> list[str]:
    """Return where and why a value violates the schema. `whole` has the definitions."""
    if "$ref" in schema:
        return errors(value, whole["$defs"][schema["$ref"].rpartition("/")[2]], whole, at)
    if "anyOf" in schema:
        each = [errors(value, option, whole, at) for option in schema["anyOf"]]
        return [] if [] in each else [f"{at}: none of anyOf: {each}"]
    rest = dict(schema)
    kind = rest.pop("type", None)
    if kind and (
        not isinstance(value, TYPES[kind]) or (isinstance(value, bool) and kind != "boolean")
    ):
        return [f"{at}: {value!r} is not of type {kind}"]
    found = []
    if value not in rest.pop("enum", [value]):
        found.append(f"{at}: {value!r} is not allowed")
    known, more = rest.pop("properties", {}), rest.pop("additionalProperties", False)
    found += [f"{at}: {name} is missing" for name in rest.pop("required", ()) if name not in value]
    if kind == "object":
        for name, inner in value.items():
            of = known.get(name, more)
            if of is False:
                found.append(f"{at}.{name}: not in the schema")
            elif of is not True:
                found += errors(inner, of, whole, f"{at}.{name}")
    first, items = rest.pop("prefixItems", []), rest.pop("items", {})
    if kind == "array":
        low, high = rest.pop("minItems", 0), rest.pop("maxItems", len(value))
        if not low <= len(value) <= high:
            found.append(f"{at}: {len(value)} items")
        for i, inner in enumerate(value):
            found += errors(inner, first[i] if i < len(first) else items, whole, f"{at}[{i}]")
    assert not rest.keys() - ABOUT, f"{at}: keywords that this validator does not know: {rest}"
    return found


def errors_of(command: str, values: Any) -> list[str]:
    """Return the errors in the results of a command."""
    return errors(values, SCHEMA["properties"][command], SCHEMA)
