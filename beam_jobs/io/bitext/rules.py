"""The rules for valid rows: checked for a whole block at once, explained for a single row."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paraloom.models.text.controls import find_control

_REQUIRED = ("id", "source", "reference")


@dataclass(frozen=True, kw_only=True, slots=True)
class Rules:
    """What rows of a file must conform to."""

    names: tuple[str, ...]  # of the columns
    max_characters: int  # of id, source and reference, including surrounding white space
    keep: tuple[str, ...] = ()  # of the other columns, those whose values are kept
    lines: bool = True  # a line feed ends only a field that was cut by `lines.blocks`


def valid_rows(lines: list[bytes], rules: Rules) -> tuple[dict[str, pa.Array], np.ndarray]:
    """Id (where there is one), sides and kept columns of the valid rows, and their indices.

    Columns are separated by tabs. `reason` explains every other row.
    """
    text = pa.array(lines, pa.binary())
    rows = np.arange(len(lines))
    try:
        text = text.cast(pa.string())
    except pa.ArrowInvalid:
        decodes = (_decoded(line) is not None for line in lines)
        rows = np.flatnonzero(np.fromiter(decodes, bool, len(lines)))
        text = text.take(rows).cast(pa.string())

    # Rows that remain have n fields each: column i is every n-th field, beginning with i.
    n = len(rules.names)
    fields = pc.split_pattern(text, "\t")
    clean = _without_controls(text, tabs=True)
    good = pc.and_(pc.equal(pc.list_value_length(fields), n), clean)
    fields, rows = fields.filter(good).flatten(), rows[np.flatnonzero(good)]

    columns = {}
    good = pa.array(np.ones(len(rows), bool))
    for i, name in enumerate(rules.names):
        if name in (*_REQUIRED, *rules.keep):
            column = fields.take(np.arange(i, len(fields), n))
            columns[name] = pc.utf8_trim_whitespace(column)
        if name in _REQUIRED:
            short = pc.less_equal(pc.utf8_length(column), rules.max_characters)
            filled = pc.greater(pc.binary_length(columns[name]), 0)
            good = pc.and_(good, pc.and_(short, filled))
    columns = {name: column.filter(good) for name, column in columns.items()}
    return columns, rows[np.flatnonzero(good)]


def kept_faults(columns: Mapping[str, pa.Array], rules: Rules) -> dict[int, str]:
    """The rows with a kept text that is too long or not UTF-8, and why."""
    faults: dict[int, str] = {}
    for name in rules.keep:
        if not pa.types.is_string(columns[name].type):
            continue
        for row, value in enumerate(columns[name].cast(pa.binary()).to_pylist()):
            text = "" if value is None else _decoded(value)
            if text is None:
                faults.setdefault(row, f"invalid UTF-8 in {name}")
            elif len(text) > rules.max_characters:
                faults.setdefault(row, _too_long(name, rules))
    return faults


def reason(fields: Sequence[bytes | None], rules: Rules) -> str:
    """Why a row is invalid: its first fault, from left to right."""
    if fields == [b""]:
        return "empty line"
    if len(fields) != len(rules.names):
        return f"{len(fields)} column{'s' * (len(fields) > 1)} instead of {len(rules.names)}"
    for name, field in zip(rules.names, fields, strict=True):
        if problem := _problem(name, field, rules):
            return problem
    raise AssertionError(f"nothing is wrong with {fields}")


def own_id(fields: Sequence[bytes | None], rules: Rules) -> str | None:
    """The id of a row, if that column is valid."""
    first = fields[0]
    if rules.names[0] != "id" or len(fields) < 2 or not first or _problem("id", first, rules):
        return None
    return first.decode().strip()


def _problem(name: str, field: bytes | None, rules: Rules) -> str | None:
    if field is None:
        return f"no {name}"
    if rules.lines and field.endswith(b"\n"):
        return _too_long(name, rules)
    text = _decoded(field)
    if text is None:
        return f"invalid UTF-8 in {name}"
    if found := find_control(text):
        return f"{found} in {name}"
    if name in _REQUIRED and not text.strip():
        return f"empty {name}"
    if name in _REQUIRED and len(text) > rules.max_characters:
        return _too_long(name, rules)
    return None


def _too_long(name: str, rules: Rules) -> str:
    return f"{name} longer than {rules.max_characters:,} characters"


def _without_controls(text: pa.StringArray, *, tabs: bool) -> pa.BooleanArray:
    """Lines in which `find_control` finds nothing, or only tabs; on bytes, much faster than RE2."""
    clean = np.ones(len(text), bool)
    if len(text):
        _, offsets, data = text.buffers()
        start, *_ = bounds = np.frombuffer(offsets, np.int32)[text.offset :][: len(text) + 1]
        byte = np.frombuffer(data or b"", np.uint8)[start : bounds[-1]]
        ends = bounds[1:] - start
        ascii_ = np.flatnonzero((byte < 0x20) | (byte == 0x7F))
        if tabs:
            ascii_ = ascii_[byte[ascii_] != 0x09]
        c1 = np.flatnonzero(byte == 0xC2)  # it leads two bytes, as the text is valid
        c1 = c1[byte[c1 + 1] < 0xA0]
        breaks = np.flatnonzero(byte == 0xE2)  # it leads three; U+2028 is E2 80 A8, U+2029 … A9
        breaks = breaks[(byte[breaks + 1] == 0x80) & (byte[breaks + 2] & 0xFE == 0xA8)]
        for found in (ascii_, c1, breaks):
            clean[np.searchsorted(ends, found, side="right")] = False
    return pa.array(clean)


def _decoded(field: bytes) -> str | None:
    try:
        return field.decode()
    except UnicodeDecodeError:
        return None
