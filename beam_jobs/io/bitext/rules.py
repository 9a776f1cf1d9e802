"""The rules for valid rows: checked for a whole block at once, explained for a single row."""

from collections.abc import Mapping
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


def check_columns(
    columns: Mapping[str, pa.Array], rules: Rules
) -> tuple[dict[str, pa.Array], dict[int, str]]:
    """Trim id, source and reference, and find the invalid rows with their reasons.

    Args:
        columns: aligned; texts may be null and need not be UTF-8. Columns of other types are valid.
    """
    checked = dict(columns)
    faults: dict[int, str] = {}
    for name, column in columns.items():
        if not pa.types.is_string(column.type):
            continue
        raw = text = column.cast(pa.binary())
        try:
            text = raw.cast(pa.string())
        except pa.ArrowInvalid:
            texts = (value if value is None else _decoded(value) for value in raw.to_pylist())
            text = pa.array(list(texts), pa.string())
        checked[name] = text
        good = pc.less_equal(pc.utf8_length(text), rules.max_characters).fill_null(False)
        if name in _REQUIRED:
            checked[name] = pc.utf8_trim_whitespace(text)
            filled = pc.greater(pc.binary_length(checked[name]), 0)
            filled = pc.and_(filled.fill_null(False), _without_controls(text, tabs=False))
        good = pc.and_(good, filled) if name in _REQUIRED else pc.or_(good, raw.is_null())
        for row in np.flatnonzero(~good.to_numpy(zero_copy_only=False)).tolist():
            value = raw[row].as_py()
            if value is None:
                why = f"no {name}"
            elif name in _REQUIRED or _decoded(value) is None:
                why = _problem(name, value + b" ", rules) or ""  # cut lines end in a line feed
            else:
                why = _too_long(name, rules)
            faults.setdefault(row, why)
    return checked, faults


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
    if field.endswith(b"\n"):  # cut by `lines.blocks`
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
