"""docs/papers.md names code, values and tables that exist. `test_docs` has further checks."""

import pkgutil
import re

import yaml

from paraloom.models.embeddings.encoders import kinds
from paraloom.papers.options import SystemOptions
from tests.test_docs import ROOT, TABLES, text_of

PAGE = text_of(ROOT / "docs" / "papers.md")
HEAD = ["paper", "what it says", "here", "as in the paper?"]
CODE = sorted((ROOT / "benchmarks" / "experiments").glob("*.py"))
EXPERIMENTS = "".join(path.read_text("utf-8") for path in CODE)
"""The code, which also names the tables whose data are missing."""


def rows(text: str) -> list[list[str]]:
    """Return the cells of all table rows. `\\|` does not end a cell."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def names(text: str) -> list[str]:
    """Return the dotted names of our code that are links or between backticks."""
    found = re.findall(r"(?<!\[)`((?:paraloom|benchmarks)(?:\.\w+)+)`", text)
    for shown, path in re.findall(r"\[`([\w.]+)`\]\(\.\./([\w/]+)\.py\)", text):
        module = path.removesuffix("/__init__").replace("/", ".")
        if not module.startswith("benchmarks.experiments"):
            module = f"paraloom.{module.removeprefix('benchmarks.')}"
        found.append(shown if shown == module else f"{module}.{shown}")
    return found


def exists(name: str) -> bool:
    """Whether there is a module, class, function, constant or field with this dotted name."""
    owner, _, field = name.rpartition(".")
    try:
        found = pkgutil.resolve_name(owner)
        fields = getattr(found, "model_fields", {}) | getattr(found, "__annotations__", {})
        if field not in fields:
            pkgutil.resolve_name(name)
    except (AttributeError, ImportError):
        return False
    return True


def missing(text: str) -> list[str]:
    """Return the names in a text that do not exist."""
    found = [name for name in names(text) if not exists(name)]
    for key, value in re.findall(r"`embeddings\.(\w+): ([\w-]+)`", text):
        try:
            given = {} if key == "task" else {"scramble": 0.5, key: yaml.safe_load(value)}
            kinds(SystemOptions.of(given).model)
        except ValueError as error:
            found.append(str(error))
    for group in re.findall(r"\btables? ((?:`[\w-]+`(?:, | and )?)+)", text):
        unknown = set(re.findall(r"`([\w-]+)`", group)) - set(TABLES)
        found += [name for name in sorted(unknown) if f'"{name}"' not in EXPERIMENTS]
    return found


def test_what_the_page_names_exists() -> None:
    assert len(names(PAGE)) > 100
    assert missing(PAGE) == []


def test_every_row_says_where_it_is_and_how_it_differs() -> None:
    found = rows(PAGE)
    assert found.count(HEAD) > 5 and len(found) > 150
    for row in found:
        assert len(row) == 4 and all(row), row


def test_the_check_finds_what_does_not_exist() -> None:
    text = """
    `paraloom.papers.encoders.gran.Gran` `paraloom.models.embeddings.nothing.GRAN`
    `benchmarks.measure.none`
    [`GRAN.none`](../benchmarks/papers/encoders/gran.py) [`GRAN`](../models/none.py)
    `embeddings.model: gran-6` `embeddings.cell: peep` table `wg7`, tables `wg1` and `wg10`
    """
    assert len(missing(text)) == 9
