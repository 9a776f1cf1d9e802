"""Files of text or rows are opened and decoded in one way, whoever wrote them."""

import gzip
import io
import os
import tarfile
from pathlib import Path

import pyarrow as pa
import pytest

from paraloom.models.errors import UserError
from paraloom.models.nmt.families.subwords import open_subwords
from paraloom.models.text.files import (
    csv_delimiter,
    csv_rows,
    is_text,
    json_object,
    opened,
    text_array,
)
from tests.run_helpers import refuses

TEXT = "kočka\tcat 🐈\r\n" * 40_000
"""Longer than a block in every encoding."""


def read(path: Path) -> bytes:
    with opened(path) as stream:
        return stream.read()


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-be", "utf-16-le", "utf-32-be", "utf-32-le"])
def test_a_mark_says_the_encoding(tmp_path: Path, encoding: str) -> None:
    data = f"\ufeff{TEXT}".encode(encoding)
    for stored in (data, gzip.compress(data)):
        (tmp_path / "a").write_bytes(stored)
        assert read(tmp_path / "a") == TEXT.encode()
    (tmp_path / "a").write_bytes(data[:-1])
    if encoding != "utf-8":
        with refuses(rf"a: truncated or corrupt {encoding[:6].upper()} .*again$"):
            read(tmp_path / "a")


def test_a_lone_surrogate_of_utf_16_is_invalid_utf_8_in_its_row(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"\xff\xfe" + "a\n".encode("utf-16-le") + b"\x00\xd8\n\0b\0")
    first, second, third = read(tmp_path / "a").split(b"\n")
    assert (first, third) == (b"a", b"b")
    with pytest.raises(UnicodeDecodeError):
        second.decode()


def test_a_pipe_is_no_empty_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    descriptor = os.open(tmp_path / "pipe", os.O_RDWR)  # so that opening it does not wait
    with refuses("pipe: is a pipe, which cannot be read twice; give a file"):
        read(tmp_path / "pipe")
    os.close(descriptor)


def archive() -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as tar:
        tar.addfile(tarfile.TarInfo("train.en"))
    return data.getvalue()


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"PK\x03\x04", r"ZIP \(as XLSX and DOCX are, too\)"),
        (gzip.compress(b"PAR1"), "Parquet"),
        (b"ARROW1\0\0", "Arrow IPC"),
        (archive(), "a tar archive"),
    ],
)
def test_what_is_no_text_is_named(tmp_path: Path, data: bytes, kind: str) -> None:
    (tmp_path / "a").write_bytes(data)
    with pytest.raises(UserError, match=f"a: is {kind}; convert it to UTF-8 text"):
        read(tmp_path / "a")


@pytest.mark.parametrize("field", [b"NaN", b"1e999", b"-Infinity", b'"\\ud83d"', b'"\xe9"'])
def test_a_value_that_json_does_not_know_costs_no_row(field: bytes) -> None:
    record = json_object(b' {"text": "a dog", "further": ' + field + b"}\r")
    assert record is not None
    assert record["text"] == "a dog"


@pytest.mark.parametrize("line", [b"", b"a dog", b'["a dog"]', b'{"a": 1', b"[" * 100_000, b"NaN"])
def test_what_is_no_object(line: bytes) -> None:
    assert json_object(line) is None


def test_invalid_unicode_is_invalid_utf_8() -> None:
    texts = [json_object(line)["a"] for line in (b'{"a": "\\ud83d"}', b'{"a": "\xe9"}')]  # type: ignore[index]
    found = text_array(["kočka", None, *texts])
    assert found.type == pa.string()
    assert found[:2].to_pylist() == ["kočka", None]
    with pytest.raises(pa.ArrowInvalid):
        found.validate(full=True)


def test_types_of_text() -> None:
    texts = [pa.string(), pa.large_string(), pa.string_view()]
    texts += [pa.dictionary(pa.int32(), kind) for kind in texts]
    others = [pa.binary(), pa.binary_view(), pa.list_(pa.string()), pa.int64(), pa.null()]
    others += [pa.dictionary(pa.int32(), pa.binary()), pa.struct({"a": pa.string()})]
    assert [*map(is_text, texts + others)] == [True] * 6 + [False] * 7


def test_rows_of_csv_are_those_of_rfc_4180() -> None:
    text = 'a,b\r\n"1, ""2""","x\r\ny"\r\n\r\n"bad"x,\n,král\n'
    found = list(csv_rows(io.StringIO(text, newline=""), ","))
    numbers, rows, faults = zip(*found, strict=True)
    assert numbers == (1, 2, 5, 6)
    assert rows[:2] == (["a", "b"], ['1, "2"', "x\r\ny"])
    assert rows[2:] == (['"bad"x,'], ["", "král"])
    assert [*map(bool, faults)] == [False, False, True, False]
    assert [*csv_rows(["sep=;\n", "a;b\n"], ";")] == [(2, ["a", "b"], "")]
    ((*_, fault),) = csv_rows(['"a"b\tc'], "\t")
    assert fault == "no CSV ('tab' expected after '\"')"


def test_a_quote_that_is_not_closed_costs_one_row_of_csv() -> None:
    lines = ["a,b\n", '1,"x\n', "2,y\n", '"3",z\n', '4,"\n', "5,v\n", *["6,w\n"] * 40_000, '7,"\n']
    numbers, rows, faults = zip(*csv_rows(lines, ","), strict=True)
    assert numbers == tuple(range(1, len(lines) + 1))
    assert [",".join(row) for row in rows] == [line.strip().replace('"3"', "3") for line in lines]
    assert {number: fault for number, fault in zip(numbers, faults, strict=True) if fault} == {
        2: "no CSV (',' expected after '\"' in line 4)",
        5: "no CSV (field larger than field limit (131072) in line 32,773)",
        40_007: "no CSV (unexpected end of data)",
    }


@pytest.mark.parametrize(
    ("text", "delimiter"),
    [
        ("id,text\n1,a dog\n", ","),
        ("sentence 1;sentence 2\n\"a; b\";c, d, e\n", ";"),
        ('en,cs\n"a\nb",c', ","),
        ("en,cs,\na,b,\n", ","),
        ("yes,\nno,\n", None),
        ("en,,cs\na,,b\n", None),
        ("sep=;\r\nen;cs\r\n", ";"),
        ('"sep=\t"\nen\tcs\n', "\t"),
        ("Hello, world\nBye, all\n", None),  # sentences
        ("yes,no\nyes\n", None),
        ("id,text\n", None),
        ("1,2\n3,4\n", None),
        ("a,b\tc,d\n1,2\n", None),
        ('a,b\n"x"y,z\n', None),
        ("", None),
    ],
)  # fmt: skip
def test_what_is_csv(text: str, delimiter: str | None) -> None:
    assert csv_delimiter(text.encode()) == delimiter


@pytest.mark.parametrize("name", ["bpecodes", "sentencepiece.model", "tokenizer.json"])
def test_a_git_lfs_pointer_is_no_text(name: str, tmp_path: Path) -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:12\nsize 3\n"
    (tmp_path / name).write_text(pointer)
    with pytest.raises(UserError, match=f"{name}: is a Git LFS pointer, not the file itself; run"):
        open_subwords(tmp_path, [name])
    with pytest.raises(UserError, match="Git LFS pointer"), opened(tmp_path / name):
        pass
