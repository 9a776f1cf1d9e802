"""Thrift's compact protocol, on the footers of Parquet files."""

from contextlib import suppress

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paraloom.beam_jobs.io.thrift import (
    BINARY,
    BYTE,
    DOUBLE,
    FALSE,
    I16,
    I32,
    I64,
    LIST,
    STRUCT,
    TRUE,
    Items,
    Struct,
    dumps,
    loads,
)

_INTEGERS = st.integers(-(2**63), 2**63 - 1)
_VALUES = st.one_of(
    st.tuples(st.sampled_from([I16, I32, I64]), _INTEGERS),
    st.tuples(st.just(BINARY), st.binary(max_size=300)),
    st.tuples(st.just(BYTE), st.binary(min_size=1, max_size=1)),
    st.tuples(st.just(DOUBLE), st.binary(min_size=8, max_size=8)),
    st.sampled_from([(TRUE, True), (FALSE, False)]),
    st.tuples(st.just(LIST), st.lists(_INTEGERS, max_size=40).map(lambda v: Items(I64, v))),
)
_STRUCTS = st.recursive(
    st.dictionaries(st.integers(1, 2000), _VALUES, max_size=6),
    lambda inner: st.dictionaries(
        st.integers(1, 40),
        st.one_of(
            st.tuples(st.just(STRUCT), inner),
            st.tuples(st.just(LIST), st.lists(inner, max_size=20).map(lambda v: Items(STRUCT, v))),
        ),
        max_size=4,
    ),
    max_leaves=8,
)


def footer(table: pa.Table, **options: object) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, **options)
    data: bytes = sink.getvalue().to_pybytes()
    return data[-8 - int.from_bytes(data[-8:-4], "little") : -8]


@pytest.mark.parametrize(
    "options",
    [{}, {"row_group_size": 3}, {"write_page_index": True}, {"version": "1.0"}],
    ids=str,
)
def test_a_footer_is_written_as_it_was(options: dict[str, object]) -> None:
    columns = {f"c{i}": list(range(i, i + 20)) for i in range(20)}
    table = pa.table(columns | {"text": ["é"] * 20, "lists": [[0.5, None]] * 20, "b": [True] * 20})
    data = footer(table, **options)
    assert dumps(loads(data)) == data


@given(_STRUCTS)
def test_what_is_written_is_read(value: Struct) -> None:
    assert loads(dumps(value)) == value


def test_whatever_is_cut_off_is_not_a_structure() -> None:
    data = footer(pa.table({"text": ["a", "b"], "n": [1, 2]}))
    for end in range(len(data)):
        with pytest.raises(ValueError):
            loads(data[:end])
    with pytest.raises(ValueError, match="data after"):
        loads(data + b"\0")


@given(st.binary(max_size=200))
def test_no_other_error_on_any_bytes(data: bytes) -> None:
    with suppress(ValueError):
        loads(data)


def test_nothing_is_allocated_on_the_word_of_the_data() -> None:
    for data in (
        b"\x19\xf5\xff\xff\xff\xff\x07\0",
        b"\x18\xff\xff\xff\xff\x07\0",
        b"\x1c" * 10_000,
    ):
        with pytest.raises(ValueError):
            loads(data)
