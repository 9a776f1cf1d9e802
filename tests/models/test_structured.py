"""YAML and JSON of others: one line for whatever is wrong, in bounded time and memory."""

import os
import time
from pathlib import Path

import pytest
from pydantic import BaseModel

from paraloom.models.errors import UserError
from paraloom.models.structured import LARGEST, parse_json, parse_yaml, read_json, read_yaml

BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{new}: &{new} [{','.join(9 * [f'*{old}'])}]\n"
    for old, new in zip("abcdefghijk", "bcdefghijkl", strict=True)
)
CHAIN = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 1000))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: " + "[" * 2000, "line 1: nested more than 50 levels deep"),
        ("a: " + "[" * 2000 + "]" * 2000, "line 1: nested more than 50 levels deep"),
        ("\n".join(" " * level + "a:" for level in range(200)), "line 51: nested more than 50"),
        (BOMB, "its aliases stand for more than"),
        (CHAIN, "nested more than 50 levels deep through aliases"),
        ("a: &a {<<: *a}", "an alias stands for a value that holds it"),
        ("a: &a [*a]", "an alias stands for a value that holds it"),
        ("x" * (LARGEST + 1), "longer than 1,048,576 characters"),
        ("a: !!bool maybe", "a value does not have the type"),
        ("a: !!timestamp x", "a value does not have the type"),
        ('a: !!int ""', "a value does not have the type"),
        ("a: " + "9" * 5000, "line 1: a number of more than 1000 characters"),
        ("a: 0x" + "f" * 5000, "line 1: a number of more than 1000 characters"),
        ("a: " + ":".join("1" * 500_000), "line 1: a number of more than 1000 characters"),
        ("a: 2001-13-01", "month must be in 1..12"),
        ("? [a]\n: b", "unhashable|duplicate|list"),
        ("a: b: c", "line 1: mapping values are not allowed here"),
        ("a: !!python/object:os.system {}", "could not determine a constructor"),
        ("a: \x07", "not YAML"),
    ],
)
def test_what_yaml_may_hold(text: str, message: str) -> None:
    began = time.process_time()
    with pytest.raises(UserError, match=message) as error:
        parse_yaml(text, "a.yaml")
    assert str(error.value).startswith("a.yaml: ") and "\n" not in str(error.value)
    assert time.process_time() - began < 2


def test_aliases_and_merges_are_yaml() -> None:
    text = "base: &base {a: 1, b: [2]}\nmore: {<<: *base, c: *base}"
    base = {"a": 1, "b": [2]}
    assert parse_yaml(text, "") == {"base": base, "more": {**base, "c": base}}
    assert parse_yaml("", "") is None


def test_powers_of_ten_are_numbers() -> None:
    found = parse_yaml("[1e-5, 2E3, -1.5e+2, 1.e4, e5, 1e, version 1e5]", "f.yaml")
    assert found == [1e-5, 2e3, -150.0, 1e4, "e5", "1e", "version 1e5"]


def test_a_file_without_end_is_not_read_to_its_end(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="/dev/zero: longer than"):
        read_yaml("/dev/zero")
    (tmp_path / "latin").write_bytes(b"a: \xe9")
    with pytest.raises(UserError, match=r"latin: cannot be read \(not UTF-8"):
        read_yaml(tmp_path / "latin")


class Sizes(BaseModel):
    sizes: dict[str, int]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "EOF"),
        ("[" * 100_000, "recursion limit"),
        ("{}", "sizes: Field required"),
        ('{"sizes": null}', "sizes: Input should be an object"),
        ('{"sizes": {"words": "many"}}', "sizes.words: "),
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
    (tmp_path / "a.json").write_text('{"sizes": {"words": 3}, "more": 1}')
    assert read_json(tmp_path / "a.json", Sizes, "").sizes == {"words": 3}
    with pytest.raises(UserError, match=r"b\.json: cannot be read"):
        read_json(tmp_path / "b.json", Sizes, "")
    os.mkfifo(tmp_path / "c.json")
    with pytest.raises(UserError, match=r"c\.json: cannot be read \(it is not a regular file\)"):
        read_json(tmp_path / "c.json", Sizes, "")
