"""Files of scores: their forms give the same rows, and what is wrong with them is one line."""

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paraloom.beam_jobs import storage
from paraloom.beam_jobs.transforms.score_files import find_score_files, read_scores
from paraloom.models.errors import UserError

PAIRS: list[tuple[str, float]] = [('a "x', 0.5), ("č ", -1.25), ("c", float("nan"))]
PLAIN = 'a "x\t0.5\nč \t-1.25\nc\tnone\n'


def rows(
    path: Path | str | list[str], name: str = "comet", *, candidates: bool = False
) -> list[tuple[str, float]]:
    paths = [str(path)] if isinstance(path, Path) else path
    found: list[tuple[str, float]] = []
    for file in find_score_files(name, paths, candidates=candidates):
        for ids, values in read_scores(file):
            assert values.dtype == np.float32
            found += zip(ids.to_pylist(), values.tolist(), strict=True)
    return found


def same(found: list[tuple[str, float]], wanted: list[tuple[str, float]] = PAIRS) -> bool:
    return str(found) == str(wanted)  # NaN is NaN


@pytest.mark.parametrize(
    "text",
    [
        PLAIN, "\ufeff" + PLAIN.replace("\n", "\r\n") + "\n\n", PLAIN.rstrip("\n"),
        "id\tcomet\n" + PLAIN, "id\tscore\n" + PLAIN,
        "n\tcomet\tid\tscore\n" + '1\t0.5\ta "x\t7\n2\t-1.25\tč \t8\n3\tNaN\tc\t9',
    ],
)  # fmt: skip
@pytest.mark.parametrize("zipped", [False, True])
def test_forms_of_text(tmp_path: Path, text: str, zipped: bool) -> None:
    path = tmp_path / "scores"
    path.write_bytes(gzip.compress(text.encode()) if zipped else text.encode())
    assert same(rows(path))


IDS, VALUES = zip(*PAIRS, strict=True)


@pytest.mark.parametrize(
    ("ids", "values", "wanted"),
    [
        (pa.array(IDS), pa.array([0.5, -1.25, None]), PAIRS),
        (pa.array(IDS, pa.large_string()), pa.array(VALUES, pa.float16()), PAIRS),
        (pa.array(IDS).dictionary_encode(), pa.array(["0.5", "-1.25", "nan"]), PAIRS),
        (
            pa.array([1, None]),
            pa.array([3.0, 4.0]).cast(pa.decimal128(5, 2)),
            [("1", 3.0), ("", 4.0)],
        ),
        (pa.array([]), pa.array([]), []),
    ],
    ids=range(5),
)
@pytest.mark.parametrize("name", ["comet", "score"])
def test_forms_of_parquet(
    tmp_path: Path, ids: pa.Array, values: pa.Array, wanted: list[tuple[str, float]], name: str
) -> None:
    table = pa.table({"note": ["x"] * len(ids), "id": ids, name: values})
    pq.write_table(table, tmp_path / "a.pq", row_group_size=2)
    assert same(rows(tmp_path / "a.pq"), wanted)


def test_candidates(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("a\t0\t0.5\na\t1\t0.25\n")
    (tmp_path / "b.tsv").write_text("candidate\tcomet\tid\n0\t0.5\tb\n")
    table = pa.table({"id": ["c"], "candidate": pa.array([1], pa.int8()), "score": [1]})
    pq.write_table(table, tmp_path / "c.tsv")
    wanted = [("a 0", 0.5), ("a 1", 0.25), ("b 0", 0.5), ("c 1", 1.0)]
    assert rows([str(tmp_path / "?.tsv")], candidates=True) == wanted
    for name in "bc":
        with pytest.raises(UserError, match=f"{name}.tsv: has a column candidate, but this run"):
            rows(tmp_path / f"{name}.tsv")


def test_a_file_that_two_globs_match_is_read_once(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("a\t1\n")
    assert rows([f"{tmp_path}/*.tsv", f"{tmp_path}/a.*"]) == [("a", 1.0)]
    with pytest.raises(UserError, match=r"score\.columns\.comet: names no file"):
        rows([])
    with pytest.raises(UserError, match="no file matches"):
        rows([f"{tmp_path}/*.gz"])


def parquet(**columns: list[Any]) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns).rename_columns([name.strip("_") for name in columns]), sink)
    return bytes(sink.getvalue())


TWICE = parquet(id=["a"], comet=[1.0], comet_=[2.0])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"a\t1\nb\xff\t2\t3\n", "Expected 2 columns, got 3"),
        ("a\t1\t2\nb\t1\n", "lacks the column id; it has a, 1, 2 (a file"),
        ("id\tvalue\na\t1\n", "lacks the column comet or score; it has id, value"),
        (b"", "no rows, the file is empty"),
        (b"PAR1 and no more", "truncated or corrupt"),
        (gzip.compress(b"a\t1\n" * 100_000)[:-20], "truncated or corrupt gzip"),
        ("a\t1\nb\tbad\n", "invalid value 'bad'"),
        (parquet(id=["a"], comet=[[1.0]]), "truncated or corrupt"),
        (parquet(key=["a"], comet=[1.0]), "lacks the column id; it has key, comet"),
        (TWICE, "the column comet occurs twice"),
        ("id\tcomet\tcomet\na\t1\t2\n", "the column comet occurs twice"),
    ],
    ids=range(11),
)
def test_what_cannot_be_read(tmp_path: Path, data: str | bytes, message: str) -> None:
    path = tmp_path / "scores"
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    with pytest.raises(UserError) as error:
        rows(path)
    assert str(error.value).startswith(f"{path}: ")
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_in_an_object_store(bucket: str, tmp_path: Path) -> None:
    storage.write_bytes(f"{bucket}/a.gz", gzip.compress(PLAIN.encode()))
    pq.write_table(pa.table({"id": ["d"], "score": [0.5]}), tmp_path / "b")
    storage.write_bytes(f"{bucket}/b.parquet", (tmp_path / "b").read_bytes())
    assert same(rows([f"{bucket}/*"]), [*PAIRS, ("d", 0.5)])
    with pytest.raises(UserError, match=r"c\.tsv: no such file"):
        rows([f"{bucket}/c.tsv"])
