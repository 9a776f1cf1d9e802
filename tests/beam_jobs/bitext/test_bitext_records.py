"""Parquet, JSON Lines, TMX and data sets give what Moses files of the same rows give."""

import bz2
import csv
import io
import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paraloom.beam_jobs.bitext import Bitext, Layout, Range, RowBlock, find_bitext, find_ranges
from paraloom.beam_jobs.bitext.preview import preview
from paraloom.beam_jobs.storage import known_digest
from paraloom.models.errors import UserError
from tests.beam_jobs.bitext.test_bitext import blocks_of, made_id

Row = dict[str, Any]
Write = Callable[[Path, list[Row]], Bitext]
NAMES = {"source": "translation.cs", "reference": "translation.en"}
LAYOUT = Layout(columns=NAMES, keep=("domain", "year", "checked"))


def rows(count: int = 50) -> list[Row]:
    """Rows of the Hub's form; some cannot be used."""
    found: list[Row] = [
        {
            "id": f"r{i}",
            "translation": {"cs": f" věta {i} ", "en": f"sentence {i}"},
            "domain": f"web & {i % 3}" if i % 4 else None,
            "year": 2000 + i,
            "checked": i % 2 == 0,
        }
        for i in range(count)
    ]
    faults = [(3, "cs", ""), (5, "en", "a\u0085b"), (7, "cs", None), (9, "en", "x" * 61)]
    for row, side, text in [*faults, (11, "cs", " \u2028")]:
        found[row]["translation"][side] = text
    return found


def write_moses(folder: Path, of: list[Row]) -> Bitext:
    paths = {}
    for side, code in (("source", "cs"), ("reference", "en")):
        path = folder / f"train.{code}"
        path.write_text("".join(f"{row['translation'][code] or ''}\n" for row in of), "utf-8")
        paths[side] = str(path)
    return find_bitext("moses", {**paths})[0]


def write_parquet(folder: Path, of: list[Row]) -> Bitext:
    path = folder / "train.cs.parquet"
    pq.write_table(pa.Table.from_pylist(of), path, row_group_size=7)
    return find_bitext("parquet", [str(path)], LAYOUT)[0]


def write_jsonl(folder: Path, of: list[Row]) -> Bitext:
    path = folder / "train.cs.jsonl"
    lines = [json.dumps(row, ensure_ascii=i % 2 == 0) for i, row in enumerate(of)]
    path.write_text("".join(f"{line}\r\n" for line in lines), "utf-8")
    return find_bitext("jsonl", [str(path)], LAYOUT)[0]


def write_tmx(folder: Path, of: list[Row], path: str = "train.cs.tmx") -> Bitext:
    units = []
    for row in of:
        attributes = f'tuid="{row["id"]}" year="{row["year"]}" checked="{row["checked"]}"'
        domain = row["domain"]
        prop = "" if domain is None else f'<prop type="domain">{escape(domain)}</prop>'
        sides = (
            f'<tuv xml:lang="{code}"><seg>{escape(row["translation"][name])}</seg></tuv>'
            for code, name in (("en-GB", "en"), ("CS", "cs"))
            if row["translation"][name] is not None
        )
        units.append(f"<tu {attributes}><note>n</note>{prop}\n{''.join(sides)}</tu>\n")
    (folder / path).write_text(
        f'<?xml version="1.0"?><!DOCTYPE tmx SYSTEM "tmx14.dtd"><tmx version="1.4"><header>'
        f'<prop type="domain">no</prop></header><body>{"".join(units)}</body></tmx>',
        "utf-8",
    )
    return find_bitext("tmx", [str(folder / path)], replace(LAYOUT, columns={}))[0]


def read(bitext: Bitext, size: int = 8, part: Range | None = None) -> list[RowBlock]:
    return blocks_of(bitext, size, 60, part)


def pairs(blocks: list[RowBlock]) -> list[Row]:
    return [row for block in blocks for row in block.pairs.to_pylist()]


def rejects(blocks: list[RowBlock]) -> list[tuple[str, int, str]]:
    found = [row for block in blocks for row in block.rejected.to_pylist()]
    return [(row["id"], row["row"], row["reason"]) for row in found]


WRITERS = [write_parquet, write_jsonl, write_tmx]


@pytest.mark.parametrize("write", WRITERS)
def test_the_rows_are_those_of_moses_files(tmp_path: Path, write: Write) -> None:
    expected = read(write_moses(tmp_path, rows()))
    bitext = write(tmp_path, rows())
    bitext = replace(bitext, sha256=(known_digest(bitext.paths[0]),))
    found = read(bitext)
    assert [block.rows for block in found] == [block.rows for block in expected] == [8] * 6 + [2]
    texts = ([(row["source"], row["reference"]) for row in pairs(of)] for of in (found, expected))
    assert next(texts) == next(texts)
    missing = ("r7", 8, "no source")  # Moses files have no null
    others = [(f"r{n - 1}", n, why) for _, n, why in rejects(expected) if n != 8]
    assert [r for r in rejects(found) if r != missing] == others
    assert missing in rejects(found)
    kept = {row["id"]: row for row in rows()}
    as_text = str if write is write_tmx else lambda value: value
    for row in pairs(found):
        of = kept[row["id"]]
        assert (row["domain"], row["year"], row["checked"]) == (
            of["domain"], as_text(of["year"]), as_text(of["checked"])
        )  # fmt: skip
    parts = find_ranges(bitext, 16)
    assert sum(part.lines for part in parts) >= 50
    of_parts = [block for part in parts for block in read(bitext, part=part)]
    assert [block.pairs for block in of_parts] == [block.pairs for block in found]
    assert rejects(of_parts) == rejects(found)
    assert [block.lines.tolist() for block in of_parts] == [b.lines.tolist() for b in found]
    seen = preview([bitext], rows=20, max_characters=60)
    assert (seen.rows, seen.counted) == (50, True)


@pytest.mark.parametrize("write", WRITERS)
def test_ids_of_the_file(tmp_path: Path, write: Write) -> None:
    format = write(tmp_path, rows()).format
    columns = {"id": "tuid"} if write is write_tmx else {**NAMES, "id": "id"}
    (path,) = (str(path) for path in tmp_path.iterdir())
    (bitext,) = find_bitext(format, [path], Layout(columns=columns))
    assert bitext.columns == ("id", "source", "reference")
    blocks = read(bitext)
    assert pairs(blocks)[0] == {"id": "r0", "source": "věta 0", "reference": "sentence 0"}
    assert [id for id, *_ in rejects(blocks)] == ["r3", "r5", "r7", "r9", "r11"]


def test_parquet_is_divided_at_row_groups(tmp_path: Path) -> None:
    bitext = write_parquet(tmp_path, rows())
    assert [part.before for part in find_ranges(bitext, 8)] == list(range(0, 50, 8))
    assert [part.before for part in find_ranges(bitext, 3)] == [0, 9, 15, 21, 30, 36, 42]
    pq.write_table(pa.Table.from_pylist(rows()), bitext.paths[0])
    assert [part.before for part in find_ranges(bitext, 8)] == [0]


def csv_of(path: Path, text: str, encoding: str = "utf-8", **layout: Any) -> Bitext:
    path.write_bytes(bz2.compress(text.encode(encoding, "surrogateescape")))
    (bitext,) = find_bitext("csv", [str(path)], Layout(**layout))
    return replace(bitext, sha256=(known_digest(str(path)),))


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_csv_gives_what_json_lines_give(tmp_path: Path, delimiter: str, encoding: str) -> None:
    of = rows()
    of[2]["domain"] = 'a, "b";\r\nc'
    of[13]["translation"]["cs"] = "two\nlines"
    paths, layout = list(write_jsonl(tmp_path, of).paths), Layout(columns={**NAMES, "id": "id"})
    (jsonl,) = find_bitext("jsonl", paths, layout)
    out = io.StringIO(newline="")
    writer = csv.writer(out, delimiter=delimiter)
    writer.writerow(["id", "domain", "Czech text", "en"])
    for row in of:
        writer.writerow([row["id"], row["domain"], *row["translation"].values()])
    columns = {"source": "Czech text", "reference": "en", "id": "id"}
    text = out.getvalue().replace("\r\nr20", "\r\n\r\nr20")  # an empty line
    found = csv_of(tmp_path / "a", text, encoding, columns=columns, keep=("domain",))
    blocks, expected = read(found), read(jsonl)
    assert [block.rows for block in blocks] == [block.rows for block in expected]
    plain = [{**row, "domain": ""} for row in pairs(expected)]
    assert [{**row, "domain": ""} for row in pairs(blocks)] == plain
    assert {row["id"]: row["domain"] for row in pairs(blocks)}["r2"] == of[2]["domain"]
    reasons = {id: reason for id, _, reason in rejects(blocks)}
    assert reasons == {id: why.replace("no s", "empty s") for id, _, why in rejects(expected)}
    assert reasons["r13"] == "control character U+000A in source"
    seen = preview([found], rows=20, max_characters=60)
    assert (seen.counted, seen.rows) == (True, 50)
    (part,) = find_ranges(found, 16)
    assert part.lines >= 50
    assert [block.pairs for block in read(found, part=part)] == [b.pairs for b in blocks]


def test_what_is_wrong_with_csv(tmp_path: Path) -> None:
    lines = ["source,reference", "a,b", "a", "a,b,c", '"a"x,b', '"a', '\udcff",b', "c,\udcff"]
    lines.append('d,"e')
    blocks = read(csv_of(tmp_path / "a", "\n".join(lines)))
    assert [row["id"] for row in pairs(blocks)] == [made_id("a", "b")]
    assert rejects(blocks) == [
        ("1-a:3", 3, "1 column instead of 2"), ("1-a:4", 4, "3 columns instead of 2"),
        ("1-a:5", 5, "no CSV (',' expected after '\"')"), ("1-a:6", 6, "invalid UTF-8 in source"),
        ("1-a:8", 8, "invalid UTF-8 in reference"), ("1-a:9", 9, "no CSV (unexpected end of data)"),
    ]  # fmt: skip
    shown = ["a", "a\tb\tc", '"a"x,b', "a\ufffd\tb", "c\t\ufffd", 'd,"e']
    assert [text for block in blocks for text in block.rejected["text"].to_pylist()] == shown
    for head, message in {
        "source,x": "the first rows have no reference, only source, x; name the columns in input",
        "source,source": "a: the column source occurs twice",
        '"source': "a: the first row must name the columns: no CSV \\(unexpected end of data",
    }.items():
        with pytest.raises(UserError, match=message):
            csv_of(tmp_path / "a", f"{head}\n" + "a,b\n" * ('"' not in head))


def test_rows_after_a_quote_that_is_not_closed_are_counted(tmp_path: Path) -> None:
    found = csv_of(tmp_path / "a", 'source,reference\n"a,b\n' + "c,d\n" * 30)
    seen = preview([found], rows=9, max_characters=60)
    assert (seen.counted, seen.rows) == (True, sum(block.rows for block in read(found)))


def test_a_column_that_occurs_twice(tmp_path: Path) -> None:
    names, path = ["source", "reference", "n", "n"], str(tmp_path / "a")
    pq.write_table(pa.Table.from_arrays([pa.array(["a"])] * 4, names), path)
    assert pairs(read(find_bitext("parquet", [path], Layout())[0]))
    with pytest.raises(UserError, match="a: the column n occurs twice"):
        find_bitext("parquet", [path], Layout(keep=("n",)))


def jsonl(folder: Path, *lines: bytes, keep: tuple[str, ...] = ()) -> list[RowBlock]:
    path = folder / "a.jsonl"
    path.write_bytes(b"\n".join(lines) + b"\n")
    return read(find_bitext("jsonl", [str(path)], Layout(columns={"id": "id"}, keep=keep))[0])


GOOD = b'{"id": 1, "source": "a", "reference": "b", "n": 1, "s": "x"}'


@pytest.mark.parametrize(
    "further",
    [b"NaN", b"-1e999", b'"\\ud800"', b'["\xff"]', b"[1e400, {}]", b"9" * 5000, b"1" + b"0" * 30],
)
def test_a_value_that_nobody_asks_for_costs_no_row(tmp_path: Path, further: bytes) -> None:
    line = b' {"id": 2, "source": "a", "reference": "b", "further": %s}' % further
    assert rejects(jsonl(tmp_path, b"\xef\xbb\xbf" + line, GOOD)) == []


@pytest.mark.parametrize(
    ("line", "id", "reason"),
    [
        (b'{"id": 2, "source": "a", "reference": ', "1-a:2", "no JSON object"),
        (b'["a", "b"]', "1-a:2", "no JSON object"),
        (b'{"id": 2, "source": "\\ud800", "reference": "b"}', "2", "invalid UTF-8 in source"),
        (b'{"id": 2, "source": "a", "reference": "\xff"}', "2", "invalid UTF-8 in reference"),
        (b'{"id": 2, "source": "a", "reference": "b", "s": "\xff"}', "2", "invalid UTF-8 in s"),
        (b"[" * 3000, "1-a:2", "no JSON object"),
        (b'{"id": 2, "source": 7, "reference": "b"}', "2", "source is not of type string"),
        (b'{"id": 2, "source": "a"}', "2", "no reference"),
        (b'{"id": " ", "source": "a", "reference": "b"}', "1-a:2", "empty id"),
        (b'{"id": 2, "source": "a", "reference": "b", "n": 9223372036854775808}', "2",
         "n is not of type int64"),
        (b'{"id": 2, "source": "a", "reference": "b", "s": "' + b"y" * 61 + b'"}', "2",
         "s longer than 60 characters"),
        (b'{"id": 2, "source": "' + b"y" * 40_000 + b'"}', "1-a:2",
         "line longer than 32,160 bytes"),
    ],
)  # fmt: skip
def test_a_broken_line_has_its_reason(tmp_path: Path, line: bytes, id: str, reason: str) -> None:
    blocks = jsonl(tmp_path, GOOD, line, b"", GOOD.replace(b"1", b"3"), keep=("n", "s"))
    assert rejects(blocks) == [(id, 2, reason)]
    assert [row["id"] for row in pairs(blocks)] == ["1", "3"]
    assert blocks[0].lines.tolist() == [1, 4]
    text = blocks[0].rejected["text"][0].as_py()
    assert line.decode(errors="replace").startswith(text) and len(text) <= 1000


NOT = {name: f"n is not of type {name}" for name in ("int64", "double")}


@pytest.mark.parametrize(
    ("first", "value", "found"),
    [
        (b"1", b"9223372036854775807", 2**63 - 1), (b"1", b"-9223372036854775808", -(2**63)),
        (b"1", b"9223372036854775808", NOT["int64"]), (b"1", b"1e999", NOT["int64"]),
        (b"1", b"-9223372036854775809", NOT["int64"]),
        (b"1", b"99999999999999999999999", NOT["int64"]), (b"1", b"[1]", NOT["int64"]),
        (b"0.5", b"9007199254740992", 2.0**53), (b"0.5", b"9007199254740993", NOT["double"]),
        (b"0.5", b"18446744073709551616", 2.0**64),
        (b"0.5", b"18446744073709551617", NOT["double"]), (b"0.5", b"-1e400", NOT["double"]),
        (b"0.5", b"9" * 5000, NOT["double"]), (b"0.5", b"-Infinity", -math.inf),
        (b"0.5", b'"\\ud800"', NOT["double"]), (b'"x"', b'"\\ud800"', "invalid UTF-8 in n"),
        (b"null", b"9007199254740993", 2**53 + 1), (b"1e999", b"7", 7), (b"{}", b"7", 7),
    ],
)  # fmt: skip
def test_no_number_changes(tmp_path: Path, first: bytes, value: bytes, found: object) -> None:
    lines = [GOOD.replace(b'"n": 1', b'"n": ' + of) for of in (first, value)]
    blocks = jsonl(tmp_path, *lines, keep=("n",))
    last = {n: why for _, n, why in rejects(blocks)}.get(2) or pairs(blocks)[-1]["n"]
    assert (last, type(last)) == (found, type(found))


def test_numbers_may_be_of_both_kinds(tmp_path: Path) -> None:
    lines = GOOD, GOOD.replace(b'"n": 1', b'"n": 0.5'), GOOD.replace(b'"n": 1', b'"n": null')
    assert [row["n"] for row in pairs(jsonl(tmp_path, *lines, keep=("n",)))] == [1.0, 0.5, None]


@pytest.mark.parametrize(
    ("columns", "keep", "message"),
    [
        ({"source": "nothing"}, (), r"have no nothing, only id, .* checked; name the columns in"),
        ({"source": "year"}, (), r"year has values of type int"),
        ({}, ("translation",), r"translation(: no text or number| has values of type dict)"),
        ({}, ("genre",), r"input\.keep: genre: no text or number in the first rows of .*train"),
    ],
)
@pytest.mark.parametrize("write", [write_parquet, write_jsonl])
def test_wrong_columns_are_one_line(
    tmp_path: Path, write: Write, columns: dict[str, str], keep: tuple[str, ...], message: str
) -> None:
    bitext = write(tmp_path, rows())
    layout = Layout(columns={**NAMES, **columns}, keep=keep)
    with pytest.raises(UserError, match=message) as error:
        find_bitext(bitext.format, list(bitext.paths), layout)
    assert bitext.paths[0] in str(error.value) and "\n" not in str(error.value)


def test_kept_columns_have_one_type(tmp_path: Path) -> None:
    for name, value in (("a", 1), ("b", 0.5), ("c", "x"), ("d", None)):
        table = pa.table({"source": ["a"], "reference": ["b"], "n": [value]})
        pq.write_table(table, tmp_path / name)

    def kept(*names: str) -> pa.DataType:
        paths = [str(tmp_path / name) for name in names]
        found = find_bitext("parquet", paths, Layout(keep=("n",)))
        assert len({bitext.kept.field("n").type for bitext in found}) == 1
        return found[0].kept.field("n").type

    assert (kept("a", "d"), kept("d", "c")) == (pa.int64(), pa.string())
    assert kept("a", "b") == pa.float64()
    pq.write_table(pa.table({"source": ["a"], "reference": ["b"]}), tmp_path / "e")
    first, last = find_bitext("parquet", [str(tmp_path / n) for n in "ae"], Layout(keep=("n",)))
    assert [pairs(read(of))[0]["n"] for of in (first, last)] == [1, None]
    with pytest.raises(UserError, match=r"keep: .* n has incompatible types: int64 vs string"):
        kept("a", "d", "c")
    with pytest.raises(UserError, match=r"keep: n: no text or number in the first rows of .*d"):
        kept("d")


def test_parquet_that_is_damaged_or_changes(tmp_path: Path) -> None:
    rows_ = [{"source": f"{i} " * 20, "reference": "b"} for i in range(4000)]
    path = tmp_path / "a.parquet"
    pq.write_table(pa.Table.from_pylist(rows_), path, row_group_size=1000)
    (bitext,) = find_bitext("parquet", [str(path)])
    whole = path.read_bytes()
    bitext = replace(bitext, sha256=(known_digest(str(path)),))
    path.write_bytes(whole[:-100])
    with pytest.raises(UserError, match=r"a\.parquet: truncated or corrupt"):
        find_bitext("parquet", [str(path)])
    middle = len(whole) // 2
    path.write_bytes(whole[:middle] + b"\xff" * 400 + whole[middle + 400 :])
    with pytest.raises(UserError, match=r"a\.parquet: (damaged after row [123],000|changed while)"):
        read(bitext, 1000)
    rows_[3]["source"] = "new"
    pq.write_table(pa.Table.from_pylist(rows_), path, row_group_size=1000)
    with pytest.raises(UserError, match=r"a\.parquet: changed while the run read it"):
        read(bitext, 1000)


def test_columns_of_lines_may_be_kept(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"r1\t0.9\ta\tb\nr2\t\tc\td\n")
    (bitext,) = find_bitext("czeng16", [str(path)], Layout(keep=("score",)))
    assert [row["score"] for row in pairs(read(bitext))] == ["0.9", ""]
    with pytest.raises(UserError, match="no column domain to keep; further columns: score"):
        find_bitext("czeng16", [str(path)], Layout(keep=("domain",)))
