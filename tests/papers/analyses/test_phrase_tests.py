"""Tests of phrase vectors, on files in their published formats and on scores that are known."""

import gzip
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paraloom.beam_jobs.engine.shards import Receipt, Shard, units, write_receipt
from paraloom.models.embeddings.comparison import ComparedModel, Scores, Vectors, dots
from paraloom.models.embeddings.datasets.phrases import read_phrases
from paraloom.models.text.tokens import PairText
from paraloom.papers.analyses import phrase_table, phrase_tests
from paraloom.papers.analyses.phrase_table import LONGEST, SCHEMA, find_phrases
from paraloom.papers.analyses.phrase_tests import (
    Question,
    WordsAndPhrases,
    choose,
    evaluate_phrases,
    read_semeval2013,
    read_turney2012,
    semeval2013,
    turney2012,
)
from paraloom.papers.datasets.phrases import PhrasePairs, read_phrase_pairs, split
from paraloom.papers.options import PhrasesOptions
from paraloom.pipeline import cli
from tests.run_helpers import Capsys, Patch, write_record
from tests.shards import cut
from tests.small_encoder import small_encoder

TURNEY = """\
fantasy world | fairyland | fantasy | world | phantasy | universe | ranter | souring
coin collector | numismatist | coin | collector | coinage | aggregator | reflectiveness | plasma
"""


def by_number(texts: pa.StringArray) -> Vectors:
    """A phrase's vector from the number in it: near numbers have a large dot product."""
    angle = np.array([float(text.split()[-1]) for text in texts.to_pylist()]) / 500
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


@pytest.mark.parametrize("block", [700, 100_000])
def test_each_pair_is_compared_with_other_phrases(block: int, monkeypatch: Patch) -> None:
    monkeypatch.setattr(phrase_tests, "_BLOCK", block)
    own = pa.array([f"a {i}" for i in range(102)])
    pairs = PhrasePairs(own, pa.array([f"a {i + 1 + 3 * (i % 5 == 0)}" for i in range(102)]))
    seen: list[tuple[Vectors, Vectors, Scores]] = []

    def compare(first: Vectors, second: Vectors) -> Scores:
        seen.append((first, second, dots(first, second)))
        return seen[-1][-1]

    found = choose(ComparedModel("known", by_number, compare), pairs, own)
    every = map(np.concatenate, zip(*seen, strict=True))
    first, second, scores = (of.reshape(102, 100, -1) for of in every)
    left, right = (by_number(side)[:, None] for side in pairs)
    assert (first == left).all() and (second[:, :1] == right).all()  # the paraphrase is in front
    others = second[:, 1:, 0]
    assert (others != left[..., 0]).all() and (others != right[..., 0]).all()
    assert all(len(set(row)) == 99 for row in others.tolist())
    hits = scores[:, 0, 0] > scores[:, 1:, 0].max(axis=1)
    assert (found == hits).all() and 0 < hits.mean() < 1


def write_semeval(folder: Path) -> Path:
    folder.mkdir()
    for part, kind, text in (
        ("train", "positive", "valuation\tprice assessment\nviolin\tstring instrument\n"),
        ("train", "negative", "cat\tred tape\n"),
        ("test", "positive", "fever\thigh temperature\n"),
        ("test", "negative", "lamp\tdry river\ncar\told hat\n"),
    ):
        (folder / f"en.{part}Set.{kind}Instances-v2").write_text(text)
    return folder


def test_semeval_2013(tmp_path: Path) -> None:
    data = read_semeval2013(write_semeval(tmp_path / "semeval"))
    assert data["train"].words.to_pylist() == ["valuation", "violin", "cat"]
    assert data["test"].phrases.to_pylist()[0] == "high temperature"
    assert data["test"].same.tolist() == [True, False, False]


Judged = Sequence[tuple[float, int]]


@pytest.mark.parametrize(
    ("train", "test", "accuracy", "f1"),
    [
        ([(9, 1), (8, 1), (7, 0)], [(9, 1), (7.4, 0), (7.6, 0)], 200 / 3, 200 / 3),
        ([(9, 1), (8, 0), (7, 0)], [(9, 1), (8, 0), (9, 1)], 100.0, 100.0),
        ([(9, 0), (8, 0)], [(9, 1), (8, 0)], 50.0, 0.0),  # nothing is the same
        ([(5, 1), (5, 0), (5, 1)], [(5, 1), (4, 1)], 50.0, 200 / 3),  # equal scores go together
    ],
)
def test_the_threshold_comes_from_training(
    train: Judged, test: Judged, accuracy: float, f1: float
) -> None:
    def part(rows: Judged) -> WordsAndPhrases:
        texts = pa.array([f"x {score}" for score, _ in rows])
        return WordsAndPhrases(texts, texts, np.array([bool(same) for _, same in rows]))

    def compare(first: Vectors, second: Vectors) -> Scores:
        return first[:, 0].astype(np.float64)

    def embed(texts: pa.StringArray) -> Vectors:
        return np.array([[float(text.split()[1])] for text in texts.to_pylist()])

    parts = {"train": part(train), "test": part(test)}
    found = semeval2013(ComparedModel("m", embed, compare), parts)
    assert found == pytest.approx({"accuracy": accuracy, "f1": f1})


def test_turney_2012(tmp_path: Path) -> None:
    path = tmp_path / "jair.data"
    path.write_text(TURNEY)
    questions = read_turney2012(path)
    assert questions[0].stem == "fantasy world" and questions[1].choices[0] == "numismatist"
    seen = {
        ("fantasy world", "fairyland"): 5,
        ("fantasy world", "universe"): 4,
        ("world fantasy", "ranter"): 4.5,
        ("coin collector", "numismatist"): 5,
        ("coin collector", "coin"): 9,  # the stem's own words are no choices
        ("collector coin", "plasma"): 6,
    }

    def embed(texts: pa.StringArray) -> Vectors:
        return np.array(texts.to_pylist(), object)[:, None]

    def compare(first: Vectors, second: Vectors) -> Scores:
        pairs = zip(first[:, 0], second[:, 0], strict=True)
        return np.array([seen.get(pair, 0.0) for pair in pairs])

    model = ComparedModel("known", embed, compare)
    assert turney2012(model, questions) == {"5 choices": 100.0, "10 choices": 50.0}
    # Whoever does not see the order gives both the same score, and has half a point.
    bag = ComparedModel("bag", embed, lambda _, of: (of[:, 0] == "fairyland").astype(float))
    only = [Question("fantasy world", questions[0].choices)]
    assert turney2012(bag, only) == {"5 choices": 100.0, "10 choices": 50.0}
    assert set(evaluate_phrases(model, questions=questions)) == {"Turney 2012"}


def test_held_out_pairs_are_those_of_the_models_training(tmp_path: Path, capsys: Capsys) -> None:
    table = tmp_path / "table.txt"
    nouns = [f"{a}{b}" for a in "bcdfghklmnprst" for b in ("at", "en", "ig", "od", "ull")]
    phrases = [f"{one} {noun}" for one in ("big", "small", "old", "new") for noun in nouns]
    table.write_text("".join(f"{p}\tthe {p}\n" for p in phrases))
    pairs = read_phrase_pairs(table)
    words = sorted({word for p in pairs.phrases().to_pylist() for word in p.split()})
    out = tmp_path / "x.json"
    arguments = ["--table", str(table), "--held-out", "0.2", "--json", str(out)]
    splits: tuple[Literal["pairs"], Literal["phrases"]] = ("pairs", "phrases")
    for by in splits:
        section = PhrasesOptions(table=str(table), split=by)
        model = small_encoder(words, task="phrases", phrases=section)
        model.save(tmp_path / by)
        command = ["papers", "evaluate-phrases", "--model", str(tmp_path / by)]
        assert cli.main([*command, *arguments]) == 0
        expected = split(pairs, 0.2, by).test
        (found,) = json.loads(out.read_text()).values()
        accuracy = choose(model.named("m"), expected, expected.phrases())
        assert found["choose among 100"]["accuracy"] == pytest.approx(100 * accuracy.mean())
    capsys.readouterr()
    assert cli.main([*command, "--model", str(tmp_path / splits[0]), *arguments]) == 2
    assert "--held-out: these models held out pairs in different ways" in capsys.readouterr().err


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
    command = ["papers", "extract-phrases", str(tmp_path / "run"), "--min-count", "8"]
    assert cli.main(command) == 2  # the corpus is not finished
    config = {"run": "run", "input": {"format": "tsv", "paths": ["x.tsv"]}}
    write_record(tmp_path / "run", {"stages": {"select": {"config": config}}, "config": config})
    assert cli.main(command) == 0
    table = tmp_path / "run" / "phrases.txt.gz"
    lines = gzip.decompress(table.read_bytes()).decode().splitlines()
    assert lines == expected(PAIRS, 8)
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
    same = ("so huge", "very huge")
    assert found(same, same[::-1], ("x", "x"), ("", "a")) == {same: 2}


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
