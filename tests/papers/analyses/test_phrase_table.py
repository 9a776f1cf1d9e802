"""Phrase pairs from aligned sentences, and a table counted by the Beam job and at once."""

import gzip
from collections import Counter
from pathlib import Path

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from paraloom.beam_jobs.engine.shards import Receipt, Shard, units, write_receipt
from paraloom.models.embeddings.datasets.phrases import read_phrases
from paraloom.models.text.tokens import PairText
from paraloom.papers.analyses import phrase_table
from paraloom.papers.analyses.phrase_pairs import LONGEST, SCHEMA, find_phrases
from paraloom.pipeline import cli
from tests.run_helpers import Capsys, Patch
from tests.shards import cut

PAIRS = [
    ("Two dogs run over the grass.", "Two dogs are running over the grass."),
    ("A man jumps off a wall.", "A man is jumping from a wall."),
    ("Three dogs run over it.", "Three dogs are running over it."),
    ("A boy jumps off a roof.", "A boy is jumping from a roof."),
    ("A boy sits.", "A boy sits."),
] * 4


def write(folder: Path, pairs: list[tuple[str, str]], rows: int) -> list[Shard]:
    references, translations = zip(*pairs, strict=True)
    table = pa.table({"reference": references, "translation": translations})
    return cut(folder, table, rows)


def expected(pairs: list[tuple[str, str]], min_count: int) -> list[str]:
    table = find_phrases(PairText(*(pa.array(side) for side in zip(*pairs, strict=True))))
    rows = [tuple(row.values()) for row in table.to_pylist() if row["count"] >= min_count]
    rows.sort(key=lambda row: (-row[2], row[0], row[1]))
    return [f"[X] ||| {a} ||| {b} ||| Count={count}" for a, b, count in rows]


def test_the_same_bytes_however_the_corpus_is_cut(tmp_path: Path) -> None:
    """And with two workers as with one."""
    tables = [tmp_path / "a.gz", tmp_path / "b.gz"]
    for table, rows, workers in zip(tables, (3, 100), "21", strict=True):
        work = units(write(tmp_path / f"in-{rows}", PAIRS, rows), "key")
        phrase_table.count_phrases(work, str(table), ["--direct_num_workers", workers])
    assert tables[0].read_bytes() == tables[1].read_bytes()


def test_the_command(tmp_path: Path, capsys: Capsys, monkeypatch: Patch) -> None:
    monkeypatch.setattr(phrase_table, "ROWS", -(-len(PAIRS) // 3))  # three rounds
    shards = tuple(write(tmp_path / "run" / "corpus", PAIRS, 8))
    receipt = Receipt(name="all", key="k", rows_in=len(PAIRS), shards=shards, rejected={})
    write_receipt(str(tmp_path / "run" / "corpus"), receipt)
    assert cli.main(["papers", "extract-phrases", str(tmp_path / "run"), "--min-count", "3"]) == 0
    table = tmp_path / "run" / "phrases.txt.gz"
    lines = gzip.decompress(table.read_bytes()).decode().splitlines()
    assert lines == expected(PAIRS, 3)
    assert lines[0] == "[X] ||| are running ||| run ||| Count=8"
    assert next(read_phrases(table)) == ("are running", "run")
    said = capsys.readouterr().out
    assert said == f"{table}: {len(lines):,} phrase pairs of {len(PAIRS)} sentence pairs\n"


WORDS = ["a", "b", "c", "d", "e", ".", "3"]
sentence = st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)


def found(*pairs: tuple[str, str]) -> Counter[tuple[str, str]]:
    left, right = (pa.array(side, pa.string()) for side in zip(*pairs, strict=True))
    table = find_phrases(PairText(left, right))
    assert table.schema == SCHEMA
    return Counter({(r["phrase"], r["paraphrase"]): r["count"] for r in table.to_pylist()})


def test_spans_with_and_without_their_neighbours() -> None:
    assert found(("He jumps off the wall.", "He is jumping from the wall.")) == {
        ("is jumping from", "jumps off"): 1,
        ("he is jumping from", "he jumps off"): 1,
        ("is jumping from the", "jumps off the"): 1,
        ("he is jumping from the", "he jumps off the"): 1,
    }


def test_the_same_pair_in_both_directions_counts_as_one() -> None:
    assert found(("so huge", "very huge"), ("very huge", "so huge"), ("x", "x"), ("", "a")) == {
        ("so huge", "very huge"): 2
    }


@given(st.lists(st.tuples(sentence, sentence), max_size=4))
def test_whatever_is_found_stands_in_the_sentences(pairs: list[tuple[str, str]]) -> None:
    if not pairs:
        return
    for (phrase, paraphrase), count in found(*pairs).items():
        assert phrase < paraphrase
        assert max(phrase.count(" "), paraphrase.count(" ")) in range(1, LONGEST)
        assert all(word.isalpha() for side in (phrase, paraphrase) for word in side.split(" "))
        places = 0
        for left, right in pairs:
            for one, other in ((phrase, paraphrase), (paraphrase, phrase)):
                places += f" {one} " in f" {left} " and f" {other} " in f" {right} "
        assert places and count
