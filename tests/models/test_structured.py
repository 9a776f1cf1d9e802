"""YAML and JSON: one line for whatever is wrong."""

from itertools import pairwise
from pathlib import Path

import pytest
from pydantic import BaseModel

from paraloom.models.errors import UserError
from paraloom.models.structured import (
    front_matter,
    parse_json,
    parse_yaml,
    read_json,
    read_yaml,
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb: 2\na: 3", "line 3: duplicate key a$"),
        ("a: " + "[" * 5000, "recursion"),
        ("a: !!bool maybe", "maybe"),
        ("? [a]\n: b", "unhashable"),
        ("a: b: c", "line 1: mapping values are not allowed here"),
        ("run: &a [*a]", "line 1: an alias contains itself"),
        ("run: &a {b: {c: *a}}", "line 1: an alias contains itself"),
        ("? &a [*a]\n: b", "an alias contains itself"),
        (
            "".join(f"{n}: &{n} [{', '.join([f'*{m}'] * 9)}]\n" for m, n in pairwise("xabcdefgh"))
            .replace("[*x,", "[1,")
            .replace("*x", "1"),
            "its aliases expand to more than 10,000 values",
        ),
        ("a: &a {<<: *a}", "line 1: an alias contains itself"),
        ("a: &a [" + "1," * 5000 + "]\nb: [*a, *a, *a]", "its aliases expand to more than 10,000"),
        (
            "a: &a {k: 1}\n"
            + "".join(
                f"{n}: &{n} {{<<: [{', '.join([f'*{m}'] * 9)}]}}\n" for m, n in pairwise("abcdefgh")
            ),
            "its aliases expand to more than 10,000",
        ),
        ("a: !!python/object:os.system {}", "could not determine a constructor"),
    ],
)
def test_what_yaml_may_hold(text: str, message: str) -> None:
    with pytest.raises(UserError, match=message) as error:
        parse_yaml(text, "a.yaml")
    assert str(error.value).startswith("a.yaml: ") and "\n" not in str(error.value)


def test_aliases_merges_and_powers_of_ten_are_yaml() -> None:
    text = "base: &base {a: 1, b: [2]}\nmore: {<<: *base, c: *base}"
    base = {"a": 1, "b": [2]}
    assert parse_yaml(text, "") == {"base": base, "more": {**base, "c": base}}
    assert parse_yaml("", "") is None
    many = list(range(20_000))
    assert parse_yaml(f"a: {many}\nb: &b {many[:9000]}\nc: *b", "")["a"] == many
    found = parse_yaml("[1e-5, 2E3, -1.5e+2, 1.e4, e5, 1e, version 1e5]", "f.yaml")
    assert found == [1e-5, 2e3, -150.0, 1e4, "e5", "1e", "version 1e5"]


def test_a_file_that_is_not_text(tmp_path: Path) -> None:
    (tmp_path / "latin").write_bytes(b"a: \xe9")
    with pytest.raises(UserError, match=r"latin: cannot be read \(UnicodeDecodeError"):
        read_yaml(tmp_path / "latin")


def test_the_front_matter_of_a_card(tmp_path: Path) -> None:
    card = tmp_path / "README.md"
    for text, found in {
        "---\na: 1\n---\n# A model\n---\n": {"a": 1},
        "\ufeff---\r\na: 1\r\n---": {"a": 1},
        "\n---\na: 1\nb:\n  - x\n---\n": {"a": 1, "b": ["x"]},
        "# A model\n---\na: 1\n---\n": None,
        "---\na: 1\n": None,
        "": None,
    }.items():
        card.write_text(text, "utf-8", newline="")
        assert front_matter(card) == found
    card.write_text("---\na: &a [*a]\n---\n")
    with pytest.raises(UserError, match=r"README\.md: line 1: an alias contains itself"):
        front_matter(card)


class Sizes(BaseModel):
    sizes: dict[str, int]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "EOF"),
        ("[" * 100_000, "recursion limit"),
        ("{}", "sizes: Field required"),
        ('{"sizes": null}', "sizes: Input should be an object"),
        ('{"sizes": {"words": 1e999}}', "sizes.words: "),
        (b"\xff{}", "Invalid JSON"),
    ],
)
def test_json_of_another_type(tmp_path: Path, text: str | bytes, message: str) -> None:
    data = text if isinstance(text, bytes) else text.encode()
    with pytest.raises(ValueError, match=message):
        parse_json(data, Sizes)
    path = tmp_path / "sizes.json"
    path.write_bytes(data)
    with pytest.raises(UserError, match=rf"sizes\.json: not a list of sizes .*{message}") as error:
        read_json(path, Sizes, "a list of sizes")
    assert "\n" not in str(error.value)


def test_json_of_the_type(tmp_path: Path) -> None:
    for mark in ("", "\ufeff"):
        (tmp_path / "a.json").write_text(mark + '{"sizes": {"words": 3}, "more": 1}', "utf-8")
        (tmp_path / "a.yaml").write_text(mark + "sizes: {words: 3}", "utf-8")
        assert read_yaml(tmp_path / "a.yaml") == {"sizes": {"words": 3}}
    assert read_json(tmp_path / "a.json", Sizes, "").sizes == {"words": 3}
    with pytest.raises(UserError, match=r"b\.json: cannot be read"):
        read_json(tmp_path / "b.json", Sizes, "")
