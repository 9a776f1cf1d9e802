"""Bitexts and their rows, and the check that rows are valid."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paraloom.beam_jobs.bitext.lines import Span
from paraloom.beam_jobs.engine.schema import INGEST, INGEST_REJECTED
from paraloom.beam_jobs.transforms.equal_texts import content_ids
from paraloom.models.text.cleaning import CONTROL, clean, find_control

Paths = list[str] | dict[str, str | list[str]]
"""`input.paths`: paths and globs. A format with one file per language has paths for each side."""

_REQUIRED = ("id", "source", "reference")
_TEXT = 1_000  # characters of a rejected row that are stored


@dataclass(frozen=True, kw_only=True, slots=True)
class Layout:
    """Configuration keys of `input` that readers use, besides the format and the paths."""

    columns: Mapping[str, str] = field(default_factory=dict)  # column -> name in the file
    keep: tuple[str, ...] = ()
    languages: tuple[str, str] = ("cs", "en")  # codes of the source and reference languages
    codes: tuple[str, str] = ("cs", "en")  # the same languages, in the user's spelling
    subset: str | None = None
    split: str = "train"
    clean: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Bitext:
    """One file of the input, or the two files of a Moses pair."""

    format: str
    paths: tuple[str, ...]
    name: str  # unique in the input
    columns: tuple[str, ...] = ()  # names in Paraloom; empty: the reader's `columns`
    places: tuple[str, ...] = ()  # each column's name in the file; empty if the file has no names
    kept: pa.Schema = field(default_factory=lambda: pa.schema([]))  # columns of `input.keep`
    clean: tuple[str, ...] = ()  # names of `CLEANERS` for source and reference
    sha256: tuple[str, ...] = ()  # expected checksum of each file
    ids_found: bool = False  # whether the file has ids that `input.columns` does not name

    def may_lack(self, column: str) -> bool:
        """Whether rows without a valid value in this column are accepted."""
        return column == "id" and self.ids_found

    @property
    def ids(self) -> Literal["given", "found", "made"]:
        """Origin of ids: a column ("given", or "found" if it may have gaps), or texts ("made")."""
        return ("found" if self.ids_found else "given") if "id" in self.columns else "made"


@dataclass(frozen=True, slots=True)
class Range:
    """Consecutive rows of a bitext."""

    before: int  # number of lines before the range
    lines: int
    spans: tuple[Span, ...] = ()  # a span of each file; empty if files have no spans


@dataclass(frozen=True, kw_only=True, slots=True)
class RawRows:
    """Rows of a file before they are checked."""

    columns: Mapping[str, pa.Array]  # texts as bytes, kept columns as values; null if missing
    numbers: np.ndarray  # row numbers from 1 in the file, int64
    texts: Sequence[bytes] = ()  # raw rows, to store if rejected; empty: store the joined texts
    faults: dict[int, str] = field(default_factory=dict)  # known faults, by position in `numbers`


@dataclass(frozen=True, kw_only=True, slots=True)
class RowBlock:
    """Consecutive rows of a bitext. Each row is in `pairs` or in `rejected`."""

    pairs: pa.RecordBatch  # valid rows (`schema.INGEST`, and kept columns)
    rejected: pa.RecordBatch  # invalid rows (`schema.INGEST_REJECTED`)
    lines: np.ndarray  # row number of each pair in the file, int64 [n]
    rows: int  # number of pairs and rejected rows
    cleaned: Mapping[str, np.ndarray]  # whether each cleaner changed each pair, bool [n]
    made: pa.StringArray | None  # [n], ids made from the texts; None if `Bitext.ids` is "given"


def checked(bitext: Bitext, rows: RawRows, max_characters: int) -> RowBlock:
    """Clean and check rows, and make ids for pairs without an id."""
    why, columns = dict(rows.faults), dict(rows.columns)
    changed = {kind: np.zeros(len(rows.numbers), bool) for kind in bitext.clean}
    for name, column in rows.columns.items():
        strict = name in _REQUIRED or not bitext.places
        if strict or pa.types.is_string(column.type):
            columns[name], faults = _checked(name, column, max_characters, strict, changed)
            if not bitext.may_lack(name):
                why = {**faults, **why}
    bad, good = np.array(sorted(why), np.int64), np.ones(len(rows.numbers), bool)
    good[bad] = False

    def of_bad(column: pa.Array) -> list[Any]:
        return list(column.take(pa.array(bad)).to_pylist())

    row = pa.array(rows.numbers[bad]).cast(pa.string())
    places = pc.binary_join_element_wise(bitext.name, row, ":")
    own = of_bad(columns["id"]) if "id" in columns else [None] * len(bad)
    if rows.texts:
        texts = [rows.texts[row] for row in bad.tolist()]
    else:
        sides = (of_bad(rows.columns[name].cast(pa.binary())) for name in _REQUIRED[1:])
        texts = [b"\t".join(text or b"" for text in row) for row in zip(*sides, strict=True)]
    rejected = [
        [mine or place for mine, place in zip(own, places.to_pylist(), strict=True)],
        rows.numbers[bad],
        [text[: 4 * _TEXT].replace(b"\n", b"").decode(errors="replace")[:_TEXT] for text in texts],
        [why[row] for row in bad.tolist()],
    ]
    columns.setdefault("source", pa.repeat("", len(good)))
    target = pa.schema([*INGEST, *bitext.kept])
    arrays = map(pa.array, rejected, INGEST_REJECTED.types)
    pairs = {name: columns[name].filter(pa.array(good)) for name in target.names if name in columns}
    made = None
    if "id" not in pairs or bitext.ids_found:
        made = content_ids(pairs["source"], pairs["reference"])
        pairs["id"] = pc.coalesce(pairs["id"], made) if "id" in pairs else made
    return RowBlock(
        pairs=pa.record_batch([pairs[name] for name in target.names], schema=target),
        rejected=pa.record_batch([*arrays], schema=INGEST_REJECTED),
        lines=rows.numbers[good],
        rows=len(good),
        cleaned={kind: rows[good] for kind, rows in changed.items()},
        made=made,
    )


def _checked(
    name: str, column: pa.Array, most: int, strict: bool, changed: Mapping[str, np.ndarray]
) -> tuple[pa.StringArray, dict[int, str]]:
    """Return the cleaned texts of a column, with null for invalid texts, and the faults by row."""
    faults: dict[int, str] = {}

    def fault(rows: pa.BooleanArray, what: str) -> None:
        for row in np.flatnonzero(rows.fill_null(False)).tolist():
            faults.setdefault(row, what)

    required = name in _REQUIRED
    if required:
        fault(column.is_null(), f"no {name}")
    try:
        text = column.cast(pa.binary()).cast(pa.string())
    except pa.ArrowInvalid:
        text = pa.array([*map(_decoded, column.cast(pa.binary()).to_pylist())], pa.string())
        fault(pc.and_(text.is_null(), column.is_valid()), f"invalid UTF-8 in {name}")
    if name in _REQUIRED[1:]:
        text = clean(text, changed)
    trimmed = text
    if strict:
        controls = pc.match_substring_regex(text, CONTROL).fill_null(False)
        for row in np.flatnonzero(controls).tolist():
            faults.setdefault(row, f"{find_control(text[row].as_py())} in {name}")
        trimmed = pc.utf8_trim_whitespace(text)
    if required:
        fault(pc.equal(pc.binary_length(trimmed), 0), f"empty {name}")
    if required or not strict:
        fault(pc.greater(pc.utf8_length(trimmed), most), f"{name} longer than {most:,} characters")
    if faults:
        wrong = np.zeros(len(text), bool)
        wrong[[*faults]] = True
        trimmed = pc.if_else(pa.array(wrong), None, trimmed)
    return trimmed, faults


def _decoded(field: bytes | None) -> str | None:
    try:
        return None if field is None else field.decode()
    except UnicodeDecodeError:
        return None
