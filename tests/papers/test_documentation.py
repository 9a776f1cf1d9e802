"""The JSON Schema and the configuration page are those of the code, and name every key."""

import json
import re
from collections import Counter

import pytest

from paraloom.papers.documentation import (
    PAGE,
    PAGES,
    RESULTS,
    SCHEMA,
    TABLES,
    filled,
    page,
    results_schema,
    schema,
)

TEXTS = {path.name: path.read_text("utf-8") for path in PAGES}
TABLE = re.compile(r"<!-- (\w+): [^\n]* -->\n")
REMEDY = "write it with `python -m paraloom.papers.documentation`"


def test_schemas_and_page_are_fresh() -> None:
    assert json.loads(SCHEMA.read_text(encoding="utf-8")) == schema(), REMEDY
    assert json.loads(RESULTS.read_text(encoding="utf-8")) == results_schema(), REMEDY
    assert PAGE.read_text(encoding="utf-8") == page(), REMEDY


def test_every_key_has_a_description() -> None:
    found = schema()
    sections = [found, *found["$defs"].values()]
    for section in sections:
        assert section["description"].endswith(".")
        for name, key in section["properties"].items():
            is_section = "$ref" in json.dumps(key)
            assert is_section or key["description"].endswith((".", "`.")), name


@pytest.mark.parametrize("page", [name for name, text in TEXTS.items() if TABLE.search(text)])
def test_the_tables_of_the_page_are_fresh(page: str) -> None:
    assert TEXTS[page] == filled(TEXTS[page]), "run `make docs`"


def test_each_table_stands_once() -> None:
    found = Counter(name for text in TEXTS.values() for name in TABLE.findall(text))
    assert found == Counter(TABLES.keys())
