"""Values of files are found by id: as a dictionary would, whatever the order of their rows."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paraloom.models.files import digest
from paraloom.models.hashing import text_hashes
from paraloom.models.scorers import columns
from paraloom.models.scorers.columns import MISSING, SEVERAL, find, store

IDS = st.text("abcč .:0", min_size=1, max_size=4)
VALUES = st.floats(width=32, allow_nan=True)
ROWS = st.lists(st.tuples(IDS, VALUES), max_size=40)


def stored(folder: Path, rows: list[tuple[str, float]], block: int = 7) -> int:
    def blocks() -> Iterator[tuple[pa.Array, np.ndarray]]:
        for start in range(0, len(rows), block):
            ids, values = zip(*rows[start : start + block], strict=True)
            yield pa.array(ids, pa.string()), np.array(values, np.float32)

    return store(folder, blocks())


def joined(rows: list[tuple[str, float]], asked: list[str]) -> list[tuple[float, str]]:
    """The join written out."""
    values: dict[str, list[float]] = {}
    for key, value in rows:
        values.setdefault(key, []).append(value)
    reasons = (MISSING, "", SEVERAL)
    found = [values.get(key, []) for key in asked]
    return [(v[0] if len(v) == 1 else np.nan, reasons[min(len(v), 2)]) for v in found]


@given(rows=ROWS, asked=st.lists(IDS, max_size=40))
@settings(max_examples=20)
@pytest.mark.parametrize("bits", [64, 2], ids=["", "hashes that meet"])
def test_equal_to_a_dictionary(
    tmp_path_factory: pytest.TempPathFactory,
    bits: int,
    rows: list[tuple[str, float]],
    asked: list[str],
) -> None:
    def few(texts: pa.Array, seed: int = 0) -> np.ndarray:
        whole = text_hashes(texts, seed)
        return whole if seed else whole >> np.uint64(64 - bits) << np.uint64(64 - bits)

    folder = tmp_path_factory.mktemp("columns")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns, "text_hashes", few)
        assert stored(folder / "c", rows) == len(rows)
        values, reasons = find(folder / "c", pa.array(asked, pa.string()))
    wanted = joined(rows, asked)
    assert reasons is not None
    assert [*reasons] == [reason for _, reason in wanted]
    np.testing.assert_array_equal(values, np.array([value for value, _ in wanted], np.float32))


def test_the_files_depend_on_the_rows_not_on_their_order(tmp_path: Path) -> None:
    rows = [(f"id-{i % 500}", float(i)) for i in range(600)]
    stored(tmp_path / "a", rows)
    stored(tmp_path / "b", rows[::-1], block=100)
    stored(tmp_path / "c", [*rows[1:], ("id-0", -1.0)])
    assert digest(tmp_path / "a") == digest(tmp_path / "b") != digest(tmp_path / "c")
