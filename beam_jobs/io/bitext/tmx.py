"""TMX: translation memories, read as a stream of XML."""

from collections.abc import Iterable, Iterator, Sequence
from io import BufferedReader
from itertools import islice
from typing import Any
from xml.etree import ElementTree

import numpy as np

from paraloom.beam_jobs.io import storage
from paraloom.beam_jobs.io.bitext.lines import open_text
from paraloom.beam_jobs.io.bitext.reader import HEAD, Record, RecordReader, from_records
from paraloom.beam_jobs.io.bitext.rows import Bitext, Layout, Range, RawRows
from paraloom.models.errors import UserError
from paraloom.models.languages import short_code
from paraloom.models.text.files import CHUNK

_UNIT = 20  # bytes that a unit has at least, about, also in a compressed file
_LANGUAGE = "xml:lang={}"  # the name of a segment in a record
_CODES = ("bpt", "ept", "it", "ph", "ut")
"""The elements of a segment that hold codes of its original format."""


class Tmx(RecordReader):
    """TMX 1.4: a row is a unit (`tu`) with a segment in each language.

    Further columns are the attributes of units, such as `tuid`, and their properties, by type.
    """

    name = "tmx"
    named = ("id",)
    by_language = True
    remedy = "input.source_language and input.target_language name the sides"

    def places(self, layout: Layout) -> dict[str, str]:
        """The sides are called by their languages."""
        sides = zip(self.columns[1:], map(_LANGUAGE.format, layout.languages), strict=True)
        return {**super().places(layout), **dict(sides)}

    def head(self, path: str) -> tuple[Sequence[Record], Iterable[str]]:
        """The first units."""
        with open_text(path) as stream:
            units = list(islice(_units(stream, path), HEAD))
        return units, sorted({name for unit in units for name in unit})

    def ranges(self, bitext: Bitext, rows: int) -> list[Range]:
        """XML is not divided; the rows are estimated, rather too many."""
        return [Range(0, 1 + storage.size(bitext.paths[0]) // _UNIT)]

    def count_in(self, text: bytes) -> int:
        """The units that begin in a text."""
        return text.count(b"<tu ") + text.count(b"<tu>")

    def rows(self, bitext: Bitext, rows: int, part: Range, limit: int) -> Iterator[RawRows]:
        """The units of a file, `rows` at a time."""
        (path,), at = bitext.paths, 1
        with open_text(path, *bitext.sha256) as stream:
            units = _units(stream, path)
            while records := list(islice(units, rows)):
                yield from_records(bitext, records, np.arange(at, at + len(records)))
                at += len(records)


def _units(stream: BufferedReader, path: str) -> Iterator[dict[str, str]]:
    """The units of a file: attributes, properties, and the first segment of each language.

    Entities that a file declares are an error; no others but XML's own are known.
    """
    parser: Any = ElementTree.XMLPullParser(("start", "end"))
    body, count, tail = None, 0, b""
    try:
        while chunk := stream.read1(CHUNK):
            if body is None and b"<!ENTITY" in tail + chunk:
                raise UserError(f"{path}: declares entities of XML, which are not read")
            tail = chunk[-8:]
            parser.feed(chunk)
            for event, element in parser.read_events():
                if event == "start" and element.tag == "body":
                    body = element
                elif event == "end" and element.tag == "tu":
                    count += 1
                    yield _unit(element)
                    if body is not None:
                        body.clear()
        parser.close()
    except ElementTree.ParseError as error:
        raise UserError(
            f"{path}: truncated, or not well-formed XML after unit {count:,} ({error})"
        ) from error


def _unit(tu: ElementTree.Element) -> dict[str, str]:
    found = dict(tu.attrib)
    for prop in tu.findall("prop"):
        found.setdefault(prop.get("type", ""), prop.text or "")
    for tuv in tu.findall("tuv"):
        code = tuv.get("{http://www.w3.org/XML/1998/namespace}lang") or tuv.get("lang", "")
        for segment in tuv.findall("seg"):
            for part in list(segment.iter()):
                if part.tag in _CODES:
                    tail = part.tail
                    part.clear()
                    part.tail = tail
            found.setdefault(_LANGUAGE.format(short_code(code)), "".join(segment.itertext()))
    return found
