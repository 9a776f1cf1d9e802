"""Ingest: what goes on, what is set apart, and ids that stay while files and rows come and go."""

import bz2
import gzip
import hashlib
import json
import lzma
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import xxhash

from paraloom.beam_jobs import ingest
from paraloom.beam_jobs.bitext import Format, Paths, find_bitext
from paraloom.beam_jobs.bitext import lines as bitext_lines
from paraloom.beam_jobs.bitext.rows import Layout
from paraloom.beam_jobs.engine import schema
from paraloom.beam_jobs.engine.launch import Result
from paraloom.beam_jobs.engine.shards import Saved, read_shard, receipts
from paraloom.beam_jobs.ingest import IngestMeasurements, Reading, _ids, _units
from paraloom.beam_jobs.transforms.conditions import Predicate
from paraloom.beam_jobs.transforms.equal_texts import counted_if_shared
from paraloom.models.errors import UserError
from paraloom.models.nmt.families.base import Languages
from tests.beam_jobs.bitext.test_bitext import made_id
from tests.growth import WRITERS, Files, Pair, Write, change, write_files
from tests.run_helpers import Patch, calls_of
from tests.shards import ONE, shards_of


def run(
    paths: Paths, out: Path, format: Format = "tsv", beam: Sequence[str] = ONE, **reading: Any
) -> Result:
    found = Reading(**{"shard_rows": 3, "max_characters": 50, **reading})
    return ingest.run(find_bitext(format, paths), str(out), f"key of {reading}", found, beam)


def tables(result: Result) -> list[pa.Table]:
    both = (shards_of(result, rejected=apart) for apart in (False, True))
    return [pa.concat_tables(map(read_shard, shards)) for shards in both]


@pytest.fixture
def tsv(tmp_path: Path) -> Callable[..., str]:
    def write(name: str, *lines: str) -> str:
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return str(tmp_path / name)

    return write


def test_pairs_go_on_and_bad_rows_are_set_apart_in_the_order_of_the_input(
    tmp_path: Path, tsv: Callable[..., str]
) -> None:
    lines = ["1\tpes\tdog", "2\tkočka", "1\ta\tA", "3\t\tcat", "3\tkůň\thorse", "x", "x", "y", "z"]
    one = tsv("a.tsv", *lines)  # the id of a rejected row is free
    two = tsv("b.tsv", "5\tmyš\tmouse", "1\tb\tB")
    result = run([one, two], tmp_path / "ingest")
    pairs, rejected = tables(result)
    assert (pairs.schema, rejected.schema) == (schema.INGEST, schema.INGEST_REJECTED)
    assert pairs["id"].to_pylist() == ["1", "3", "5"]
    assert pairs["source"].to_pylist() == ["pes", "kůň", "myš"]
    assert [r.rows_in for r in result.receipts] == [9, 2]
    assert [[s.rows for s in r.shards] for r in result.receipts] == [[1, 1, 0], [1]]
    assert rejected["row"].to_pylist() == [2, 3, 4, 6, 7, 8, 9, 2]
    assert [row for row in rejected.to_pylist() if row["id"] == "1"] == [
        {"id": "1", "row": 3, "text": "a\tA", "reason": "duplicate id"},
        {"id": "1", "row": 2, "text": "b\tB", "reason": "duplicate id"},
    ]


def test_unique_pairs_and_conditions_against_a_plain_loop(tmp_path: Path) -> None:
    """Also resumed, and with two workers."""
    random, paths, rows = Random(1), [], []
    for number in range(4):
        of_file = [
            (str(random.randrange(150)), random.choice("ab") + random.choice(["", " c"]), text)
            for text in random.choices(["x", "y", "z w", "E."], k=random.randrange(1, 40))
        ]
        paths.append(str(tmp_path / f"{number}.tsv"))
        Path(paths[-1]).write_text("".join("\t".join(row) + "\n" for row in of_file))
        rows += of_file
    ids: set[str] = set()
    first: set[tuple[str, str]] = set()
    accepted, reasons = [], []
    for id, source, reference in rows:
        pair = source, reference
        if id in ids:
            reasons.append("duplicate id")
        elif len(source.split()) > 1:
            reasons.append("not source_tokens <= 1")
        elif pair in first:
            reasons.append("repeats an earlier pair")
        else:
            accepted.append(id)
            first.add(pair)
        ids.add(id)

    where = (Predicate.parse("source_tokens <= 1"),)
    result = run(paths, tmp_path / "out", where=where, unique_pairs=True)
    pairs, found = tables(result)
    assert pairs["id"].to_pylist() == accepted
    assert found["reason"].to_pylist() == reasons
    counts = Counter(reasons)
    assert min(counts.values()) >= 5
    rejected = sum((Counter(r.rejected) for r in result.receipts), Counter[str]())
    assert rejected == counts
    (tmp_path / "out" / "_receipts" / f"{result.receipts[-1].name}.json").unlink()
    two = ["--direct_num_workers", "2"]
    for place, workers in (("out", ONE), ("two", two)):
        again = run(paths, tmp_path / place, beam=workers, where=where, unique_pairs=True)
        assert [s.digest for s in shards_of(again)] == [s.digest for s in shards_of(result)]
        assert tables(again) == [pairs, found]
        saved = ([receipt.numbers["saved"] for receipt in of.receipts] for of in (result, again))
        assert next(saved) == next(saved)


def test_a_row_is_rejected_for_its_first_reason(tmp_path: Path, tsv: Callable[..., str]) -> None:
    rows = ["1\tč. 5\tx", "2\tč. 5\tx", "3\tb c\ty z", "4\tb c\ty z"]
    where = (Predicate.parse("reference_tokens >= 2"),)
    of: dict[str, Any] = {"unique_pairs": True, "where": where, "languages": Languages("cs", "en")}
    (receipt,) = run([tsv("a.tsv", *rows)], tmp_path / "out", shard_rows=1, **of).receipts
    assert receipt.rejected == {"not reference_tokens >= 2": 2, "repeats an earlier pair": 1}
    assert receipt.measured(IngestMeasurements).saved == {
        "input.where": Saved(rows=2, tokens=4),  # č. is one token in Czech, two in English
        "input.unique": Saved(rows=1, tokens=2),
    }


def test_a_pair_repeats_only_rows_that_meet_the_conditions(tmp_path: Path) -> None:
    rows = [{"source": "a", "reference": "A", "domain": of} for of in ("ads", "news", "news")]
    (tmp_path / "a.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    bitexts = find_bitext("jsonl", [str(tmp_path / "a.jsonl")], Layout(keep=("domain",)))
    where = (Predicate.parse("domain = news"),)
    reading = Reading(shard_rows=2, max_characters=50, where=where, unique_pairs=True)
    result = ingest.run(bitexts, str(tmp_path / "out"), "", reading, ONE)
    reasons = tables(result)[1]["reason"].to_pylist()
    assert reasons == ["not domain = news", "repeats an earlier pair"]


def test_a_file_that_is_empty_when_a_worker_reads_it_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "a.tmx"
    sides = "".join(f"<tuv xml:lang='{code}'><seg>a</seg></tuv>" for code in ("cs", "en"))
    path.write_text(f"<tmx><body><tu>{sides}</tu></body></tmx>")
    bitexts = find_bitext("tmx", [str(path)])
    path.write_bytes(b"")  # a download begins again
    with pytest.raises(UserError, match=f"^{path}: no rows, the file is empty$"):
        ingest.run(bitexts, str(tmp_path / "out"), "", Reading(shard_rows=2, max_characters=9), ONE)


def test_rows_of_a_file_that_changed_are_not_written(tmp_path: Path) -> None:
    path, other = tmp_path / "a", tmp_path / "b"
    text = b"1\tpes\tdog\n" * 9
    for each in (path, other):
        each.write_bytes(gzip.compress(text))
    (bitext,) = find_bitext("moses", {"source": str(other), "reference": str(path)})
    bitext = replace(bitext, sha256=(hashlib.sha256(path.read_bytes()).hexdigest(),) * 2)
    path.write_bytes(gzip.compress(text.upper()))
    reading = Reading(shard_rows=3, max_characters=50)
    with pytest.raises(UserError, match=rf"{path}: changed while the run read it; repeat the"):
        ingest.run([bitext], str(tmp_path / "ingest"), "", reading, ONE)
    assert receipts(str(tmp_path / "ingest")) == []


def zstd(text: bytes) -> bytes:
    return bytes(pa.Codec("zstd").compress(text, asbytes=True))


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress, zstd])
def test_a_file_in_ranges_gives_the_files_and_rows_of_the_whole(
    tmp_path: Path, monkeypatch: Patch, compress: Callable[[bytes], bytes]
) -> None:
    """Ids repeat, rows are invalid, and pairs repeat within ranges and over their ends. Ranges of a
    compressed file are copied while it is indexed, whatever they look like."""
    lines = [f"{i % 37}\t{i % 5} pes\tdog {i % 11}" if i % 7 != 3 else "bad" for i in range(101)]
    lines[16], lines[32] = "%PDF-\tpes\tdog", "\ufeff32\tpes\tdog"  # ranges begin here
    paths = []
    for name, pack in (("a.tsv", bytes), ("b.tsv.packed", compress)):
        paths.append(str(tmp_path / name))
        halves = ["".join(f"{line}\n" for line in half) for half in (lines[:55], lines[55:])]
        Path(paths[-1]).write_bytes(b"".join(pack(half.encode()) for half in halves))

    def made(folder: str, shards_per_unit: int) -> Result:
        monkeypatch.setattr(ingest, "_SHARDS_PER_UNIT", shards_per_unit)
        return run(paths, tmp_path / folder, shard_rows=8, unique_pairs=True)

    left = tmp_path / "split" / "_spans" / ".00000-0-00007.7b06833f"  # by a killed command
    left.parent.mkdir(parents=True)
    left.touch()
    whole, split = made("whole", 1000), made("split", 2)
    assert [receipt.name for receipt in whole.receipts] == ["part-00000", "part-00001"]
    names = [receipt.name for receipt in split.receipts]
    assert names == [f"part-0000{file}-{of:05d}" for file in (0, 1) for of in range(0, 13, 2)]
    assert not list(tmp_path.glob("*/_spans/*"))
    for folder in ("", "rejected"):
        files = ((tmp_path / name / folder).glob("*.parquet") for name in ("whole", "split"))
        assert sorted(p.name for p in next(files)) == sorted(p.name for p in next(files))
    one, other = ([(s.name, s.rows, s.digest) for s in shards_of(of)] for of in (whole, split))
    assert one == other  # of which the stage's digest is made

    (tmp_path / "split" / "_receipts" / f"{names[2]}.json").unlink()  # a worker was lost
    stamps = {p: p.stat().st_mtime_ns for p in (tmp_path / "split").rglob("*.parquet")}
    opened = calls_of(monkeypatch, bitext_lines, "open_file")
    made("split", 2)
    assert opened.count(paths[1]) == 2  # described, and indexed
    again = {str(path) for path, before in stamps.items() if path.stat().st_mtime_ns != before}
    assert again == set(split.receipts[2].paths)


def test_only_files_of_empty_lines_end_the_run(
    tmp_path: Path, tsv: Callable[..., str], monkeypatch: Patch
) -> None:
    monkeypatch.setattr(ingest, "_SHARDS_PER_UNIT", 1)
    empty = tsv("a.gz", *9 * [""])
    with pytest.raises(UserError, match=r"a.gz: no rows"):
        run([empty], tmp_path / "ingest", "czeng20")
    result = run([empty, tsv("b", "i\t1\t1\t1\ta\tb"), empty], tmp_path / "both", "czeng20")
    assert sum(receipt.rows_out for receipt in result.receipts) == 1


def objects(path: Path, *rows: tuple[Any, str, str]) -> str:
    """A file of JSON Lines; without an id if it is ...."""
    names = ("id", "source", "reference")
    lines = (
        {name: of for name, of in zip(names, row, strict=True) if of is not ...} for row in rows
    )
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return str(path)


def test_ids_that_nobody_named_cost_no_row(tmp_path: Path) -> None:
    """An id that only one row has is its id; what others share is made unique by the texts."""
    one = [(1, "a", "A"), ("1", "a", "B"), (2, "b", "B"), (..., "c", "C"), (None, "c", "C")]
    two = [(1, "a", "A"), (3, "c", "C"), (" ", "c", "C"), ([1], "d", "D"), ("x\ty", "e", "E")]
    paths = [objects(tmp_path / f"{n}.jsonl", *rows) for n, rows in enumerate((one, two))]
    result = run(paths, tmp_path / "out", "jsonl", shard_rows=2)
    assert not shards_of(result, rejected=True)
    pairs = pa.concat_tables(map(read_shard, shards_of(result)))
    a, b, c, d, e = (made_id(*of) for of in ("aA", "aB", "cC", "dD", "eE"))
    assert pairs.schema == schema.INGEST
    assert pairs["id"].to_pylist() == [
        f"1-{a}", f"1-{b}", "2", c, f"{c}-2", f"1-{a}-2", "3", f"{c}-3", d, e
    ]  # fmt: skip
    pairs, rejected = tables(run(paths, tmp_path / "unique", "jsonl", unique_pairs=True))
    assert pairs["id"].to_pylist() == [f"1-{a}", f"1-{b}", "2", c, d, e]
    assert set(rejected["reason"].to_pylist()) == {"repeats an earlier pair"}


def test_ids_of_the_texts_beside_ids_of_the_user(tmp_path: Path, tsv: Callable[..., str]) -> None:
    """Files with ids that count beside files without; an id of the one may be in the other."""
    made = made_id("a", "A")
    one = tsv("a.tsv", "a\tA", "b\tB", "a\tA", "a\tA")
    two = tsv("b.tsv", "1\ta\tA", f"{made}-3\tx\tX", "1\ty\tY")
    pairs, rejected = tables(run([one, two], tmp_path / "out", shard_rows=2))
    ids = [made, made_id("b", "B"), f"{made}-2", f"{made}-3", "1"]
    assert pairs["id"].to_pylist() == ids
    assert [(row["id"], row["row"], row["reason"]) for row in rejected.to_pylist()] == [
        (f"{made}-3", 2, "duplicate id"), ("1", 3, "duplicate id")
    ]  # fmt: skip
    two_workers = ["--direct_num_workers", "2"]
    again = run([one, two], tmp_path / "two", beam=two_workers, shard_rows=2)
    assert tables(again) == [pairs, rejected]


Rows = list[tuple[str, str, str]]


def plain_id(source: str, reference: str) -> str:
    """80 bits of XXH3, 5 by 5 from the lowest: 12 letters of 8 bytes, 4 of the other 8."""
    digest = xxhash.xxh3_128_digest(f"{source}\x1f{reference}".encode())
    words = [int.from_bytes(digest[at : at + 8], "little") for at in (0, 8)]
    places = [(words[0], 5 * i) for i in range(12)] + [(words[1], 5 * i) for i in range(4)]
    return "".join("0123456789abcdefghjkmnpqrstvwxyz"[word >> by & 31] for word, by in places)


def ingested(write: Write, files: Files, folder: Path) -> Rows:
    """The rows with their ids, as `Ingest` finds them, but that no runner moves the hashes."""
    paths = write_files(write, folder, files)
    reading = Reading(shard_rows=2, max_characters=100)
    units = _units(find_bitext(write.__name__, paths), "", reading, str(folder / "spans"))
    found = [(unit.index, *of) for unit in units for of in reading.id_hashes(unit)]
    index, hashes, rows = zip(*found, strict=True)
    of_unit = np.repeat(index, [*map(len, rows)])
    lines = np.concatenate(rows)
    numbers = counted_if_shared(np.concatenate(hashes), of_unit, lines)
    made: Rows = []
    for unit in units:
        here = (of_unit == unit.index) & (numbers > 0)
        for block in reading.blocks(unit):
            ids = _ids(block, np.column_stack([lines, numbers])[here])
            texts = (block.pairs[side].to_pylist() for side in ("source", "reference"))
            made += zip(ids.to_pylist(), *texts, strict=True)
    return made


@pytest.mark.parametrize("write", WRITERS)
def test_what_stays_keeps_its_id(tmp_path: Path, write: Write) -> None:
    random, before = Random(1), Counter[Pair]()

    def pair() -> Pair:
        return random.choice("abc") + f" <{random.randrange(9)}>", random.choice("xy")

    files = {"m": [("a <1>", "x"), ("a <1>", "x"), ("b", "y"), ("a <1>", "y")]}
    earlier: set[str] = set()
    for number in range(30):
        found = ingested(write, files, tmp_path / f"{number}")
        pairs = [pair for name in sorted(files) for pair in files[name]]
        assert [(source, reference) for _, source, reference in found] == pairs
        counts = Counter[Pair]()
        for id, source, reference in found:
            counts[source, reference] += 1
            again = counts[source, reference]
            assert id == plain_id(source, reference) + (f"-{again}" if again > 1 else "")
        ids = {id for id, *_ in found}
        assert len(ids) == len(found)
        assert len(ids & earlier) == (counts & before).total()
        earlier, before = ids, counts
        change(random, files, number, pair)
