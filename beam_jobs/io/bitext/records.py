"""Formats whose rows are records with names, and the simplest of them, JSON Lines."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import orjson
import pyarrow as pa

from paraloom.beam_jobs.io.bitext.lines import CHUNK, open_text
from paraloom.beam_jobs.io.bitext.reader import (
    Bitext,
    BitextReader,
    Columns,
    Layout,
    RowBlock,
    row_block,
)
from paraloom.beam_jobs.io.bitext.rules import Rules, kept_faults, own_id, reason, valid_rows
from paraloom.models.errors import UserError

HEAD = 1_000
"""Rows that tell the types of columns, where a file does not."""

_TYPES = {str: pa.string(), bool: pa.bool_(), int: pa.int64(), float: pa.float64()}
Record = Mapping[str, Any]


class RecordReader(BitextReader):
    """Reads records; `input.columns` says what they call id, source and reference."""

    columns = ("id", "source", "reference")
    named: ClassVar[tuple[str, ...]] = ("source", "reference", "id")
    remedy: ClassVar[str] = "input.columns names them"

    def head(self, path: str, places: Collection[str]) -> tuple[Sequence[Record], Iterable[str]]:
        """The first records of a file, with these columns at least; the names of all columns."""
        raise NotImplementedError

    def places(self, layout: Layout) -> dict[str, str]:
        """What a file calls the columns of the pair, then the kept ones."""
        own = [name for name in self.columns if name != "id" or name in layout.columns]
        return {name: layout.columns.get(name, name) for name in (*own, *layout.keep)}

    def describe(self, path: str, layout: Layout) -> Columns:
        """Check that the first records have the columns; their values tell the types."""
        places, kept = self.places(layout), []
        records, known = self.head(path, places.values())
        for name, place in places.items():
            values = (_find(record, place) for record in records)
            kinds = list(dict.fromkeys(_kind(value) for value in values if value is not None))
            kind = _TYPES.get(kinds[0]) if kinds else pa.null()
            if kind == pa.int64() and float in kinds:
                kind = pa.float64()
            if not kinds and name in self.columns:
                names = ", ".join(known) or "nothing"
                lack = f"{path}: the first rows have no {place}, but {names}"
                raise UserError(f"{lack}; {self.remedy}")
            if name in self.columns and not ({str, int} if name == "id" else {str}) & {*kinds}:
                kind = None
            if kind is None:
                found = " and ".join(getattr(kind, "__name__", str(kind)) for kind in kinds)
                wanted = "" if name in self.columns else "; keep text, numbers, true or false"
                raise UserError(f"{path}: the values of {place} are of the type {found}{wanted}")
            if name in layout.keep:
                kept.append((name, kind))
        return (*places,), (*places.values(),), pa.schema(kept)

    def from_records(
        self,
        bitext: Bitext,
        records: Sequence[Record],
        rules: Rules,
        numbers: np.ndarray,
        faults: Mapping[int, str] | None = None,
        lines: Sequence[bytes] = (),
    ) -> RowBlock:
        """The block of some records; `faults` has reasons that are known, by row."""
        why, columns = dict(faults or {}), {}
        for name, place, kind in columns_of(bitext):
            values = []
            for row, record in enumerate(records):
                value = _find(record, place)
                if name == "id" and type(value) is int:
                    value = str(value)
                if kind == pa.float64() and type(value) is int:
                    value = float(value)
                large = type(value) is int and value.bit_length() > 63
                if value is not None and (large or _TYPES.get(type(value)) != kind):
                    why.setdefault(row, f"{name} is no {kind}")
                    value = None
                values.append(value)
            columns[name] = pa.array(values, kind)
        return self.checked(bitext, columns, rules, numbers, why, lines)

    def checked(
        self,
        bitext: Bitext,
        columns: Mapping[str, pa.Array],
        rules: Rules,
        numbers: np.ndarray,
        faults: Mapping[int, str] | None = None,
        lines: Sequence[bytes] = (),
    ) -> RowBlock:
        """The block of some rows, given by column; `lines` has their texts, if they have any."""
        own = [name for name in self.columns if name in columns]
        fields = [*zip(*(columns[name].cast(pa.binary()).to_pylist() for name in own), strict=True)]
        rules = replace(rules, names=tuple(own), lines=False)
        texts = [b"\t".join(text or b"" for text in row) for row in fields]
        found, valid = valid_rows(texts, replace(rules, keep=()))
        known, why = faults or {}, kept_faults(columns, rules)
        good = ~np.isin(valid, [*known, *why])
        rejected, sound = [], {*valid.tolist()}
        for row in np.setdiff1d(np.arange(len(numbers)), valid[good], assume_unique=True).tolist():
            text = lines[row] if lines else b"\t".join(text or b"" for text in fields[row][-2:])
            fault = known.get(row) or (why[row] if row in sound else reason(fields[row], rules))
            rejected.append((own_id(fields[row], rules), int(numbers[row]), text, fault))
        valid = valid[good]
        taken = {name: column.filter(pa.array(good)) for name, column in found.items()}
        taken |= {name: columns[name].take(pa.array(valid)) for name in rules.keep}
        return row_block(bitext, taken, numbers[valid], rejected)


def columns_of(bitext: Bitext) -> Iterable[tuple[str, str, pa.DataType]]:
    """The columns of a bitext: their names, what its file calls them, and their types."""
    kept = {field.name: field.type for field in bitext.kept}
    for name, place in zip(bitext.columns, bitext.places, strict=True):
        yield name, place, kept.get(name, pa.string())


class JsonLines(RecordReader):
    """JSON Lines: an object a line; a dot in the name of a column leads into an object."""

    name = "jsonl"
    skip_empty_lines = True

    def line_limit(self, max_characters: int) -> int:
        """Up to 12 bytes a character, and further columns."""
        return 36 * max_characters + 30_000

    def head(self, path: str, places: Collection[str]) -> tuple[Sequence[Record], Iterable[str]]:
        """The objects among the first lines."""
        with open_text(path) as stream:
            lines = stream.read(CHUNK).split(b"\n")[:HEAD]
        records = [record for line in lines if (record := _parsed(line))]
        if not records:
            raise UserError(f"{path}: none of the first lines is a JSON object")
        return records, _names(records[0])

    def _block(
        self, bitext: Bitext, rules: Rules, limit: int, group: tuple[list[bytes], ...], before: int
    ) -> RowBlock:
        lines, numbers = self._rows(group[0], before)
        records = list(map(_parsed, lines))
        long = f"line longer than {limit:,} bytes"
        faults = {
            row: long if lines[row].endswith(b"\n") else "no JSON object"
            for row, record in enumerate(records)
            if record is None
        }
        found = [record or {} for record in records]
        return self.from_records(bitext, found, rules, numbers, faults, lines)


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return record if isinstance(record, dict) else None


def _kind(value: Any) -> type | pa.DataType:
    """The type of a value; of Parquet's types that no column may have, the type itself."""
    return value if isinstance(value, pa.DataType) else type(value)


def _find(record: Record, place: str) -> Any:
    """A value of a record, or of an object within it; None if it has none."""
    if place in record or "." not in place:
        return record.get(place)
    found: Any = record
    for part in place.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    return found


def _names(record: Record, prefix: str = "") -> Iterable[str]:
    for name, value in record.items():
        inner = isinstance(value, dict) and value
        yield from _names(value, f"{prefix}{name}.") if inner else [f"{prefix}{name}"]
