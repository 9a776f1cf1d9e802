import itertools
import math
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from paraloom.beam_jobs import diff
from paraloom.beam_jobs.diff import ROW, diff_shards
from paraloom.beam_jobs.engine.shards import Shard, write_shard
from paraloom.models.errors import UserError

SCHEMA = pa.schema([("id", pa.string()), ("text", pa.string()), ("score", pa.float32())])
Row = tuple[str, str | None, float | None]
ROW_OF = st.tuples(
    st.text("abc", max_size=3), st.text("xy", max_size=2), st.sampled_from([0.5, 1.5])
)
ROWS = st.lists(ROW_OF, max_size=30)


@pytest.fixture(autouse=True)
def few_rows_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diff, "_ROWS_AT_ONCE", 7)


def table(rows: Sequence[Row]) -> pa.Table:
    columns: list[Sequence[Any]] = list(zip(*rows, strict=True)) or [[]] * len(SCHEMA)
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)], SCHEMA)


def write(folder: Path, tables: list[pa.Table]) -> list[Shard]:
    return [write_shard(str(folder / f"part-{i}.parquet"), t) for i, t in enumerate(tables)]


def cut(rows: Sequence[Row], ends: list[int]) -> list[pa.Table]:
    bounds = sorted({0, len(rows), *(end % (len(rows) + 1) for end in ends)})
    pieces = itertools.pairwise(bounds)
    return [table(rows[start:end]) for start, end in pieces] or [table([])]


@given(
    rows=ROWS, ends=st.lists(st.integers(0, 99)), more=st.lists(st.integers(0, 99)), r=st.randoms()
)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_neither_cutting_nor_order_counts(
    tmp_path: Path, rows: list[Row], ends: list[int], more: list[int], r: Random
) -> None:
    first = write(tmp_path / "a", cut(rows, ends))
    second = write(tmp_path / "b", cut(r.sample(rows, len(rows)), more))
    assert diff_shards(first, second) == {}


@given(rows=ROWS, others=ROWS, ends=st.lists(st.integers(0, 99)))
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_other_rows_are_found(
    tmp_path: Path, rows: list[Row], others: list[Row], ends: list[int]
) -> None:
    first = write(tmp_path / "a", cut(rows, ends))
    second = write(tmp_path / "b", cut(others, []))
    found = diff_shards(first, second)
    assert (found == {}) == (sorted(rows) == sorted(others))
    a, b = ({id: rest for id, *rest in side} for side in (rows, others))
    if len(a) == len(rows) and len(b) == len(others):
        both = sorted(a.keys() & b.keys())
        expected: dict[str, list[tuple[str, Any, Any]]] = {
            ROW: [
                (id, "there", "missing") if id in a else (id, "missing", "there")
                for id in sorted(a.keys() ^ b.keys())
            ],
            "text": [(id, a[id][0], b[id][0]) for id in both if a[id][0] != b[id][0]],
            "score": [(id, a[id][1], b[id][1]) for id in both if a[id][1] != b[id][1]],
        }
        assert {
            column: (difference.rows, difference.examples) for column, difference in found.items()
        } == {column: (len(of), of[:5]) for column, of in expected.items() if of}


def rows_of(count: int) -> list[Row]:
    return [(f"{i:03}", "x", 0.5) for i in range(count)]


@pytest.mark.parametrize("cuts", [[], [10, 20]], ids=["same parts", "other parts"])
def test_the_first_values_that_differ_are_told(tmp_path: Path, cuts: list[int]) -> None:
    changed = [(id, text, 1.5 if int(id) % 4 == 3 else score) for id, text, score in rows_of(40)]
    first = write(tmp_path / "a", cut(rows_of(40), []))
    second = write(tmp_path / "b", cut(changed, cuts))
    (column,) = found = diff_shards(first, second)
    assert (column, found[column].rows) == ("score", 10)
    assert found[column].examples == [(id, 0.5, 1.5) for id in ("003", "007", "011", "015", "019")]


def test_another_type_or_column_is_a_difference(tmp_path: Path) -> None:
    wide = table(rows_of(4)).set_column(2, "score", pa.array([0.5] * 4, pa.float64()))
    more = wide.append_column("tokens", pa.array([1] * 4, pa.int16()))
    first, second = write(tmp_path / "a", [table(rows_of(4))]), write(tmp_path / "b", [more])
    found = diff_shards(first, second)
    assert {column: d.rows for column, d in found.items()} == {"score": 4, "tokens": 4}
    assert found["score"].examples == [("000", "float", "double")]
    assert found["tokens"].examples == [("000", "missing", "int16")]


def test_what_is_no_number_on_both_sides_is_the_same(tmp_path: Path) -> None:
    nan, null = float("nan"), None
    rows = [("a", "x", nan), ("b", None, null), ("c", "x", 0.5)]
    first = write(tmp_path / "a", [table(rows)])
    assert diff_shards(first, write(tmp_path / "b", [table(rows[::-1])])) == {}
    changed = [("a", "x", null), ("b", None, nan), ("c", None, 0.5)]
    found = diff_shards(first, write(tmp_path / "c", [table(changed)]))
    assert {column: d.rows for column, d in found.items()} == {"score": 2, "text": 1}


@pytest.mark.parametrize(
    ("other", "largest"),
    [
        ([0.5, 0.50000036, 0.25], 3.6e-7),
        ([0.5, 0.4999996, 0.35], 0.1),
        ([0.5, None, 0.35], math.inf),
        ([0.5, math.nan, 0.35], math.inf),
        ([0.5, 0.5, math.inf], math.inf),
    ],
)
def test_the_largest_difference(tmp_path: Path, other: list[float | None], largest: float) -> None:
    """Also where rows are compared in several blocks."""
    scores = [0.5] * 40 + [0.5, 0.5, 0.25]
    first, second = (
        write(tmp_path / name, [table([(f"{i:02}", "x", of) for i, of in enumerate(numbers)])])
        for name, numbers in (("a", scores), ("b", [*scores[:40], *other]))
    )
    found = diff_shards(first, second)["score"].largest
    assert found == pytest.approx(largest, rel=0.1)


@pytest.mark.parametrize("side", [0, 1])
def test_a_damaged_part_is_an_error_even_where_receipts_agree(tmp_path: Path, side: int) -> None:
    sides = [write(tmp_path / name, [table(rows_of(4))]) for name in "ab"]
    path = tmp_path / "ab"[side] / "part-0.parquet"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(UserError, match=rf"{path}: damaged"):
        diff_shards(*sides)
