"""Statistics of corpora against a direct computation over everything at once; their parts."""

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from paraloom.models.text.parses import Parser
from paraloom.papers.analyses import statistics
from paraloom.papers.analyses.moments import Moments
from paraloom.papers.analyses.statistics import Corpus, describe, entropy, top_levels
from paraloom.pipeline.cli import main
from tests.models.parsers import TREES
from tests.plain_scoring import fast_tokenizer
from tests.run_helpers import Capsys, Patch, write_record
from tests.sample import english_sentences

SCORES = ("trigram_overlap", "paragram_similarity")
VALUES = st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=30)


def check(found: Moments, values: Sequence[float] | NDArray[np.float64]) -> None:
    assert found.count == len(values)
    assert found.mean == pytest.approx(np.mean(values), abs=1e-6, rel=1e-9)
    assert found.deviation == pytest.approx(np.std(values), abs=1e-6, rel=1e-6)


@given(st.lists(VALUES, min_size=1, max_size=6))
def test_parts_merge_to_the_whole(parts: list[list[float]]) -> None:
    merged = sum((Moments.of(np.array(part, np.float32)) for part in parts), Moments())
    check(merged, [value for part in parts for value in part])
    assert merged + Moments.of(np.array([])) == merged


def test_nothing_cancels_far_from_zero() -> None:
    values = 1e9 + np.array([4.0, 7.0, 13.0, 16.0])
    merged = Moments.of(values[:1]) + Moments.of(values[1:])
    assert merged.deviation == pytest.approx(math.sqrt(22.5), rel=1e-12)


@given(st.lists(st.integers(0, 1000), min_size=1).filter(any))
def test_entropy_is_the_mean_surprise(numbers: list[int]) -> None:
    counts = np.array(numbers)
    found = entropy(counts)
    assert found.mean == pytest.approx(stats.entropy(counts), abs=1e-12)
    every = np.repeat(-np.log(counts[counts > 0] / counts.sum()), counts[counts > 0])
    assert found.deviation == pytest.approx(every.std(), abs=1e-9)
    assert found.count == counts.sum()


def write(folder: Path, table: pa.Table, rows: int = 400) -> Corpus:
    """A corpus that is cut into files of so many rows."""
    paths = []
    for first in range(0, len(table), rows):
        paths.append(str(folder / f"{len(table)}-{first:05d}.parquet"))
        pq.write_table(table.slice(first, rows), paths[-1], row_group_size=70)
    return Corpus(paths)


def directly(corpora: list[pa.Table]) -> Iterator[dict[str, Any]]:
    """The definition, over all rows in memory."""
    tokenize = fast_tokenizer()
    texts = [
        {side: [tokenize(t) for t in table[side].to_pylist()] for side in statistics.SIDES}
        for table in corpora
    ]
    references = [tokens for of in texts for tokens in of["reference"]]
    documents = Counter(word for tokens in references for word in set(tokens))
    idf = {w: math.log((1 + len(references)) / (1 + n)) for w, n in documents.items()}
    unknown = math.log(1 + len(references))
    for table, of in zip(corpora, texts, strict=True):
        values: dict[str, Any] = {name: table[name].to_numpy().astype(float) for name in SCORES}
        for side, sentences in of.items():
            values[f"{side}_tokens"] = [len(tokens) for tokens in sentences]
            values[f"{side}_idf"] = [np.mean([idf.get(w, unknown) for w in s]) for s in sentences]
            words = [word for tokens in sentences for word in tokens]
            often = Counter(words)
            surprise = [-math.log(often[word] / len(words)) for word in words]
            values[f"{side}_vocabulary_entropy"] = surprise
        yield values


def test_two_corpora_as_computed_directly(tmp_path: Path, monkeypatch: Patch) -> None:
    sentences, rng = english_sentences(10_000), np.random.default_rng(1)

    def corpus(first: int, rows: int) -> pa.Table:
        texts = sentences[first : first + rows], sentences[first + rows : first + 2 * rows]
        columns: dict[str, Any] = dict(zip(statistics.SIDES, texts, strict=True))
        columns |= {name: rng.normal(size=rows).astype(np.float32) for name in SCORES}
        return pa.table({**columns, "decile": rng.integers(0, 10, rows).astype(np.int8)})

    tables = [corpus(0, 900), corpus(5000, 2500)]
    monkeypatch.setattr(statistics, "_BATCH", 64)
    monkeypatch.setattr(statistics, "_MERGED", 3)
    found = describe([write(tmp_path, table) for table in tables])
    for of, expected in zip(found, directly(tables), strict=True):
        assert set(of) == set(expected)
        for name, values in expected.items():
            check(of[name], values)
    assert found[0]["reference_idf"].mean != found[1]["reference_idf"].mean


def test_words_of_a_sample_and_idf_of_all(tmp_path: Path, monkeypatch: Patch) -> None:
    """ParaNMT, Table 2, is of 100k sentences; which words are rare, all references say."""
    references = [f"common {i}" for i in range(400)]
    table = pa.table({"reference": references, "translation": ["x"] * 400})
    (whole,) = describe([write(tmp_path, table, 1000)])
    monkeypatch.setattr(statistics, "SAMPLED", 100)
    (part,) = describe([write(tmp_path, table, 1000)])
    (other,) = describe([write(tmp_path, table, 64)])
    words, idf = (f"reference_{name}" for name in ("vocabulary_entropy", "idf"))
    assert other[words].count == part[words].count  # sampled by the texts, not by their places
    assert whole[words].count == 800 and 120 < part[words].count < 280
    assert part[words].mean < whole[words].mean - 0.5
    assert part[idf] == whole[idf]


def test_genres_of_czeng(tmp_path: Path) -> None:
    ids = [f"{name}-b1-00train-f1-s{i}" for name in ("eu", "subtitles") for i in range(3)]
    table = pa.table({"id": [*ids, "eu-b2-01train-f2-s1", "file:9"], "reference": ["a"] * 8})
    (found,) = describe([write(tmp_path, table.append_column("translation", table["id"]), 3)])
    shares = {name: of for name, of in found.items() if name.startswith("genre_")}
    assert list(shares) == ["genre_eu", "genre_subtitles"]
    assert shares["genre_eu"].count == 7 and shares["genre_eu"].mean == pytest.approx(4 / 7)
    assert shares["genre_eu"].deviation == pytest.approx(math.sqrt(12) / 7)


def test_files_of_others(tmp_path: Path) -> None:
    """Texts of other types, nulls, scores that are missing or no number, names of statistics."""
    texts = {
        "translation": pa.array(["a b", None, "c"] * 50, pa.large_string()),
        "reference": pa.array(["a", "b c d", ""] * 50).dictionary_encode(),
    }
    numbers = {"score": pa.array([1.0, None, math.nan] * 50), "reference_tokens": [9.0] * 150}
    (found,) = describe([write(tmp_path, pa.table(texts | numbers))])
    assert (found["score"].count, found["score"].mean) == (50, 1)
    assert found["reference_tokens"].mean == pytest.approx(4 / 3)
    assert found["translation_tokens"].mean == pytest.approx(1)
    assert found["translation_idf"].count == 100


def test_parses(parser: str, tmp_path: Path) -> None:
    opened, texts, often = Parser(parser), [text for text, _, _ in TREES], [5, 2, 1]
    expected = ["nsubj VERB advmod punct", "nsubj VERB obj punct", "VERB punct"]
    assert list(top_levels(opened, texts)) == expected
    assert list(top_levels(opened, ["", "run " * 300_000, "run !"])) == ["VERB punct"]
    references = [text for text, n in zip(texts, often, strict=True) for _ in range(n)]
    table = pa.table({"reference": references, "translation": [texts[2]] * 7 + [""]})
    (found,) = describe([write(tmp_path, table, 3)], parser=opened)
    shares = np.array(often) / 8
    assert found["reference_parse_entropy"].mean == pytest.approx(-shares @ np.log(shares))
    assert found["reference_parse_entropy"].count == 8
    assert found["translation_parse_entropy"].mean == 0
    assert found["translation_parse_entropy"].count == 7


def test_side_by_side(tmp_path: Path, monkeypatch: Patch, capsys: Capsys) -> None:
    """A run with a corpus, a folder, and a file; the language of a run is its own."""
    monkeypatch.chdir(tmp_path)

    def write(path: str, rows: int, **columns: list[float]) -> None:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        texts = {"reference": ["l'homme court ."] * rows, "translation": ["run !"] * rows}
        pq.write_table(pa.table({**texts, **columns}), tmp_path / path)

    write("run/corpus/part-0.parquet", 3, trigram_overlap=[0.0, 0.5, 1.0])
    write("run/corpus/part-1.parquet", 2, trigram_overlap=[0.5, 0.5])
    write("run/corpus/_rejected/part-0.parquet", 7)
    files = {"format": "tsv", "paths": ["x.tsv"], "target_language": "zh"}
    config = {"run": "run", "input": files}
    write_record(tmp_path / "run", {"stages": {"select": {"config": config}}, "config": config})
    write("[red]x/x.parquet", 4)
    (tmp_path / "idf.txt").write_text("UUUNKKK 3\n")
    corpora = ["run", "[red]x", "[red]x/x.parquet"]
    given = ["papers", "statistics", *corpora, "--json", "out.json", "--idf", "idf.txt"]
    assert main(given) == 0
    shown = capsys.readouterr().out
    assert re.search(r"pairs +│ +5 │ +4 │ +4", shown)
    assert re.search(r"reference_tokens +│ +5\.000 ± 0\.000 │ +4\.000 ± 0\.000", shown)
    assert re.search(r"trigram_overlap +│ +0\.500 ± 0\.316 │ +– │ +–", shown)
    assert "left out (–) without --spacy" in " ".join(shown.split())
    assert "┃ [red]x/x.parquet" in " ".join(shown.split())  # no markup
    found = json.loads((tmp_path / "out.json").read_text())
    sizes = [*zip(corpora, (5, 4, 4), strict=True)]
    assert [(of["name"], of["pairs"]) for of in found["corpora"]] == sizes
    first = found["corpora"][0]["statistics"]
    overlap = {"mean": 0.5, "deviation": 0.1**0.5, "count": 5}
    assert first["trigram_overlap"] == pytest.approx(overlap)
    assert (first["reference_idf"]["mean"], first["reference_parse_entropy"]) == (3, None)


def test_what_is_no_corpus_is_one_line(tmp_path: Path, monkeypatch: Patch, capsys: Capsys) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty" / "corpus").mkdir(parents=True)
    files = {"format": "tsv", "paths": ["x.tsv"]}
    write_record(tmp_path / "empty", {"stages": {}, "config": {"run": "x", "input": files}})
    half = pa.table({"reference": ["a"]})
    for unfinished in ("half.parquet", "empty/corpus/x.parquet"):
        pq.write_table(half, tmp_path / unfinished)
    for said in (
        "nowhere: neither a run nor a Parquet file nor a folder of such files",
        "empty: the run has no corpus yet; name the folder of a stage",
        "half.parquet: has no column translation",
    ):
        assert main(["papers", "statistics", said.partition(":")[0]]) == 2
        assert capsys.readouterr().err.splitlines()[-1].startswith(f"paraloom: {said}")
