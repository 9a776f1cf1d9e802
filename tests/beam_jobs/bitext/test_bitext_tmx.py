"""TMX as tools write it, and as it comes damaged."""

import gzip
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from paraloom.beam_jobs.bitext import Layout, find_bitext, read_bitext, tmx
from paraloom.beam_jobs.bitext.preview import preview
from paraloom.beam_jobs.storage.digests import file_digest
from paraloom.models.errors import UserError
from tests.beam_jobs.bitext.test_bitext_records import pairs, read, rejects
from tests.run_helpers import Patch

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
    return (
        f'<tu{more}><tuv xml:lang="cs"><seg>{source}</seg></tuv>'
        f'<tuv xml:lang="en"><seg>{reference}</seg></tuv></tu>'
    )


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
    assert row == {"id": "1-a:1", "source": expected, "reference": "b"}


def test_a_file_with_line_feeds_everywhere(tmp_path: Path) -> None:
    pretty = """<tmx version="1.4">
      <body>
        <tu
          tuid="u1"
        >
          <prop type="domain">
            the web
          </prop>
          <tuv
            xml:lang="cs">
            <seg>
              dlouhá
              věta
            </seg>
          </tuv>
          <tuv xml:lang="en"><seg>a long
            sentence</seg></tuv
          >
        </tu
        >
      </body>
    </tmx>
    """
    path = tmp_path / "a.tmx"
    path.write_text(pretty, "utf-8")
    (bitext,) = find_bitext("tmx", [str(path)], Layout(columns={"id": "tuid"}, keep=("domain",)))
    row = {"id": "u1", "source": "dlouhá věta", "reference": "a long sentence"}
    assert pairs(read(bitext)) == [{**row, "domain": " the web "}]
    seen = preview([bitext], rows=20, max_characters=60)
    assert (seen.rows, seen.counted) == (1, True)


@pytest.mark.parametrize(
    ("character", "name"),
    [("\x85", "U+0085"), ("\u2028", "U+2028"), ("\x7f", "U+007F"), ("&#133;", "U+0085")],
)
def test_control_characters_are_rejected(tmp_path: Path, character: str, name: str) -> None:
    sources, rejected = found(tmp_path / "a.tmx", text(unit(f"a{character}b"), unit("c")))
    assert sources == ["c"]
    assert [(n, name in why, "in source" in why) for n, why in rejected] == [(1, True, True)]


def test_long_runs_of_spaces_take_no_time(tmp_path: Path) -> None:
    _, rejected = found(tmp_path / "a.tmx", text(unit(), unit("a" + " " * 1_000_000 + "b")))
    assert rejected == [(2, "source longer than 60 characters")]


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
        assert all(said.startswith(f"no XML ({why}") for _, said in rejected)


def test_invalid_utf_8_is_a_fault_of_its_unit(tmp_path: Path) -> None:
    content = text(unit("a"), unit("xx"), unit("c")).encode().replace(b"xx", b"\xc3(")
    assert found(tmp_path / "a.tmx", content) == (
        ["a", "c"], [(2, "no XML (not well-formed (invalid token))")]
    )  # fmt: skip


def test_what_was_read_of_a_broken_unit_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "a.tmx"
    path.write_text(text(unit(), unit("good", "a & b", ' tuid="u2"')))
    (bitext,) = find_bitext("tmx", [str(path)], Layout(columns={"id": "tuid"}))
    (block,) = read(bitext)
    assert block.rejected.to_pylist()[1] == {
        "id": "u2", "row": 2, "text": "good\t",
        "reason": "no XML (not well-formed (invalid token))",
    }  # fmt: skip


ENTITIES = '<!DOCTYPE tmx [<!ENTITY x SYSTEM "/etc/passwd">]>'
NONE = "<!-- <tu> --><tmx><body></body></tmx>"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (text(unit("&x;"), head=ENTITIES), "declares entities of XML"),
        (text(unit(), head=f"{ENTITIES}<!-- -->"), "declares entities of XML"),
        (text(unit(), head=ENTITIES).encode("utf-16"), "declares entities of XML"),
        (text(unit("x" * 5000)) [:4000], r"a\.tmx: truncated after unit 0, or no TMX"),
        (text(unit())[:-1], r"a\.tmx: truncated after unit 1, or no TMX"),
        (text(unit(), unit())[:-20], r"a\.tmx: truncated after unit 1, or no TMX"),
        (text(unit(), unit("a & b"))[:-13], r"truncated after unit 2, or no TMX"),
        (text(unit(), "<!-- " + unit()), r"truncated after unit 1, or no TMX"),
        (text(unit(), unit("<![CDATA[")), r"truncated after unit 1, or no TMX"),
        ("a\tb\n", r"truncated after unit 0, or no TMX \(without </tmx>\)"),
        (text(unit()).replace("cs", "de"),
         r"first rows have no xml:lang=cs, but xml:lang=de, xml:lang=en; input\.source_langu"),
        ("<?xml version='1.0' encoding='klingon'?>" + text(unit()), "unknown encoding klingon; g"),
        ("<?xml version='1.0' encoding='hex'?>" + text(unit()), "unknown encoding hex; give it as"),
        (text(unit("é")).encode("utf-16")[:-1], r"truncated or corrupt UTF-16 "),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_read(tmp_path: Path, content: str | bytes, message: str) -> None:
    with pytest.raises(UserError, match=message) as error:
        found(tmp_path / "a.tmx", content)
    assert "\n" not in str(error.value)


DECLARED = "<?xml version='1.0' encoding=\"{}\" ?>\n"


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
    assert rejected == [(2, "no XML (not well-formed (invalid token))")]


def test_bytes_that_the_declared_encoding_lacks_are_a_fault_of_their_unit(tmp_path: Path) -> None:
    content = text(unit("a"), unit("xx"), unit("č"), head=DECLARED.format("windows-1250"))
    sources, rejected = found(tmp_path / "a", content.encode("cp1250").replace(b"xx", b"x\x81"))
    assert (sources, [row for row, _ in rejected]) == (["a", "č"], [2])


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize("codec", ["utf-8", "utf-16"])
def test_a_changed_file_is_noticed(tmp_path: Path, pack: Any, codec: str) -> None:
    path = tmp_path / "a.tmx"
    path.write_bytes(pack(text(unit()).encode(codec)))
    (bitext,) = find_bitext("tmx", [str(path)])
    bitext = replace(bitext, sha256=(file_digest(str(path)),))
    assert len(pairs(read(bitext))) == 1
    path.write_bytes(pack(text(unit("new")).encode(codec)))
    with pytest.raises(UserError, match=r"a\.tmx: changed while the run read it"):
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
    with pytest.raises(UserError, match="truncated after unit 1, or no TMX"):
        list(read_bitext(bitext, rows=1000))
