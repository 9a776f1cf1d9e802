"""The JSON Schema and the configuration page are those of the code, and name every key."""

import json

import yaml

from paraloom.papers.documentation import PAGE, RESULTS, SCHEMA, page, results_schema, schema
from paraloom.pipeline.config import Config

CONFIGS = sorted(SCHEMA.parent.glob("*.yaml"))
REMEDY = "write it with `python -m paraloom.papers.documentation`"


def test_the_schema_is_fresh() -> None:
    assert json.loads(SCHEMA.read_text(encoding="utf-8")) == schema(), REMEDY
    assert json.loads(RESULTS.read_text(encoding="utf-8")) == results_schema(), REMEDY


def test_the_page_is_fresh() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), REMEDY


def test_the_example_of_the_page_is_sound() -> None:
    example = page().split("```yaml\n")[1].split("```")[0]
    select = Config.of(yaml.safe_load(example)).select
    assert select.deciles and [str(each) for each in select.where] == ["content_overlap <= 0.8"]


def test_every_key_has_a_description() -> None:
    found = schema()
    sections = [found, *found["$defs"].values()]
    for section in sections:
        assert section["description"].endswith(".")
        for name, key in section["properties"].items():
            is_section = "$ref" in json.dumps(key)
            assert is_section or key["description"].endswith((".", "`.")), name
