"""Finding and opening bitext files, and what a user can get wrong about them."""

import bz2
import gzip
import hashlib
import io
import lzma
import random
import tarfile
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paraloom.beam_jobs import storage
from paraloom.beam_jobs.bitext import (
    READERS,
    Bitext,
    Layout,
    Paths,
    find_bitext,
    find_ranges,
    read_bitext,
    tmx,
)
from paraloom.beam_jobs.bitext.preview import preview
from paraloom.beam_jobs.storage import known_digest
from paraloom.models.errors import UserError
from tests.beam_jobs.bitext.test_bitext import made_id
from tests.beam_jobs.bitext.test_bitext_records import pairs, read, rejects
from tests.run_helpers import Patch

ROW = b"1\t1\ta\tb\n"
COMPRESSIONS: dict[str, Callable[[bytes], bytes]] = {
    "zstd": lambda data: bytes(pa.Codec("zstd").compress(data, asbytes=True)),
    "bzip2": bz2.compress,
    "xz": lzma.compress,
}


def count(bitexts: list[Bitext]) -> int:
    return sum(block.rows for bitext in bitexts for block in read_bitext(bitext))


def write(folder: Path, **files: bytes) -> None:
    for name, content in files.items():
        (folder / name).write_bytes(content)


def test_globs_are_sorted_and_a_file_is_taken_once(tmp_path: Path) -> None:
    write(tmp_path, **{"b": ROW, "a": ROW, "c.gz": ROW})
    (tmp_path / "folder").mkdir()
    found = find_bitext("czeng16", [str(tmp_path / "b"), str(tmp_path / "*")])
    names = ["b", "a", "c.gz"]
    assert [bitext.paths for bitext in found] == [(str(tmp_path / name),) for name in names]
    assert [bitext.name for bitext in found] == ["1-b", "2-a", "3-c"]


def test_moses_pairs_sorted_files_as_many_of_each_side(tmp_path: Path) -> None:
    write(tmp_path, **{f"{part}.{side}": b"x\n" for part in "ba" for side in ("cs", "en")})
    sides: Paths = {"source": str(tmp_path / "*.cs"), "reference": [str(tmp_path / "*.en")]}
    found = find_bitext("moses", sides)
    names = [[Path(path).name for path in bitext.paths] for bitext in found]
    assert names == [["a.cs", "a.en"], ["b.cs", "b.en"]]
    (tmp_path / "b.en").unlink()
    with pytest.raises(UserError, match=r"\*\.cs matches 2 files, and .*\*\.en\S* matches 1"):
        find_bitext("moses", sides)
    wrong: list[Paths] = [[str(tmp_path / "a.cs")], {"source": "a.cs"}]
    for paths in wrong:
        with pytest.raises(UserError, match=r"format moses needs \{source: …, reference: …\}"):
            find_bitext("moses", paths)


def test_a_name_with_a_wildcard_in_it_stands_for_itself(tmp_path: Path) -> None:
    write(tmp_path, **{"a[1] \udce9.tsv": b"a\tb\n", "a1.tsv": b"c\td\n"})
    (bitext,) = find_bitext("tsv", [str(tmp_path / "a[1] \udce9.tsv")])
    (block,) = read_bitext(bitext)
    assert block.pairs.to_pylist() == [{"id": made_id("a", "b"), "source": "a", "reference": "b"}]


def test_files_in_an_object_store(google_bucket: str) -> None:
    for name, data in (("a", ROW), ("b", gzip.compress(ROW * 2))):
        storage.write_bytes(f"{google_bucket}/{name}", data)
    assert count(find_bitext("czeng16", [f"{google_bucket}/*"])) == 3
    with pytest.raises(UserError, match=r"gs://.*/x\*: no file matches"):
        find_bitext("czeng16", [f"{google_bucket}/x*"])
    with pytest.raises(UserError, match=r"gs://.*/x: no such file"):
        find_bitext("czeng16", [f"{google_bucket}/x"])
    for path in ("unknown://a/b", "unknown://a/*"):
        with pytest.raises(UserError, match=r"unknown://a/b?: unknown file system unknown://"):
            find_bitext("czeng16", [path])


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("{}/none", "{}/none: no such file"),
        ("{}/*.none", r"{}/\*.none: no file matches"),
        ("{}", "{}: cannot be read"),
    ],
)
def test_wrong_paths(tmp_path: Path, path: str, message: str) -> None:
    with pytest.raises(UserError, match=message.format(tmp_path)) as error:
        find_bitext("czeng16", [path.format(tmp_path)])
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("format", sorted({*READERS} - {"moses"}))
def test_formats_without_sides_take_a_list(format: str) -> None:
    sides: Paths = {"source": "a", "reference": "a"}
    for paths in ([], sides):
        message = "needs a list, not source" if paths else "names no file"
        with pytest.raises(UserError, match=f"^input.paths: .*{message}"):
            find_bitext(format, paths)


def tar() -> bytes:
    """An archive of a text file."""
    out, text = io.BytesIO(), b"a\tb\n"
    with tarfile.open(fileobj=out, mode="w") as archive:
        member = tarfile.TarInfo("a.tsv")
        member.size = len(text)
        archive.addfile(member, io.BytesIO(text))
    return out.getvalue()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no rows"), (gzip.compress(b"", mtime=0), "no rows"), (b"\xef\xbb\xbf", "no rows"),
        (gzip.compress("\ufeff".encode("utf-16-be"), mtime=0), "no rows"),
        (b"PK\x03\x04", "is ZIP"), (tar(), "is a tar archive"),
        (gzip.compress(tar(), mtime=0), "is a tar archive"), (b"%PDF-1.7\n", "is PDF"),
        (b"\n<!DOCTYPE html>\n<html>", "is HTML"),
        (gzip.compress(b"<HTML lang='en'>\n<body>", mtime=0), "is HTML"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "is a file of Office"), (b"{\\rtf1 text}", "is RTF"),
        (b"7z\xbc\xaf\x27\x1c", "is a 7z archive"),
    ],
)  # fmt: skip
def test_an_empty_file_and_what_is_no_text(tmp_path: Path, content: bytes, message: str) -> None:
    write(tmp_path, a=content)
    with pytest.raises(UserError, match=f"a: {message}"):
        find_bitext("czeng16", [str(tmp_path / "a")])


@pytest.mark.parametrize(("kind", "compress"), COMPRESSIONS.items())
def test_other_compressions_are_known_by_content(
    tmp_path: Path, kind: str, compress: Callable[[bytes], bytes]
) -> None:
    text = b"".join(b"%d\t1\ta %d\tb\n" % (i, i) for i in range(3000))
    whole = compress(b"\xef\xbb\xbf" + text[:5000]) + compress(text[5000:])  # as cat makes them
    write(tmp_path, plain=text, packed=whole)
    plain, packed = (find_bitext("czeng16", [str(tmp_path / n)])[0] for n in ("plain", "packed"))
    expected = [block.pairs for block in read_bitext(plain)]
    packed = replace(packed, sha256=(hashlib.sha256(whole).hexdigest(),))
    assert [block.pairs for block in read_bitext(packed)] == expected
    (part,) = find_ranges(packed, 1000)
    assert part.lines == 3000
    assert [block.pairs for block in read_bitext(packed, part=part)] == expected
    seen = preview([packed], rows=10, max_characters=100)
    assert (seen.rows, seen.counted) == (3000, True)
    second = len(compress(b"\xef\xbb\xbf" + text[:5000]))
    for data in (whole[:-9], whole[: second + 8] + b"\xff" * 9 + whole[second + 17 :]):
        write(tmp_path, packed=data)
        with pytest.raises(UserError, match=f"packed: truncated or corrupt {kind} .*fetch the"):
            list(read_bitext(packed))


def test_gzip_is_known_by_content_and_may_have_members_and_padding(tmp_path: Path) -> None:
    packed = gzip.compress(ROW[:3]) + gzip.compress(ROW[3:] + ROW) + b"\0" * 512
    write(tmp_path, **{"a.gz": ROW, "b": packed})
    assert count(find_bitext("czeng16", [str(tmp_path / "*")])) == 3


def rows(n: int) -> bytes:
    digits = random.Random(1)
    return b"".join(b"%d\t1\t%d\tb\n" % (i, digits.getrandbits(99)) for i in range(n))


def test_truncated_or_corrupt_gzip_ends_the_run_wherever_it_is(tmp_path: Path) -> None:
    whole = gzip.compress(rows(1_000))
    damaged = [whole + b"no gzip"]
    for size in (3, 9, 12, len(whole) // 2, len(whole) - 9, len(whole) - 5, len(whole) - 1):
        damaged.append(whole[:size])
    for place in (len(whole) // 2, len(whole) - 6):  # the checksum
        damaged.append(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
    for content in damaged:
        write(tmp_path, a=content)
        with pytest.raises(UserError, match=r"a: truncated or corrupt gzip .*fetch the file again"):
            count(find_bitext("czeng16", [str(tmp_path / "a")]))


def test_a_line_without_an_end_does_not_fill_the_memory(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "a", "wb", compresslevel=1) as stream:
        stream.write(ROW)
        for _ in range(64):
            stream.write(b"x" * (1 << 20))
    (bitext,) = find_bitext("czeng16", [str(tmp_path / "a")])
    tracemalloc.start()
    (block,) = read_bitext(bitext)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert block.rejected["reason"].to_pylist() == ["line longer than 25,000 bytes"]
    assert block.pairs.num_rows == 1
    assert peak < 16 << 20


PARQUET = io.BytesIO()
pq.write_table(pa.table({"source": ["a"], "reference": ["b"]}), PARQUET)
EMPTY = io.BytesIO()
pq.write_table(pa.table({"source": pa.nulls(0), "reference": pa.array([], pa.string())}), EMPTY)
TMX = b"<tmx><body>%s</body></tmx>"
UNIT = b'<tu><tuv xml:lang="cs"><seg>a</seg></tuv><tuv xml:lang="en"><seg>b</seg></tuv></tu>'
SHARDS = [
    ("parquet", PARQUET.getvalue(), EMPTY.getvalue()),
    ("jsonl", b'{"source": "a", "reference": "b"}', b""),
    ("jsonl", b'{"source": "a", "reference": "b"}', gzip.compress(b"")),
    ("jsonl", b'{"source": "a", "reference": "b"}', b"\n \n"),
    ("csv", b"source,reference\na,b\n", b"source,reference\n"),
    ("csv", b"source,reference\na,b\n", b"\n\n"),
    ("tmx", TMX % UNIT, TMX % b""),
    ("tsv", b"a\tb\n", b""),
]


@pytest.mark.parametrize(("form", "some", "none"), SHARDS)
def test_some_shards_may_be_empty(tmp_path: Path, form: str, some: bytes, none: bytes) -> None:
    paths = [str(tmp_path / name) for name in "abc"]
    for path, content in zip(paths, (none, some, none), strict=True):
        Path(path).write_bytes(content)
    (bitext,) = find_bitext(form, paths)
    assert (bitext.paths, bitext.name) == ((paths[1],), "2-b")
    assert [block.pairs["source"].to_pylist() for block in read_bitext(bitext)] == [["a"]]
    with pytest.raises(UserError, match=r"/c: no rows, the file is empty"):
        find_bitext(form, [paths[0], paths[2]])


def test_both_files_of_a_moses_pair_may_be_empty(tmp_path: Path) -> None:
    for name, content in (("a", ""), ("b", "x\n"), ("c", "")):
        (tmp_path / f"{name}.cs").write_text(content)
        (tmp_path / f"{name}.en").write_text(content)

    def found(names: str) -> list[str]:
        paths = f"{tmp_path}/[{names}]"
        sides: Paths = {"source": f"{paths}.cs", "reference": f"{paths}.en"}
        return [bitext.name for bitext in find_bitext("moses", sides)]

    assert found("abc") == ["2-b.cs"]
    with pytest.raises(UserError, match=r"/c.cs: no rows, the file is empty"):
        found("ac")
    for longer, empty in (("cs", "en"), ("en", "cs")):
        (tmp_path / f"c.{longer}").write_text("x\n")
        (tmp_path / f"c.{empty}").write_text("")
        with pytest.raises(UserError, match=rf"/c.{empty}: no rows, the file is empty"):
            found("bc")


SEGMENTS = [
    ("a<bpt i='1'>&lt;b></bpt>b<ept i='1'/> c", "ab c"),
    ("<hi>a</hi> b<ph>x<sub>y</sub></ph>", "a b"),
    ("<![CDATA[a < b]]> &#233;&amp;", "a < b é&"),
    ("\n\t\ta\n\t\tb\r\n\t", "a b"),
    ("a&#10;b&#9;c &#xA;&#xD; d", "a b c d"),
    ("a  b", "a  b"),
    ("a<ph>\n</ph>b", "ab"),
    ("<![CDATA[</seg></tu><tu>]]>a<!-- </tu><tu> -->", "</seg></tu><tu>a"),
]


def unit(source: str = "a", reference: str = "b", more: str = "") -> str:
    tuvs = (
        f'<tuv xml:lang="{of}"><seg>{s}</seg></tuv>'
        for of, s in (("cs", source), ("en", reference))
    )
    return f"<tu{more}>{''.join(tuvs)}</tu>"


def text(*units: str, head: str = "") -> str:
    body = "\n".join(units)
    return f"{head}<tmx><header/><body>{body}</body></tmx>"


def found(path: Path, content: str | bytes) -> tuple[list[str], list[tuple[int, str]]]:
    """The sources of pairs, and the rows that are rejected, with the reason."""
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    blocks = read(find_bitext("tmx", [str(path)])[0], 4)
    return [row["source"] for row in pairs(blocks)], [(n, why) for _, n, why in rejects(blocks)]


@pytest.mark.parametrize(("segment", "expected"), SEGMENTS)
def test_segments_are_read_without_codes(tmp_path: Path, segment: str, expected: str) -> None:
    path = tmp_path / "a.tmx"
    tuvs = f'<tuv xml:lang="cs"><seg>{segment}</seg></tuv><tuv lang="EN"><seg>b</seg></tuv>'
    again = '<tuv xml:lang="cs"><seg>second</seg></tuv>'
    path.write_text(text(f"<tu>{tuvs}{again}</tu>"), "utf-8")
    (row,) = pairs(read(find_bitext("tmx", [str(path)])[0]))
    assert row == {"id": made_id(expected, "b"), "source": expected, "reference": "b"}


def test_a_file_with_line_feeds_everywhere(tmp_path: Path) -> None:
    pretty = """<tmx version="1.4">
      <body>
        <tu
          tuid="u1"
        ><prop type="domain">
            the web
          </prop><tuv
            xml:lang="cs">
            <seg>
              dlouhá
              věta
            </seg></tuv
          ><tuv xml:lang="en"><seg>a long
            sentence</seg></tuv></tu
        >
      </body>
    </tmx>"""
    path = tmp_path / "a.tmx"
    path.write_text(pretty, "utf-8")
    (bitext,) = find_bitext("tmx", [str(path)], Layout(columns={"id": "tuid"}, keep=("domain",)))
    row = {"id": "u1", "source": "dlouhá věta", "reference": "a long sentence"}
    assert pairs(read(bitext)) == [{**row, "domain": " the web "}]
    seen = preview([bitext], rows=20, max_characters=60)
    assert (seen.rows, seen.counted) == (1, True)


def test_long_runs_of_spaces_take_no_time(tmp_path: Path) -> None:
    _, rejected = found(tmp_path / "a.tmx", text(unit(), unit("a" + " " * 1_000_000 + "b")))
    assert rejected == [(2, "source longer than 60 characters")]


DECLARED = "<?xml version='1.0' encoding=\"{}\" ?>\n"
BROKEN = {
    "a segment without end": (unit().replace("</seg>", "", 1), "mismatched tag"),
    "a side without end": (unit().replace("</tuv>", "", 1), "mismatched tag"),
    "a unit without end": (unit().replace("</tu>", ""), ""),
    "a unit without beginning": (unit().replace("<tu>", ""), ""),
    "a unit in a unit": (unit("<tu>x"), ""),
    "a bare &": (unit("a & b"), "not well-formed (invalid token)"),
    "a bare <": (unit("a < b"), "not well-formed (invalid token)"),
    "an entity of HTML": (unit("a&nbsp;b"), "undefined entity"),
    "no character": (unit("&#0;"), "reference to invalid character number"),
    "a surrogate": (unit("&#xD800;"), "reference to invalid character number"),
    "a control": (unit("a\x01b"), "not well-formed (invalid token)"),
    "an attribute without quotes": (unit(more=" id=1"), "not well-formed (invalid token)"),
    "a quotation mark too few": (unit(more=' id="1'), "not well-formed (invalid token)"),
    "an attribute twice": (unit(more=" a='1' a='2'"), "duplicate attribute"),
    "a prefix too many": (unit("]]>"), "not well-formed (invalid token)"),
}  # fmt: skip


@pytest.mark.parametrize("kind", BROKEN)
@pytest.mark.parametrize("chunk", [1 << 20, 7])
def test_a_broken_unit_is_rejected_and_the_next_is_read(
    tmp_path: Path, monkeypatch: Patch, kind: str, chunk: int
) -> None:
    monkeypatch.setattr(tmx, "CHUNK", chunk)
    broken, why = BROKEN[kind]
    units = [unit("one"), broken, unit("two"), broken, broken, unit("three"), broken]
    doctype = '<?xml version="1.0"?><!DOCTYPE tmx SYSTEM "tmx14.dtd">'
    for head in ("", doctype):
        sources, rejected = found(tmp_path / "a.tmx", text(*units, head=head))
        assert sources == ["one", "two", "three"]
        two = kind == "a unit in a unit"
        assert [n for n, _ in rejected] == ([2, 3, 5, 6, 7, 8, 10, 11] if two else [2, 4, 5, 7])
        assert all(said.startswith(f"invalid XML ({why}") for _, said in rejected)


@pytest.mark.parametrize(("codec", "wrong"), [("utf-8", b"\xc3("), ("cp1250", b"x\x81")])
def test_bytes_of_no_character_are_a_fault_of_their_unit(
    tmp_path: Path, codec: str, wrong: bytes
) -> None:
    content = text(unit("a"), unit("xx"), unit("č"), head=DECLARED.format(codec))
    found_here = found(tmp_path / "a.tmx", content.encode(codec).replace(b"xx", wrong))
    assert found_here == (["a", "č"], [(2, "invalid XML (not well-formed (invalid token))")])


ENTITIES = '<!DOCTYPE tmx [<!ENTITY x SYSTEM "/etc/passwd">]>'
NONE = "<!-- <tu> --><tmx><body></body></tmx>"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (text(unit("&x;"), head=ENTITIES), "declares XML entities"),
        (text(unit(), head=f"{ENTITIES}<!-- -->"), "declares XML entities"),
        (text(unit(), head=ENTITIES).encode("utf-16"), "declares XML entities"),
        (text(unit("x" * 5000)) [:4000], r"a\.tmx: truncated after unit 0, or not TMX"),
        (text(unit())[:-1], r"a\.tmx: truncated after unit 1, or not TMX"),
        (text(unit(), unit())[:-20], r"a\.tmx: truncated after unit 1, or not TMX"),
        (text(unit(), unit("a & b"))[:-13], r"truncated after unit 2, or not TMX"),
        (text(unit(), "<!-- " + unit()), r"truncated after unit 1, or not TMX"),
        (text(unit(), unit("<![CDATA[")), r"truncated after unit 1, or not TMX"),
        ("a\tb\n", r"truncated after unit 0, or not TMX \(no </tmx>\)"),
        (text(unit()).replace("cs", "de"),
         r"first rows have no xml:lang=cs, only xml:lang=de, xml:lang=en; name the langu"),
        ("<?xml version='1.0' encoding='klingon'?>" + text(unit()), "unknown encoding klingon; c"),
        ("<?xml version='1.0' encoding='hex'?>" + text(unit()), "unknown encoding hex; convert"),
        (text(unit("é")).encode("utf-16")[:-1], r"truncated or corrupt UTF-16 "),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_read(tmp_path: Path, content: str | bytes, message: str) -> None:
    with pytest.raises(UserError, match=message) as error:
        found(tmp_path / "a.tmx", content)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("codec", "name"),
    [
        ("utf-16", "UTF-16"), ("utf-16", None), ("utf-8-sig", "utf-8"), ("utf-32", "utf-32"),
        ("utf-16-le", "UTF-16"), ("utf-16-be", "utf-16"), ("latin-1", "ISO-8859-1"),
        ("cp1250", "windows-1250"), ("gb18030", "GB18030"), ("shift_jis", "Shift_JIS"),
        ("koi8-r", "KOI8-R"), ("utf-8", "UTF-8"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_encodings_that_xml_names(tmp_path: Path, codec: str, name: str | None, pack: Any) -> None:
    word = {"latin-1": "Blåbær", "koi8-r": "Мир", "gb18030": "你好", "shift_jis": "日本"}
    sentence = word.get(codec, "žluťoučký")
    content = text(unit(sentence), unit("a & b"), head=DECLARED.format(name) if name else "")
    sources, rejected = found(tmp_path / "a.tmx", pack(content.encode(codec)))
    assert sources == [sentence]
    assert rejected == [(2, "invalid XML (not well-formed (invalid token))")]


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize("codec", ["utf-8", "utf-16"])
@pytest.mark.parametrize("form", ["tmx", "csv"])
def test_a_changed_file_is_noticed(tmp_path: Path, pack: Any, codec: str, form: str) -> None:
    before = text(unit("pes")) if form == "tmx" else "source,reference\npes,b\n"
    path = tmp_path / f"a.{form}"
    path.write_bytes(pack(before.encode(codec)))
    (bitext,) = find_bitext(form, [str(path)])
    bitext = replace(bitext, sha256=(known_digest(str(path)),))
    assert len(pairs(read(bitext))) == 1
    path.write_bytes(pack(before.replace("pes", "new").encode(codec)))
    with pytest.raises(UserError, match=rf"a\.{form}: changed while the run read it"):
        read(bitext)


def test_memory_does_not_grow_with_a_file(tmp_path: Path, monkeypatch: Patch) -> None:
    path = tmp_path / "a.tmx"
    path.write_text(text(*[unit("a " * 900), unit("& " * 900)] * 2_500), "utf-16")
    (bitext,) = find_bitext("tmx", [str(path)])
    tracemalloc.start()
    assert sum(block.rows for block in read_bitext(bitext, rows=100)) == 5_000
    assert tracemalloc.get_traced_memory()[1] < 8 << 20  # the text alone is 9
    tracemalloc.stop()
    monkeypatch.setattr(tmx, "LONGEST", 1 << 20)
    path.write_text(text(unit(), unit("x" * (1 << 22))))
    with pytest.raises(UserError, match="truncated after unit 1, or not TMX"):
        list(read_bitext(bitext, rows=1000))
