"""Statistics of two corpora against a direct computation over everything at once."""

import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.plain_scoring import fast_tokenizer
from paraloom.beam_jobs.analysis import statistics
from paraloom.beam_jobs.analysis.statistics import CorpusBlock, find_blocks, run
from paraloom.models.errors import UserError
from tests.models.parsers import TREES, train_parser
from tests.sample import english_sentences
from tests.shards import ONE

SCORES = ("trigram_overlap", "paragram_similarity")


@pytest.fixture(scope="module")
def corpora() -> list[pa.Table]:
    """Sentences of the sample against others, with scores: two corpora of different size."""
    sentences = english_sentences(10_000)
    rng = np.random.default_rng(1)

    def corpus(first: int, rows: int) -> pa.Table:
        return pa.table(
            {
                "reference": sentences[first : first + rows],
                "translation": sentences[first + rows : first + 2 * rows],
                **{name: rng.normal(size=rows).astype(np.float32) for name in SCORES},
                "decile": rng.integers(0, 10, rows).astype(np.int8),
            }
        )

    return [corpus(0, 900), corpus(5000, 2500)]


def write(folder: Path, corpora: list[pa.Table], rows: int) -> list[CorpusBlock]:
    """Blocks of corpora that are cut into files of so many rows."""
    blocks = []
    for number, table in enumerate(corpora):
        paths = []
        for first in range(0, len(table), rows):
            paths.append(str(folder / f"{number}-{first:05d}.parquet"))
            pq.write_table(table.slice(first, rows), paths[-1])
        blocks += find_blocks(number, paths)
    return blocks


def directly(corpora: list[pa.Table]) -> Iterator[dict[str, tuple[int, float, float]]]:
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
        values = {name: table[name].to_numpy().astype(float) for name in SCORES}
        for side, sentences in of.items():
            values[f"{side}_tokens"] = [len(tokens) for tokens in sentences]
            values[f"{side}_idf"] = [np.mean([idf.get(w, unknown) for w in s]) for s in sentences]
            words = [word for tokens in sentences for word in tokens]
            often = Counter(words)
            surprise = [-math.log(often[word] / len(words)) for word in words]
            values[f"{side}_vocabulary_entropy"] = surprise
        yield {name: (len(v), np.mean(v), np.std(v)) for name, v in values.items()}


def test_two_corpora_as_computed_directly_with_any_number_of_workers(
    corpora: list[pa.Table], tmp_path: Path
) -> None:
    blocks = write(tmp_path, corpora, 400)
    found = run(blocks, str(tmp_path / "work"), ONE)
    assert run(blocks, str(tmp_path / "two"), ["--direct_num_workers", "2"]) == found
    for of, expected in zip(found, directly(corpora), strict=True):
        assert set(of) == set(expected)
        for name, (count, mean, deviation) in expected.items():
            assert of[name].count == count
            assert of[name].mean == pytest.approx(mean, rel=1e-6), name
            assert of[name].deviation == pytest.approx(deviation, rel=1e-5), name
    assert found[0]["reference_idf"].mean != found[1]["reference_idf"].mean


def test_a_table_of_idf_in_place_of_counting(corpora: list[pa.Table], tmp_path: Path) -> None:
    (tmp_path / "idf.txt").write_text("UUUNKKK 3\n")
    (found,) = run(
        write(tmp_path, corpora[:1], 400),
        str(tmp_path / "work"),
        ONE,
        idf=str(tmp_path / "idf.txt"),
    )
    assert (found["reference_idf"].mean, found["reference_idf"].deviation) == (3, 0)
    (tmp_path / "vectors.txt").write_text("a 3 4\n")
    with pytest.raises(UserError, match="2 numbers a word, but an IDF is one"):
        run([], str(tmp_path / "work"), ONE, idf=str(tmp_path / "vectors.txt"))


def test_parses(tmp_path: Path) -> None:
    texts = [text for text, _, _ in TREES]
    often = [5, 2, 1]
    references = [text for text, n in zip(texts, often, strict=True) for _ in range(n)]
    table = pa.table({"reference": references, "translation": [texts[2]] * 7 + [""]})
    parser = train_parser(tmp_path / "parser")
    (found,) = run(write(tmp_path, [table], 3), str(tmp_path / "work"), ONE, spacy=parser)
    shares = np.array(often) / 8
    assert found["reference_parse_entropy"].mean == pytest.approx(-shares @ np.log(shares))
    assert found["reference_parse_entropy"].count == 8
    assert found["translation_parse_entropy"].mean == 0
    assert found["translation_parse_entropy"].count == 7


def test_words_of_a_sample_and_idf_of_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ParaNMT, Table 2, is of 100k sentences; which words are rare, all references say."""
    references = [f"common {i}" for i in range(400)]
    table = pa.table({"reference": references, "translation": ["x"] * 400})
    (whole,) = run(write(tmp_path, [table], 1000), str(tmp_path / "work"), ONE)
    monkeypatch.setattr(statistics, "SAMPLED", 100)
    (part,) = run(write(tmp_path, [table], 1000), str(tmp_path / "work"), ONE)
    (other,) = run(write(tmp_path, [table], 64), str(tmp_path / "work"), ONE)
    words, idf = (f"reference_{name}" for name in ("vocabulary_entropy", "idf"))
    assert other[words].count == part[words].count  # sampled by the texts, not by their places
    assert whole[words].count == 800 and 120 < part[words].count < 280
    assert part[words].mean < whole[words].mean - 0.5
    assert part[idf] == whole[idf]


def test_genres_of_czeng(tmp_path: Path) -> None:
    ids = [f"{name}-b1-00train-f1-s{i}" for name in ("eu", "subtitles") for i in range(3)]
    table = pa.table({"id": [*ids, "eu-b2-01train-f2-s1", "file:9"], "reference": ["a"] * 8})
    table = table.append_column("translation", pa.array(["b"] * 8))
    (found,) = run(write(tmp_path, [table], 3), str(tmp_path / "work"), ONE)
    shares = {name: of for name, of in found.items() if name.startswith("genre_")}
    assert list(shares) == ["genre_eu", "genre_subtitles"]
    assert shares["genre_eu"].count == 7 and shares["genre_eu"].mean == pytest.approx(4 / 7)
    assert shares["genre_eu"].deviation == pytest.approx(math.sqrt(12) / 7)


def test_files_of_others(tmp_path: Path) -> None:
    """Row groups, texts of other types, nulls, and scores that are missing or no number."""
    table = pa.table(
        {
            "translation": pa.array(["a b", None, "c"] * 50, pa.large_string()),
            "reference": pa.array(["a", "b c d", ""] * 50).dictionary_encode(),
            "score": pa.array([1.0, None, math.nan] * 50),
            "label": pa.array([1, 2, 3] * 50),
        }
    )
    path = str(tmp_path / "all.parquet")
    pq.write_table(table, path, row_group_size=7)
    (found,) = run(find_blocks(0, [path]), str(tmp_path / "work"), ONE)
    assert (found["score"].count, found["score"].mean) == (50, 1)
    assert "label" not in found
    assert found["reference_tokens"].mean == pytest.approx(4 / 3)
    assert found["translation_tokens"].mean == pytest.approx(1)
    assert found["translation_idf"].count == 100


def test_blocks_of_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"reference": ["a"] * 50, "translation": ["b"] * 50})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=10)
    pq.write_table(table.slice(0, 5), tmp_path / "b.parquet")
    monkeypatch.setattr(statistics, "_BLOCK", 25)
    blocks = find_blocks(3, [str(tmp_path / "a.parquet"), str(tmp_path / "b.parquet")])
    assert [block.groups for block in blocks] == [(0, 1), (2, 3), (4,), (0,)]
    assert [block.rows for block in blocks] == [20, 20, 10, 5]
    assert len({block.name for block in blocks}) == 4


def test_files_that_cannot_be_used(tmp_path: Path) -> None:
    path = tmp_path / "text.parquet"
    path.write_text("no Parquet at all")
    with pytest.raises(pa.ArrowInvalid) as caught:
        find_blocks(0, [str(path)])
    assert caught.value.__notes__ == [str(path)]
    pq.write_table(pa.table({"reference": ["a"]}), tmp_path / "half.parquet")
    with pytest.raises(UserError, match=r"half\.parquet: has no column translation"):
        find_blocks(0, [str(tmp_path / "half.parquet")])


def test_a_column_with_the_name_of_a_statistic(tmp_path: Path) -> None:
    table = pa.table({"reference": ["a b"], "translation": ["c"], "reference_tokens": [9.0]})
    pq.write_table(table, tmp_path / "x.parquet")
    (found,) = run(find_blocks(0, [str(tmp_path / "x.parquet")]), str(tmp_path / "work"), ONE)
    assert found["reference_tokens"].mean == 2
