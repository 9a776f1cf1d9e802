"""The rules for valid rows: checked for a whole block at once, explained for a single row."""

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


def valid_rows(lines: list[bytes], rules: Rules) -> tuple[dict[str, pa.Array], np.ndarray]:
    """Id (where there is one), source and reference of the valid rows, and their indices.

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
    good = pc.and_(pc.equal(pc.list_value_length(fields), n), _without_controls(text))
    fields, rows = fields.filter(good).flatten(), rows[np.flatnonzero(good)]

    columns = {}
    good = pa.array(np.ones(len(rows), bool))
    for i, name in enumerate(rules.names):
        if name in _REQUIRED:
            column = fields.take(np.arange(i, len(fields), n))
            columns[name] = pc.utf8_trim_whitespace(column)
            short = pc.less_equal(pc.utf8_length(column), rules.max_characters)
            filled = pc.greater(pc.binary_length(columns[name]), 0)
            good = pc.and_(good, pc.and_(short, filled))
    columns = {name: column.filter(good) for name, column in columns.items()}
    return columns, rows[np.flatnonzero(good)]


def reason(fields: list[bytes], rules: Rules) -> str:
    """Why a row is invalid: its first fault, from left to right."""
    if fields == [b""]:
        return "empty line"
    if len(fields) != len(rules.names):
        return f"{len(fields)} column{'s' * (len(fields) > 1)} instead of {len(rules.names)}"
    for name, field in zip(rules.names, fields, strict=True):
        if problem := _problem(name, field, rules):
            return problem
    raise AssertionError(f"nothing is wrong with {fields}")


def own_id(fields: list[bytes], rules: Rules) -> str | None:
    """The id of a row, if that column is valid."""
    if rules.names[0] != "id" or len(fields) < 2 or _problem("id", fields[0], rules):
        return None
    return fields[0].decode().strip()


def _problem(name: str, field: bytes, rules: Rules) -> str | None:
    too_long = f"{name} longer than {rules.max_characters:,} characters"
    if field.endswith(b"\n"):  # cut by `lines.blocks`
        return too_long
    text = _decoded(field)
    if text is None:
        return f"invalid UTF-8 in {name}"
    if found := find_control(text):
        return f"{found} in {name}"
    if name in _REQUIRED and not text.strip():
        return f"empty {name}"
    if name in _REQUIRED and len(text) > rules.max_characters:
        return too_long
    return None


def _without_controls(text: pa.StringArray) -> pa.BooleanArray:
    """Lines in which `find_control` finds only tabs; works on bytes, much faster than RE2."""
    clean = np.ones(len(text), bool)
    if len(text):
        _, offsets, data = text.buffers()
        ends = np.frombuffer(offsets, np.int32)[1 : len(text) + 1]
        byte = np.frombuffer(data or b"", np.uint8)[: ends[-1]]
        ascii_ = np.flatnonzero((byte < 0x20) | (byte == 0x7F))
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
