"""The page on the papers names code, keys, files and tables that exist."""

import re
from importlib import import_module
from typing import Any

import pytest

from paraloom.papers.documentation import schema
from paraloom.papers.options import SystemOptions
from tests.test_docs import ROOT, TABLES, text_of

PAGE = text_of(ROOT / "docs" / "papers.md")
HEAD = ["paper", "what it says", "here", "as in the paper?"]
OUR_CODE = ("paraloom", "benchmarks")


def rows(text: str) -> list[list[str]]:
    """The cells of all table rows; `\\|` is no border."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def names(text: str) -> list[str]:
    """Dotted names of our code: linked to their module, or between backticks."""
    plain = re.findall(rf"(?<!\[)`((?:{'|'.join(OUR_CODE)})(?:\.\w+)+)`", text)
    return plain + [
        shown if shown == module else f"{module}.{shown}"
        for shown, path in re.findall(r"\[`([\w.]+)`\]\(\.\./([\w/]+)\.py\)", text)
        for module in [_module(path)]
    ]


def _module(path: str) -> str:
    name = path.removesuffix("/__init__").replace("/", ".")
    return (
        name
        if name.startswith("benchmarks.experiments")
        else f"paraloom.{name.removeprefix('benchmarks.')}"
    )


def resolve(name: str) -> Any:
    """The module, class, function or constant with this dotted name.

    Raises:
        LookupError: there is none.
    """
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            found: Any = import_module(".".join(parts[:end]))
        except ModuleNotFoundError as error:
            if error.name is None or not name.startswith(error.name):
                raise
            continue
        for part in parts[end:]:
            fields = getattr(found, "model_fields", {}) | getattr(found, "__annotations__", {})
            if not hasattr(found, part) and part not in fields:
                raise LookupError(f"{name}: {found!r} has no {part}")
            found = getattr(found, part, None)
        return found
    raise LookupError(f"{name}: no module {parts[0]}")


def keys() -> set[str]:
    """All keys of the configuration, dotted."""
    whole = schema()
    found = set()

    def visit(prefix: str, section: dict[str, Any]) -> None:
        for key, field in section["properties"].items():
            found.add(f"{prefix}{key}")
            options = (field, *field.get("anyOf", []))
            for option in (*options, *(o["items"] for o in options if "items" in o)):
                if reference := option.get("$ref"):
                    visit(f"{prefix}{key}.", whole["$defs"][reference.rpartition("/")[2]])

    visit("", whole)
    return found


KEYS = keys()
EXPERIMENTS = "".join(
    path.read_text("utf-8") for path in sorted((ROOT / "benchmarks" / "experiments").glob("*.py"))
)
"""Some tables exist only where their data are."""


def missing(text: str) -> list[str]:
    """What a page names that does not exist."""
    found = []
    for name in names(text):
        try:
            resolve(name)
        except LookupError as error:
            found.append(str(error))
    for key, value in re.findall(r"`(embeddings(?:\.\w+)+)(?:: ([\w-]+))?`", text):
        if key not in KEYS:
            found.append(f"no key {key}")
        elif value and key.count(".") == 1 and key != "embeddings.task":
            found += _wrong_value(key.partition(".")[2], value)
    for path in re.findall(r"`((?:configs|docs|tests)/[\w./-]+)`", text):
        if not (ROOT / path).exists():
            found.append(f"no file {path}")
    for group in re.findall(r"\btables? ((?:`[\w-]+`(?:, | and )?)+)", text):
        unknown = set(re.findall(r"`([\w-]+)`", group)) - set(TABLES)
        found += [f"no table {name}" for name in sorted(unknown) if f'"{name}"' not in EXPERIMENTS]
    return found


def _wrong_value(key: str, value: str) -> list[str]:
    """What is wrong with a value of a key of `embeddings`."""
    from paraloom.models.embeddings.encoders import kinds

    typed: Any = {"true": True, "false": False, "null": None}.get(value, value)
    typed = float(typed) if str(typed).replace(".", "").isdigit() else typed
    typed = int(typed) if isinstance(typed, float) and typed.is_integer() else typed
    try:
        options = SystemOptions(**{"scramble": 0.5, key: typed})
        kinds(options.model)
    except ValueError as error:
        return [f"embeddings.{key}: {value}: {error}"]
    return []


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
    `benchmarks.report.none`
    [`GRAN.none`](../benchmarks/papers/encoders/gran.py) [`GRAN`](../models/none.py)
    `embeddings.lambda` `embeddings.model: gran-6` `embeddings.cell: peep` `configs/none.yaml`
    table `wg7`, tables `wg1` and `wg10`
    """
    found = missing(text)
    assert len(found) == 11, found
    good = """
    [`GRAN`](../benchmarks/papers/encoders/gran.py)
    [`paraloom.pipeline.rounds`](../pipeline/rounds.py)
    [`random_vectors`](../models/embeddings/encoders/__init__.py)
    `paraloom.papers.encoders.gran.GRAN.forward`
    `paraloom.models.embeddings.options.EmbeddingOptions.tags`
    `embeddings.lambda_c` `embeddings.model: gran-3` `embeddings.pairs.negative`
    `embeddings.tags: end`
    `embeddings.mega_batch: 1` `configs/gran.yaml` table `wg1`
    """
    assert missing(good) == []


@pytest.mark.parametrize("row", rows("| a | \\|b\\| | c |"))
def test_escaped_borders(row: list[str]) -> None:
    assert row == ["a", r"\|b\|", "c"]
