"""TMX: translation memories in XML. Here, a unit is an element `tu`."""

import re
from collections.abc import Iterator, Sequence
from io import BufferedReader
from itertools import islice
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

import numpy as np

from paraloom.beam_jobs import storage
from paraloom.beam_jobs.bitext.lines import open_text
from paraloom.beam_jobs.bitext.reader import HEAD, Record, RecordReader, from_records
from paraloom.beam_jobs.bitext.rows import Bitext, Layout, Range, RawRows
from paraloom.models.errors import UserError
from paraloom.models.languages import short_code
from paraloom.models.text.files import CHUNK, LONGEST, recoded

_UNIT = 20  # approximate minimum number of (compressed) bytes per unit
_LANGUAGE = "xml:lang={}"  # key of a segment in a record
_CODES = ("bpt", "ept", "it", "ph", "ut")
"""Elements with formatting codes of the original document. Their text is removed."""
_TOKEN = re.compile(
    rb"<!--.*?-->|<!\[CDATA\[.*?]]>|(?P<opened><!--|<!\[CDATA\[)"
    rb"|(?P<begins><tu[\s/>])|(?P<ends></tu\s*>)|(?P<last></tmx\s*>)",
    re.DOTALL,
)
"""The beginning or end of a unit, or the end of the document. Comments and CDATA are skipped."""
_ENCODING = re.compile(rb"\s*<\?xml\s[^>]*?\bencoding\s*=\s*[\"']([\w.:-]+)")
_SPACE = re.compile(r"(?<! ) *+[\t\n\r][\t\n\r ]*")  # white space with a tab or line break


class Tmx(RecordReader):
    """TMX 1.4: each unit (`tu`) is a row. A unit that lacks one of the languages is rejected.

    Further columns are the unit's attributes, such as `tuid`, and its properties, named by type.
    """

    name = "tmx"
    named = ("id",)
    id_place = "tuid"
    by_language = True
    remedy = "name the languages in input.source_language and input.target_language"

    def places(self, layout: Layout) -> dict[str, str]:
        """Return each column's name in a record. The column of a side is named by its language."""
        sides = zip(self.columns[1:], map(_LANGUAGE.format, layout.languages), strict=True)
        return {**super().places(layout), **dict(sides)}

    def head(self, path: str) -> tuple[Sequence[Record], Sequence[str]]:
        """Return the first units, and the names of all columns in them."""
        with open_text(path) as stream:
            units = [unit for unit, _ in islice(_units(stream, path), HEAD)]
        return units, sorted({name for unit in units for name in unit})

    def ranges(self, bitext: Bitext, rows: int, copies: str | None = None) -> list[Range]:
        """Return one range. The range's length is at least the number of units in the file."""
        return [Range(0, 1 + storage.size(bitext.paths[0]) // _UNIT)]

    def count_in(self, text: bytes) -> int:
        """Count the units that begin in a text."""
        return sum(token.lastgroup == "begins" for token in _TOKEN.finditer(text))

    def rows(self, bitext: Bitext, rows: int, part: Range, limit: int) -> Iterator[RawRows]:
        """Yield the units of a file, `rows` at a time."""
        (path,), at = bitext.paths, 1
        with open_text(path, *bitext.sha256) as stream:
            units = _units(stream, path)
            while block := list(islice(units, rows)):
                records, reasons = zip(*block, strict=True)
                faults = {row: f"invalid XML ({why})" for row, why in enumerate(reasons) if why}
                yield from_records(bitext, records, np.arange(at, at + len(block)), faults)
                at += len(block)


def _units(stream: BufferedReader, path: str) -> Iterator[tuple[Record, str]]:
    """Yield each unit with a description of its XML error, or with "" if it has none."""
    stream, data, at, begin, count, last = _in_utf8(stream, path), b"", 0, -1, 0, ""
    while len(data) < LONGEST and (chunk := stream.read1(CHUNK)):
        data += chunk
        for token in _TOKEN.finditer(data, at):
            kind, start = token.lastgroup, token.start()
            last = kind or last
            if kind == "opened":
                break
            at = token.end()
            if kind == "begins" and not count and b"<!ENTITY" in data[:start]:
                raise UserError(f"{path}: declares XML entities, which Paraloom does not read")
            if kind == "ends" or (kind and begin >= 0):
                yield _unit(data[begin if begin >= 0 else start : at if kind == "ends" else start])
                begin, count = -1, count + 1
            if kind == "begins":
                begin = start
        done = begin if begin >= 0 else at if count else 0
        data, at, begin = data[done:], at - done, min(begin, 0)
    if last != "last":
        raise UserError(f"{path}: truncated after unit {count:,}, or not TMX (no </tmx>)")


def _in_utf8(stream: BufferedReader, path: str) -> BufferedReader:
    head = stream.peek(CHUNK)
    name = found[1].decode() if (found := _ENCODING.match(head)) else "UTF-8"
    if re.match("utf|ucs|iso-10646", name, re.IGNORECASE):
        name = {b"<\0": "UTF-16-LE", b"\0<": "UTF-16-BE"}.get(head[:2], "")
    if not name:
        return stream
    try:
        "<".encode(name)
    except (LookupError, ValueError) as error:
        raise UserError(f"{path}: unknown encoding {name}; convert the file to UTF-8") from error
    return recoded(stream, path, name)


def _unit(text: bytes) -> tuple[dict[str, str], str]:
    parser, tree, fault = expat.ParserCreate("utf-8"), TreeBuilder(), ""
    parser.StartElementHandler, parser.EndElementHandler = tree.start, tree.end
    parser.CharacterDataHandler = tree.data
    tree.start("", {})
    try:
        parser.Parse(text, True)
    except expat.ExpatError as error:
        fault = expat.ErrorString(error.code)
    root = tree.close()
    tu = next(iter(root), root)
    found = dict(tu.attrib)
    for prop in tu.findall("prop"):
        found.setdefault(prop.get("type", ""), _text(prop))
    for tuv in tu.findall("tuv"):
        name = _LANGUAGE.format(short_code(tuv.get("xml:lang") or tuv.get("lang", "")))
        for segment in tuv.findall("seg"):
            for part in list(segment.iter()):
                if part.tag in _CODES:
                    tail = part.tail
                    part.clear()
                    part.tail = tail
            found.setdefault(name, _text(segment))
    return found, fault


def _text(element: Element) -> str:
    return _SPACE.sub(" ", "".join(element.itertext()))
