import gzip
import hashlib
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from paraloom.beam_jobs import ingest
from paraloom.beam_jobs.io import schema
from paraloom.beam_jobs.io.bitext import Format, Paths, find_bitext, read_bitext
from paraloom.beam_jobs.io.shards import Saved, receipts
from paraloom.beam_jobs.runners.launch import Result
from paraloom.beam_jobs.transforms.conditions import parse_condition
from paraloom.models.errors import UserError
from paraloom.models.nmt.families.base import Languages

ONE = ["--direct_num_workers", "1"]


def run(
    paths: Paths, out: Path, format: Format = "tsv", key: str = "key", shard_rows: int = 3
) -> Result:
    return ingest.run(
        find_bitext(format, paths),
        str(out),
        key,
        shard_rows=shard_rows,
        max_characters=50,
        arguments=ONE,
    )


def tables(result: Result) -> list[pa.Table]:
    shards = [s for receipt in result.receipts for s in receipt.shards]
    apart = [s for receipt in result.receipts for s in receipt.rejected_shards]
    return [pa.concat_tables([pq.read_table(s.path) for s in some]) for some in (shards, apart)]


@pytest.fixture
def tsv(tmp_path: Path) -> Callable[..., str]:
    def write(name: str, *lines: str) -> str:
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return str(tmp_path / name)

    return write


def test_pairs_go_on_and_bad_rows_are_set_apart_in_the_order_of_the_input(
    tmp_path: Path, tsv: Callable[..., str]
) -> None:
    one = tsv("a.tsv", "1\tpes\tdog", "2\tkočka", "3\t\tcat", "4\tkůň\thorse")
    two = tsv("b.tsv", "5\tmyš\tmouse")
    result = run([one, two], tmp_path / "ingest")
    pairs, rejected = tables(result)
    assert pairs.schema == schema.INGEST
    assert rejected.schema == schema.INGEST_REJECTED
    assert pairs["id"].to_pylist() == ["1", "4", "5"]
    assert pairs["source"].to_pylist() == ["pes", "kůň", "myš"]
    assert rejected["row"].to_pylist() == [2, 3]
    assert [r.rows_in for r in result.receipts] == [4, 1]
    assert [len(r.shards) for r in result.receipts] == [2, 1]


def test_of_rows_with_the_same_id_the_first_one_stays(
    tmp_path: Path, tsv: Callable[..., str]
) -> None:
    one = tsv("a.tsv", "x\ta\tA", "y\tb\tB", "x\tc\tC", "z\td\tD", "x\te\tE")
    two = tsv("b.tsv", "z\tf\tF", "w\tg\tG")
    pairs, rejected = tables(run([one, two], tmp_path / "ingest"))
    assert pairs["source"].to_pylist() == ["a", "b", "d", "g"]
    assert rejected.to_pylist() == [
        {"id": "x", "row": 3, "text": "c\tC", "reason": "duplicate id"},
        {"id": "x", "row": 5, "text": "e\tE", "reason": "duplicate id"},
        {"id": "z", "row": 1, "text": "f\tF", "reason": "duplicate id"},
    ]


def test_rejected_rows_of_all_kinds_are_in_the_order_of_the_input(
    tmp_path: Path, tsv: Callable[..., str]
) -> None:
    path = tsv("a.tsv", "x\ta\tA", "x\tb\tB", "bad", "x\tc\tC", "y\t\tD")
    _, rejected = tables(run([path], tmp_path / "ingest", shard_rows=9))
    assert rejected["row"].to_pylist() == [2, 3, 4, 5]


def test_an_id_of_a_rejected_row_is_free(tmp_path: Path, tsv: Callable[..., str]) -> None:
    pairs, rejected = tables(run([tsv("a.tsv", "x\ta\t", "x\tb\tB")], tmp_path / "ingest"))
    assert pairs["source"].to_pylist() == ["b"]
    assert rejected["reason"].to_pylist() == ["empty reference"]


def test_a_shard_of_bad_rows_only(tmp_path: Path, tsv: Callable[..., str]) -> None:
    result = run([tsv("a.tsv", "1\ta\tA", "x", "y", "z")], tmp_path / "ingest", shard_rows=2)
    assert [s.rows for s in result.receipts[0].shards] == [1, 0]
    assert result.receipts[0].rows_out == 1


def test_a_file_that_ends_too_early_is_not_taken_for_whole(
    tmp_path: Path, tsv: Callable[..., str]
) -> None:
    text = "".join(f"{i}\tzdroj {i}\tsource {i}\n" for i in range(5000)).encode()
    path = tmp_path / "a.tsv.gz"
    path.write_bytes(gzip.compress(text)[:-2000])
    with pytest.raises(UserError, match=r"a.tsv.gz: truncated gzip"):
        run([str(path)], tmp_path / "ingest", shard_rows=1000)
    assert receipts(str(tmp_path / "ingest")) == []
    path.write_bytes(gzip.compress(text))
    result = run([str(path)], tmp_path / "ingest", key="another", shard_rows=1000)
    assert result.receipts[0].rows_out == 5000


def test_moses_sides_of_different_length(tmp_path: Path, tsv: Callable[..., str]) -> None:
    sides: Paths = {"source": tsv("a.cs", "a", "b"), "reference": tsv("a.en", "A")}
    with pytest.raises(UserError, match=r"a.cs has 2 lines but .*a.en has 1 lines"):
        run(sides, tmp_path / "ingest", format="moses")


def test_larger_shards_leave_no_parts_of_the_smaller_ones(
    tmp_path: Path, tsv: Callable[..., str]
) -> None:
    path = tsv("a.tsv", *(f"{i}\ta\tA" for i in range(9)))
    run([path], tmp_path / "ingest", key="small", shard_rows=2)
    result = run([path], tmp_path / "ingest", key="large", shard_rows=5)
    files = sorted(p.name for p in (tmp_path / "ingest").glob("*.parquet"))
    assert files == [shard.file for shard in result.receipts[0].shards]
    assert len(files) == 2


WORDS = st.sampled_from(["a", "b", "c d", "E."])


@settings(
    max_examples=10,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    files=st.lists(
        st.lists(st.tuples(st.sampled_from("xyzuvw"), WORDS, WORDS), min_size=1, max_size=7),
        min_size=1,
        max_size=3,
    )
)
def test_unique_pairs_and_conditions_against_a_plain_loop(
    tmp_path: Path, files: list[list[tuple[str, str, str]]]
) -> None:
    shutil.rmtree(tmp_path)
    tmp_path.mkdir()
    paths = []
    for number, rows in enumerate(files):
        paths.append(str(tmp_path / f"{number}.tsv"))
        Path(paths[-1]).write_text("".join(f"{i}\t{s}\t{r}\n" for i, s, r in rows))
    ids: set[str] = set()
    first: dict[tuple[str, str], str] = {}
    accepted, reasons = [], []
    for id, source, reference in (row for rows in files for row in rows):
        pair = source, reference
        if id in ids:
            reasons.append("duplicate id")
        elif len(source.split()) > 1:
            reasons.append("not source_tokens <= 1")
        elif pair in first:
            reasons.append(f"repeats the pair {first[pair]}")
        else:
            accepted.append(id)
            first[pair] = id
        ids.add(id)

    def made(folder: str, *beam: str) -> Result:
        return ingest.run(
            find_bitext("tsv", paths), str(tmp_path / folder), "key",
            shard_rows=3, max_characters=50, arguments=beam or ONE,
            where=[parse_condition("source_tokens <= 1")], unique_pairs=True,
        )  # fmt: skip

    result = made("out")
    shards = [pq.read_table(s.path) for r in result.receipts for s in r.shards]
    apart = [pq.read_table(s.path) for r in result.receipts for s in r.rejected_shards]
    found = pa.concat_tables([schema.INGEST_REJECTED.empty_table(), *apart])
    assert pa.concat_tables(shards)["id"].to_pylist() == accepted
    assert found["reason"].to_pylist() == reasons
    counts = Counter(r.partition(" pair ")[0] + " pair" if " pair " in r else r for r in reasons)
    assert sum((Counter(r.rejected) for r in result.receipts), Counter()) == counts
    saved = [receipt.numbers.saved for receipt in result.receipts]
    for key, reason, tokens in (
        ("input.where", "not source_tokens <= 1", counts["not source_tokens <= 1"] * 2),
        ("input.unique", "repeats the pair", counts["repeats the pair"]),
    ):
        assert sum(of[key].rows for of in saved) == counts[reason]
        assert sum(of[key].tokens for of in saved) >= tokens  # of the sources
    (tmp_path / "out" / "receipts" / f"{result.receipts[-1].name}.json").unlink()
    again = made("out")
    assert [r.shards for r in again.receipts] == [r.shards for r in result.receipts]


def test_a_row_is_rejected_and_counted_for_the_first_reason(
    tmp_path: Path, tsv: Callable[..., str]
) -> None:
    rows = ["1\tč. 5\tx", "2\tč. 5\tx", "3\tb c\ty z", "4\tb c\ty z"]
    result = ingest.run(
        find_bitext("tsv", [tsv("a.tsv", *rows)]), str(tmp_path / "out"), "key",
        shard_rows=1, max_characters=50, arguments=ONE, unique_pairs=True,
        where=[parse_condition("reference_tokens >= 2")], languages=Languages("cs", "en"),
    )  # fmt: skip
    (receipt,) = result.receipts
    assert receipt.rejected == {"not reference_tokens >= 2": 2, "repeats the pair": 1}
    assert receipt.numbers.saved == {
        "input.where": Saved(rows=2, tokens=4),  # č. is one token in Czech, two in English
        "input.unique": Saved(rows=1, tokens=2),
    }


def test_workers_reject_the_same_rows(tmp_path: Path, tsv: Callable[..., str]) -> None:
    lines = [f"{n}\t{'ab'[n % 2]} {n % 5}\tx {n % 3}" for n in range(40)]
    paths = [tsv("a.tsv", *lines[:25]), tsv("b.tsv", *lines[25:])]

    def made(folder: str, *beam: str) -> Result:
        return ingest.run(
            find_bitext("tsv", paths), str(tmp_path / folder), "key",
            shard_rows=3, max_characters=50, arguments=beam,
            where=[parse_condition("source_letters >= 0.1")], unique_pairs=True,
        )  # fmt: skip

    one, two = made("one", *ONE), made("two", "--direct_num_workers", "2")
    assert [t.to_pylist() for t in tables(one)] == [t.to_pylist() for t in tables(two)]
    assert [r.numbers.saved for r in one.receipts] == [r.numbers.saved for r in two.receipts]


@pytest.mark.parametrize(("format", "pack"), [("tsv", bytes), ("moses", gzip.compress)])
def test_rows_of_a_file_that_changed_are_not_written(
    tmp_path: Path, format: Format, pack: Callable[[bytes], bytes]
) -> None:
    path, other = tmp_path / "a", tmp_path / "b"
    path.write_bytes(pack(b"1\tpes\tdog\n" * 9))
    other.write_bytes(path.read_bytes())
    paths: Paths = {"source": str(other), "reference": str(path)}
    if format == "tsv":
        paths = [str(path)]
    (bitext,) = find_bitext(format, paths)
    digests = (hashlib.sha256(Path(p).read_bytes()).hexdigest() for p in bitext.paths)
    bitext = replace(bitext, sha256=tuple(digests))

    def ingested() -> Result:
        return ingest.run(
            [bitext],
            str(tmp_path / "ingest"),
            "key",
            shard_rows=3,
            max_characters=50,
            arguments=ONE,
        )

    before = path.read_bytes()
    path.write_bytes(pack(b"1\tpes\tDOG\n" * 9))
    with pytest.raises(UserError, match=rf"{path}: changed while the run read it; the same"):
        ingested()
    assert receipts(str(tmp_path / "ingest")) == []
    path.write_bytes(before)
    assert ingested().receipts[0].rows_in == 9


def test_a_file_that_grows_while_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("pes\tdog\n" * 9)
    (bitext,) = find_bitext("tsv", [str(path)])
    bitext = replace(bitext, sha256=(hashlib.sha256(path.read_bytes()).hexdigest(),))
    found = read_bitext(bitext, rows=1, max_characters=50)
    next(found)
    with path.open("a") as stream:
        stream.write("kůň\thorse\n")
    with pytest.raises(UserError, match="changed while the run read it"):
        list(found)
    path.write_text("pes\tdog\n" * 9)
    assert len(list(read_bitext(bitext, rows=1, max_characters=50))) == 9


def test_a_file_in_ranges_gives_the_files_and_rows_of_the_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ids repeat, rows are invalid, and pairs repeat within ranges and over their ends."""
    lines = [f"{i % 37}\t{i % 5} pes\tdog {i % 11}" if i % 7 != 3 else "bad" for i in range(101)]
    paths = []
    for name, pack in (("a.tsv", bytes), ("b.tsv.gz", gzip.compress)):
        paths.append(str(tmp_path / name))
        halves = ["".join(f"{line}\n" for line in half) for half in (lines[:55], lines[55:])]
        Path(paths[-1]).write_bytes(b"".join(pack(half.encode()) for half in halves))

    def made(folder: str, shards_per_unit: int) -> Result:
        monkeypatch.setattr(ingest, "_SHARDS_PER_UNIT", shards_per_unit)
        return ingest.run(
            find_bitext("tsv", paths), str(tmp_path / folder), "key",
            shard_rows=8, max_characters=50, arguments=ONE, unique_pairs=True,
        )  # fmt: skip

    whole, split = made("whole", 1000), made("split", 2)
    assert [receipt.name for receipt in whole.receipts] == ["part-00000", "part-00001"]
    names = [receipt.name for receipt in split.receipts]
    assert names[:7] == [f"part-00000-{number:05d}" for number in range(0, 13, 2)]
    assert names[7:] == ["part-00001-00000", "part-00001-00008"]  # members
    for folder in ("", "rejected"):
        files = ((tmp_path / name / folder).glob("*.parquet") for name in ("whole", "split"))
        assert sorted(p.name for p in next(files)) == sorted(p.name for p in next(files))
    both = [[s for r in result.receipts for s in r.shards] for result in (whole, split)]
    one, other = ([(s.name, s.rows, s.digest) for s in shards] for shards in both)
    assert one == other  # of which the stage's digest is made

    (tmp_path / "split" / "receipts" / f"{names[2]}.json").unlink()  # a worker was lost
    stamps = {p: p.stat().st_mtime_ns for p in (tmp_path / "split").rglob("*.parquet")}
    made("split", 2)
    again = {str(path) for path, before in stamps.items() if path.stat().st_mtime_ns != before}
    assert again == set(split.receipts[2].paths)

    before = sorted((tmp_path / "whole" / "receipts").iterdir())  # as of an earlier version
    stamps = {path: path.stat().st_mtime_ns for path in before}
    assert made("whole", 2).receipts == whole.receipts
    assert {path: path.stat().st_mtime_ns for path in before} == stamps


def test_a_file_of_empty_lines_ends_the_run_in_ranges_too(
    tmp_path: Path, tsv: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingest, "_SHARDS_PER_UNIT", 1)
    with pytest.raises(UserError, match=r"a.gz: no rows"):
        run([tsv("a.gz", *9 * [""])], tmp_path / "ingest", "czeng20")
