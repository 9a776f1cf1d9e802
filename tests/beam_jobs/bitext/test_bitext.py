"""Reading bitext: nothing is lost, what is sound comes back as it was; what its beginnings say."""

import gzip
import re
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paraloom.beam_jobs.bitext import (
    Bitext,
    Format,
    Paths,
    Range,
    RowBlock,
    find_bitext,
    find_ranges,
    preview,
    read_bitext,
)
from paraloom.beam_jobs.bitext import lines as lines_module
from paraloom.beam_jobs.bitext.preview import BitextPreview
from paraloom.beam_jobs.bitext.rows import RawRows, checked
from paraloom.beam_jobs.engine.schema import INGEST, INGEST_REJECTED
from paraloom.beam_jobs.transforms.equal_texts import content_ids
from paraloom.models.errors import UserError
from tests.run_helpers import Patch

One = Callable[[Format, bytes], Bitext]

Pairs = list[tuple[str, str, str]]
Rejected = list[tuple[str, int, str, str]]


def blocks_of(
    bitext: Bitext, rows: int = 10_000, max_characters: int = 2_000, part: Range | None = None
) -> list[RowBlock]:
    """The blocks of a bitext, each of which keeps its promises."""
    blocks = list(read_bitext(bitext, rows=rows, max_characters=max_characters, part=part))
    for block in blocks:
        block.pairs.validate(full=True)
        block.rejected.validate(full=True)
        assert block.rejected.schema == INGEST_REJECTED
        assert block.rows == block.pairs.num_rows + block.rejected.num_rows
        assert len(block.lines) == block.pairs.num_rows
        assert not {*block.lines.tolist()} & {*block.rejected["row"].to_pylist()}
    return blocks


def read(bitext: Bitext, rows: int = 10_000, max_characters: int = 2_000) -> tuple[Pairs, Rejected]:
    """The pairs and the rejected rows."""
    blocks = blocks_of(bitext, rows, max_characters)
    assert all(block.pairs.schema == INGEST for block in blocks)
    accepted = [row for block in blocks for row in tuples(block.pairs)]
    return accepted, [row for block in blocks for row in tuples(block.rejected)]


def made_id(source: str, reference: str) -> str:
    """The id of a pair without one."""
    return str(content_ids(*map(pa.array, ([source], [reference])))[0])


def tuples(batch: pa.RecordBatch) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in batch.columns), strict=True))


@pytest.fixture
def one(tmp_path: Path) -> Callable[[Format, bytes], Bitext]:
    """Write a file and find it."""

    def write(format: Format, content: bytes) -> Bitext:
        path = tmp_path / "corpus"
        path.write_bytes(content)
        return find_bitext(format, [str(path)])[0]

    return write


def moses(folder: Path, source: bytes, reference: bytes) -> Bitext:
    (folder / "a.cs").write_bytes(source)
    (folder / "a.en").write_bytes(reference)
    paths: Paths = {"source": str(folder / "a.cs"), "reference": str(folder / "a.en")}
    return find_bitext("moses", paths)[0]


def test_czeng20_knows_documents_by_their_empty_lines(one: One) -> None:
    row = "{}\t0.9\t1.0\t0.8\tAhoj {}.\tHello {}.\n"
    content = f"\n{row}{row}\n\r\n{row}\n".format(*"111222333")
    bitext = one("czeng20", content.encode())
    (block,) = read_bitext(bitext)
    assert block.rows == 3
    assert block.lines.tolist() == [2, 3, 6]
    assert tuples(block.pairs) == [(n, f"Ahoj {n}.", f"Hello {n}.") for n in "123"]
    assert [block.rows for block in read_bitext(bitext, rows=2)] == [1, 1, 1, 0]


def test_tsv_of_two_and_of_three_columns(one: One) -> None:
    pairs, rejected = read(one("tsv", b"a\tb\nc\td\te\n\ng\th"))
    assert pairs == [(made_id(*pair), *pair) for pair in ("ab", "gh")]
    assert rejected[0] == ("1-corpus:2", 2, "c\td\te", "3 columns instead of 2")
    assert rejected[1:] == [("1-corpus:3", 3, "", "empty line")]
    pairs, rejected = read(one("tsv", b"x\ta\tb\ny\tc\n"))
    assert pairs == [("x", "a", "b")]
    assert rejected == [("y", 2, "y\tc", "2 columns instead of 3")]


def test_plain_text(one: One) -> None:
    pairs, rejected = read(one("text", b"a b\n\nc\td\n"))
    assert pairs == [(made_id("", "a b"), "", "a b")]
    assert rejected[0][1:] == (2, "", "empty line") and len(rejected) == 2
    assert rejected[1][1:] == (3, "c\td", "control character U+0009 in reference")


@pytest.mark.parametrize(("line", "count"), [(b"a", "1 column;"), (b"1\t2\t3\t4", "4 columns;")])
def test_tsv_needs_a_first_line_to_go_by(one: One, line: bytes, count: str) -> None:
    with pytest.raises(UserError, match=f"corpus: the first line has {count} tsv needs columns"):
        read(one("tsv", line + b"\na\tb\n"))


@pytest.mark.parametrize(
    ("source", "reference", "reason"),
    [
        (b"x", b" \xc2\xa0", "empty reference"),
        (b"x", b"\xe2\x80", "invalid UTF-8 in reference"),
        (b"x\ty", b"x", "control character U+0009 in source"),
        (b"x", b"x" * 9_999, "line longer than 2,200 bytes"),
    ],
)
def test_a_rejected_moses_row_names_its_side(
    tmp_path: Path, source: bytes, reference: bytes, reason: str
) -> None:
    bitext = moses(tmp_path, b"a\n" + source + b"\nz\n", b"A\r\n" + reference + b"\r\nZ")
    pairs, rejected = read(bitext, max_characters=100)
    assert pairs == [(made_id(*pair), *pair) for pair in ("aA", "zZ")]
    assert [(id_, number, why) for id_, number, _, why in rejected] == [("1-a.cs:2", 2, reason)]


def test_moses_files_of_different_length_end_the_run(tmp_path: Path) -> None:
    bitext = moses(tmp_path, b"a\n" * 25, b"A\n" * 31)
    for rows in (5, 10, 100):
        with pytest.raises(UserError, match=r"a\.cs has 25 lines but .*a\.en has 31 lines"):
            find_ranges(bitext, rows)
        with pytest.raises(UserError, match=r"a\.cs and .*a\.en differ in length"):
            read(bitext, rows=rows)


BROKEN = {
    b"only": "1 column instead of 4",
    b"i\t1\ta\tb\t": "5 columns instead of 4",
    b"i\t1\ta\t \xe3\x80\x80": "empty reference",
    b" \t1\ta\tb": "empty id",
    b"\xff\t1\ta\tb": "invalid UTF-8 in id",
    b"i\t\xff\ta\tb": "invalid UTF-8 in score",
    b"i\t1\t\xed\xa0\x80\tb": "invalid UTF-8 in source",  # a surrogate
    b"i\t1\ta\tb\rc": "control character U+000D in reference",
    b"i\t1\ta\tb\xc2\x85": "control character U+0085 in reference",
    b"i\t1\t\xe2\x80\xa8a\tb": "line separator U+2028 in source",
    b"i\t1\t" + "č".encode() * 51 + b"\tb": "source longer than 50 characters",
    b"i\t1\ta\t" + b"b" * 51: "reference longer than 50 characters",
    b"i" * 51 + b"\t1\ta\tb": "id longer than 50 characters",
    b"i\t1\t" + b"a" * 5_000 + b"\tb": "line longer than 1,600 bytes",
    b"i\t" + b"1" * 1_600 + b"\ta\tb": "line longer than 1,600 bytes",
}


@pytest.mark.parametrize(("line", "reason"), BROKEN.items(), ids=BROKEN.values())
def test_a_broken_row_is_rejected_with_the_reason(one: One, line: bytes, reason: str) -> None:
    good = "g{}\t1\tPříliš\u00a0žluťoučký – „kůň“\tA “horse” … 🐎\n"
    content = good.format(1).encode() + line + b"\n" + good.format(2).encode()
    pairs, rejected = read(one("czeng16", content), max_characters=50)
    texts = "Příliš\u00a0žluťoučký – „kůň“", "A “horse” … 🐎"
    assert pairs == [("g1", *texts), ("g2", *texts)]
    ((id_, number, text, why),) = rejected
    assert (number, why) == (2, reason)
    assert id_ == ("i" if line.startswith(b"i\t") else "1-corpus:2")
    assert text == line.decode(errors="replace")[:1_000]


def test_the_limit_counts_characters_and_is_allowed_itself(one: One) -> None:
    line = f"{'i' * 20}\t{'1' * 999}\t {'🐎' * 20}\t{'č' * 20} "  # white space is removed first
    pairs, _ = read(one("czeng16", line.encode()), max_characters=20)
    assert pairs == [("i" * 20, "🐎" * 20, "č" * 20)]


def test_every_character_of_unicode() -> None:
    surrogates = range(0xD800, 0xE000)
    characters = [chr(c) for c in range(0x110000) if c not in surrogates]
    texts = pa.array([f"a{c}b".encode() for c in characters])
    columns = {"id": texts, "source": pa.array([c.encode() for c in characters])}
    numbers = np.arange(len(texts))
    rows = RawRows(columns={**columns, "reference": texts}, numbers=numbers)
    block = checked(Bitext(format="tsv", paths=(), name="x"), rows, 3)
    control = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
    sound = [n for n, c in enumerate(characters) if c.strip() and not control.match(c)]
    assert block.lines.tolist() == sound
    assert block.pairs["source"].to_pylist() == [characters[n] for n in sound]
    for why in block.rejected["reason"].to_pylist():
        assert re.match("control|line separator|empty source", why)


def test_blocks_depend_on_the_lines_alone(one: One) -> None:
    content = b"".join(b"%d\t1\ta%d\tb\n" % (n, n) for n in range(25))
    expected = [block.pairs for block in read_bitext(one("czeng16", content), rows=10)]
    assert [block.num_rows for block in expected] == [10, 10, 5]
    parts = [gzip.compress(content[:37]), gzip.compress(b""), gzip.compress(content[37:])]
    for same in (b"".join(parts), content.replace(b"\n", b"\r\n"), b"\xef\xbb\xbf" + content[:-1]):
        blocks: Sequence[RowBlock] = list(read_bitext(one("czeng16", same), rows=10))
        assert [block.pairs for block in blocks] == expected


FIELD = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), max_size=30)
NASTY = st.sampled_from(
    [b"\t", b"\n", b"\r", b"\r\n", b"\n\n", b" ", b"\0", b"\x7f", b"\xff", b"\xe2", b"\xc2\x85"]
) | st.sampled_from(
    [b"i\t1\ta\tb\n", "č\u00a0\u2028\u2029\ufeff".encode(), "č\u00a0–".encode(), b"x" * 21]
)
LINE = st.lists(FIELD, min_size=3, max_size=6).map(lambda row: "\t".join(row).encode() + b"\n")


def plainly(line: bytes, format: Format) -> tuple[str, ...] | None:
    """Id, source and reference by the rules, in one line of at most 20 characters each."""
    columns = line.decode(errors="surrogateescape").split("\t")
    if len(columns) != {"czeng16": 4, "czeng20": 6, "tsv": 3}[format]:
        return None
    if re.search("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]", "".join(columns)):
        return None
    used = [columns[i] for i in (0, -2, -1)]
    sound = all(text.strip() for text in used) and max(map(len, used)) <= 20
    return tuple(text.strip() for text in used) if sound and len(line) <= 1_240 else None


@given(
    st.lists(NASTY | LINE | st.binary(max_size=8), max_size=40).map(b"".join),
    st.sampled_from(["czeng16", "czeng20", "tsv"]),
    st.integers(1, 5),
)
def test_every_line_of_random_bytes_is_kept_or_rejected_by_the_rules(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, format: Format, size: int
) -> None:
    content = b"i\ta\tb\n" + content
    path = tmp_path_factory.mktemp("random") / "corpus"
    path.write_bytes(content)
    lines = [line.removesuffix(b"\r") for line in content.removesuffix(b"\n").split(b"\n")]
    (bitext,) = find_bitext(format, [str(path)])
    seen = {}
    for block in blocks_of(bitext, size, 20):
        sound = zip(block.lines.tolist(), tuples(block.pairs), strict=True)
        broken = ((row[1], row) for row in tuples(block.rejected))
        for number, row in [*sound, *broken]:
            assert number not in seen
            seen[number] = row
    rows = {n for n, line in enumerate(lines, start=1) if format != "czeng20" or line}
    assert set(seen) == rows
    for number, row in seen.items():
        line = lines[number - 1]
        wanted = plainly(line, format)
        assert row == wanted or (wanted is None and len(row) == 4)
        assert wanted or (row[2] == line.decode(errors="replace")[:1000] and row[3])


@given(st.lists(st.tuples(st.binary(max_size=8), st.binary(max_size=8)), min_size=1))
def test_every_pair_of_random_lines_is_accounted_for(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[bytes, bytes]]
) -> None:
    rows = [(a.translate(None, b"\r\n"), b.translate(None, b"\r\n")) for a, b in rows]
    rows = [(b"first", b"line"), *rows]
    folder = tmp_path_factory.mktemp("random")
    source, reference = (
        b"".join(text + b"\n" for text in side) for side in zip(*rows, strict=True)
    )
    blocks = blocks_of(moses(folder, source, reference), rows=3)
    pairs = [row for block in blocks for row in tuples(block.pairs)]
    lines = [number for block in blocks for number in block.lines.tolist()]
    others = [number for block in blocks for number in block.rejected["row"].to_pylist()]
    assert sorted(lines + others) == list(range(1, len(rows) + 1))
    for number, (id_, *sides) in zip(lines, pairs, strict=True):
        assert sides == [side.decode().strip() for side in rows[number - 1]]
        assert id_ == made_id(*sides)


def looked_at(paths: Paths) -> BitextPreview:
    return preview.preview(find_bitext("tsv", paths), rows=50, max_characters=100)


def lines(count: int, start: int = 0) -> str:
    return "".join(f"věta číslo {i}\tsentence number {i}\n" for i in range(start, start + count))


def members(text: bytes) -> bytes:
    """Gzip of two members."""
    return gzip.compress(text[:50]) + gzip.compress(text[50:])


@pytest.mark.parametrize("write", [bytes, members])
@pytest.mark.parametrize("end", ["\n", ""])
def test_small_files_are_counted(tmp_path: Path, write: Callable[[bytes], bytes], end: str) -> None:
    for name, count in (("a", 120), ("b", 7)):
        (tmp_path / name).write_bytes(write((lines(count).removesuffix("\n") + end).encode()))
    seen = looked_at([str(tmp_path / "?")])
    assert (seen.rows, seen.counted, seen.files, seen.rejected) == (127, True, 2, 0)
    assert len(seen.pairs) == 25 + 7  # as many of each file, where it has them
    assert seen.pairs["source"][25].as_py() == "věta číslo 0"


@pytest.mark.parametrize("write", [lambda text: text, gzip.compress], ids=["plain", "gzip"])
def test_large_files_are_estimated(
    tmp_path: Path, monkeypatch: Patch, write: Callable[[bytes], bytes]
) -> None:
    monkeypatch.setattr(lines_module, "_HEAD", 20_000)
    (tmp_path / "a").write_bytes(write(lines(50_000, 100_000).encode()))
    (tmp_path / "b").write_bytes(write(lines(20_000, 100_000).encode()))
    seen = looked_at([str(tmp_path / "?")])
    assert not seen.counted
    assert seen.rows == pytest.approx(70_000, rel=0.1)


def test_gzip_is_estimated_from_a_bounded_part(tmp_path: Path) -> None:
    text = b"a\tb\n" * 25_000_000
    (tmp_path / "a").write_bytes(gzip.compress(text))
    tracemalloc.start()
    try:
        seen = looked_at([str(tmp_path / "a")])
        assert tracemalloc.get_traced_memory()[1] < 80_000_000  # all of it: 100 MB and more
    finally:
        tracemalloc.stop()
    assert not seen.counted
    assert seen.rows == pytest.approx(25_000_000, rel=0.5)


def test_of_many_files_some_are_looked_into(tmp_path: Path, monkeypatch: Patch) -> None:
    monkeypatch.setattr(preview, "_FILES", 4)
    for i in range(10):
        (tmp_path / str(i)).write_text(lines(10, 100 * i + 1000), encoding="utf-8")
    seen = looked_at([str(tmp_path / "*")])
    assert (seen.files, seen.counted, seen.rows) == (4, False, 100)
    assert {int(text.split()[-1]) // 100 - 10 for text in seen.pairs["source"].to_pylist()} == {
        0, 2, 5, 7,
    }  # fmt: skip


def test_none_that_can_be_used_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a\t\nb\nc\t\n")
    with pytest.raises(UserError, match=r"a: none of the first 3 rows can be .* empty reference$"):
        looked_at([str(tmp_path / "a")])
    (tmp_path / "b").write_text("d\t\n")
    with pytest.raises(UserError, match=r"a and 1 other file\(s\): none of the first 4 rows can"):
        looked_at([str(tmp_path / "a"), str(tmp_path / "b")])


def test_small_inputs_have_small_shards(tmp_path: Path, monkeypatch: Patch) -> None:
    def step(*counts: int, write: Callable[[bytes], bytes] = bytes) -> int:
        for file, count in enumerate(counts):
            (tmp_path / f"{count}-{file}").write_bytes(write(lines(count).encode()))
        paths = [str(tmp_path / f"{count}-{file}") for file, count in enumerate(counts)]
        return preview.rows_per_shard(find_bitext("tsv", paths))

    assert step(1) == step(5_000) == step(30_000) == step(*[15_000] * 2) == 500
    assert step(30_001) == step(*[20_000] * 3) == 1_000
    monkeypatch.setattr(lines_module, "_HEAD", 20_000)  # estimated from here on
    assert step(150_000) == step(150_000, write=gzip.compress) == 2_000
    assert step(*[20_000] * 25) == 5_000
    assert step(*[150_000] * 8) == 10_000
