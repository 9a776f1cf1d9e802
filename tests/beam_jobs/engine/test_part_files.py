"""Part files that get further columns."""

import itertools
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from paraloom.beam_jobs.engine.part_files import decode, encode, extended

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


@given(
    rows=_ROWS,
    order=st.permutations(range(len(SCHEMA))),
    ends=st.sets(st.integers(1, len(SCHEMA)), min_size=1),
)
def test_the_bytes_are_those_of_all_columns(
    rows: list[Row], order: list[int], ends: set[int]
) -> None:
    """Whether they are added at once or again and again, between others or after them."""
    table = of(rows)
    for target in (table, table.select(order)):
        data = encode(table.select(range(min(ends))))
        for start, end in itertools.pairwise([*sorted(ends), len(SCHEMA)]):
            names = set(table.column_names[:end])
            form = pa.schema([field for field in target.schema if field.name in names])
            part = extended(data, table.select(range(start, end)), form)
            data = part.data
            assert part.num_rows == len(rows) or start == end
        assert data == encode(target)


def test_more_columns_than_a_short_list_has() -> None:
    columns = {f"c{i}": pa.array([float(i)] * 3, pa.float32()) for i in range(40)}
    table = pa.table(columns)
    part = extended(encode(table.select(range(20))), table.select(range(20, 40)), table.schema)
    assert part.data == encode(table)


def test_statistics_and_positions_are_right(tmp_path: Path) -> None:
    table = of([(str(i), f"text {i}", i / 7, i, i / 3) for i in range(1000)])
    data = extended(encode(table.select([0, 1])), table.select([2, 3, 4]), SCHEMA).data
    (tmp_path / "part.parquet").write_bytes(data)
    column = pq.ParquetFile(tmp_path / "part.parquet").metadata.row_group(0).column(3)
    statistics = column.statistics
    assert (column.path_in_schema, statistics.min, statistics.max) == ("tokens", 0, 999)
    found = ds.dataset(tmp_path).to_table(filter=ds.field("tokens") > 990, columns=["other"])
    assert found["other"].to_pylist() == table["other"][991:].to_pylist()


def test_part_files_of_several_row_groups_are_written_again() -> None:
    table = of([(str(i), f"text {i}", i / 7, i, None) for i in range(9)])
    sink = pa.BufferOutputStream()
    pq.write_table(table.select([0, 1]), sink, row_group_size=2)
    part = extended(sink.getvalue().to_pybytes(), table.select([2, 3, 4]), SCHEMA)
    assert decode(part.data).equals(table)
