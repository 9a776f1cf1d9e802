"""Part files that get further columns."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paraloom.beam_jobs.io import part_files
from paraloom.beam_jobs.io.part_files import decode, encode, extended
from paraloom.beam_jobs.io.thrift import BINARY, dumps, loads

_TEXT = st.text(st.characters(codec="utf-8"), max_size=30)
_FLOAT = st.floats(width=32, allow_nan=False)
_ROWS = st.lists(st.tuples(_TEXT, _TEXT, _FLOAT, st.integers(-99, 99), _FLOAT), max_size=50)
SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("text", pa.string(), nullable=False),
        pa.field("score", pa.float32(), nullable=False),
        pa.field("tokens", pa.int16(), nullable=False),
        pa.field("other", pa.float32()),
    ]
)


Row = tuple[str, str, float, int, float | None]


def of(rows: list[Row]) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else [[]] * len(SCHEMA)
    arrays = [pa.array(v, f.type) for v, f in zip(columns, SCHEMA, strict=True)]
    return pa.table(arrays, schema=SCHEMA)


@given(rows=_ROWS, own=st.integers(1, len(SCHEMA)))
def test_the_bytes_are_those_of_all_columns(rows: list[Row], own: int) -> None:
    table = of(rows)
    part = extended(encode(table.select(range(own))), table.select(SCHEMA.names[own:]), SCHEMA)
    assert part.data == encode(table)
    assert part.num_rows == len(rows)
    assert decode(part.data).equals(table)


@given(rows=_ROWS, order=st.permutations(range(len(SCHEMA))), own=st.integers(1, len(SCHEMA)))
def test_columns_may_come_between(rows: list[Row], order: list[int], own: int) -> None:
    table = of(rows)
    schema = table.select(order).schema
    part = extended(encode(table.select(range(own))), table.select(SCHEMA.names[own:]), schema)
    assert part.data == encode(table.select(order))


def test_again_and_again() -> None:
    table = of([(str(i), f"text {i}", i / 7, i, None) for i in range(1000)])
    data = encode(table.select(["id"]))
    for n in range(1, len(SCHEMA)):
        data = extended(data, table.select([n]), pa.schema(list(SCHEMA)[: n + 1])).data
    assert data == encode(table)


def test_statistics_and_positions_are_right(tmp_path: Path) -> None:
    table = of([(str(i), f"text {i}", i / 7, i, i / 3) for i in range(1000)])
    data = extended(encode(table.select([0, 1])), table.select([2, 3, 4]), SCHEMA).data
    (tmp_path / "part.parquet").write_bytes(data)
    column = pq.ParquetFile(tmp_path / "part.parquet").metadata.row_group(0).column(3)
    assert (column.path_in_schema, column.statistics.min, column.statistics.max) == (
        "tokens",
        0,
        999,
    )
    found = ds.dataset(tmp_path).to_table(filter=ds.field("tokens") > 990, columns=["other"])
    assert found["other"].to_pylist() == table["other"][991:].to_pylist()


def test_other_columns_and_rows_are_an_error() -> None:
    table = of([("a", "b", 0.5, 1, None)])
    own, further = encode(table.select([0, 1])), table.select([2, 3, 4])
    with pytest.raises(ValueError, match=r"1 rows of .*, not 0 of"):
        extended(own, further.slice(1), SCHEMA)
    wrong = table.select([0, 1]).set_column(1, "text", pa.array([b"b"]))
    with pytest.raises(ValueError, match="1 rows of"):
        extended(encode(wrong), further, SCHEMA)
    with pytest.raises(KeyError):
        extended(encode(table.select([0]).rename_columns(["name"])), further, SCHEMA)
    with pytest.raises((ValueError, KeyError)):
        extended(encode(table.select([0])), further, SCHEMA)  # no text
    for data in (b"", own[:-1], own[:40], b"PAR1" * 9):
        with pytest.raises((OSError, pa.ArrowException)):
            extended(data, further, SCHEMA)


@pytest.mark.parametrize(
    "options", [{"store_schema": False}, {"row_group_size": 2}, {"compression": "snappy"}], ids=str
)
def test_part_files_of_other_writers(options: dict[str, Any]) -> None:
    table = of([(str(i), f"text {i}", i / 7, i, None) for i in range(9)])
    sink = pa.BufferOutputStream()
    pq.write_table(table.select([0, 1]), sink, **options)
    part = extended(sink.getvalue().to_pybytes(), table.select([2, 3, 4]), SCHEMA)
    assert decode(part.data).equals(table)


@pytest.mark.parametrize("rows", [0, 1, 9, 3000])
def test_dictionaries_are_read(monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    monkeypatch.setattr(part_files, "_LARGE", 300_000)  # batches of few rows
    table = of([(str(i), f"text {i % 7}", i / 7, i, None) for i in range(rows)])
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, row_group_size=2000)
    data = sink.getvalue().to_pybytes()
    assert decode(data).equals(table)
    assert decode(data, ["text", "none", "id"]).equals(table.select(["text", "id"]))


@pytest.mark.parametrize(
    "bomb",
    [
        {"use_dictionary": True, "data_page_size": 1 << 20},
        {"use_dictionary": False, "column_encoding": {"text": "DELTA_BYTE_ARRAY"}},
        {"use_dictionary": False, "compression": "zstd"},
    ],
    ids=["dictionary", "prefixes", "zstd"],
)
def test_a_bomb_is_refused_before_it_is_decoded(
    monkeypatch: pytest.MonkeyPatch, bomb: dict[str, Any]
) -> None:
    monkeypatch.setattr(part_files, "_LARGE", 2_000_000)
    monkeypatch.setattr(part_files, "_RATIO", 10)
    sink = pa.BufferOutputStream()
    table = pa.table({"text": pa.array(["a" * 10_000] * 4000)})  # 40 MB
    pq.write_table(table, sink, **bomb)
    del table
    data = sink.getvalue().to_pybytes()
    before, most = pa.total_allocated_bytes(), 0

    def watched(size: int, data: bytes) -> None:
        nonlocal most
        most = max(most, pa.total_allocated_bytes() - before)
        check(size, data)

    check = part_files._check_size
    monkeypatch.setattr(part_files, "_check_size", watched)
    with pytest.raises(pa.ArrowInvalid, match="bytes that become more than 2,000,000"):
        decode(data)
    assert most < 10_000_000


def test_a_large_table_in_a_large_file_is_no_bomb(monkeypatch: pytest.MonkeyPatch) -> None:
    table = of([(str(i), f"text {i}", i / 7, i, None) for i in range(1000)])
    monkeypatch.setattr(part_files, "_LARGE", 100)
    assert decode(encode(table)).equals(table)


@pytest.mark.parametrize("number", [2, 6])
def test_a_footer_with_text_for_a_number_is_an_error(number: int) -> None:
    table = of([("a", "b", 0.5, 1, None)])
    data = encode(table.select([0, 1]))
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    footer = loads(data[start:-8])
    footer[4][1].values[0][number] = (BINARY, b"ab")
    damaged = dumps(footer)
    data = data[:start] + damaged + len(damaged).to_bytes(4, "little") + b"PAR1"
    with pytest.raises((ValueError, OSError)):
        extended(data, table.select([2, 3, 4]), SCHEMA)
