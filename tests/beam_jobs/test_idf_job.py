"""Words counted by the Beam job, against counting everything at once."""

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

from paraloom.beam_jobs import idf, storage
from paraloom.beam_jobs.engine.shards import units
from paraloom.beam_jobs.idf import MERGE_COUNTS
from paraloom.models.text.idf import count_words, merge_counts
from tests.plain_scoring import fast_tokenizer
from tests.shards import cut

CAPTIONS = [
    "Two dogs run over the grass.",
    "A dog, a dog and one more dog!",
    "The boy's kite flies over two trees.",
    "Two men sit.",
    "",
    "A boy sits in the grass.",
] * 5
CORPUS = pa.table({"reference": CAPTIONS})


@pytest.mark.parametrize(("workers", "rows"), [("1", 4), ("3", 4), ("1", 100), ("3", 100)])
def test_counts_of_the_corpus(tmp_path: Path, workers: str, rows: int) -> None:
    work = units(cut(tmp_path / "in", CORPUS, rows), "key")
    out = tmp_path / "idf"
    counts = idf.run(work, str(out), ["--direct_num_workers", workers])
    tokenize = fast_tokenizer()
    texts = [tokenize(caption) if caption else [] for caption in CAPTIONS]
    documents = Counter(word for text in texts for word in set(text))
    occurrences = Counter(word for text in texts for word in text)
    assert counts.documents == len(CAPTIONS)
    assert counts.table.to_pylist() == [
        {"word": w, "documents": documents[w], "occurrences": occurrences[w]}
        for w in sorted(documents)
    ]
    assert storage.names(str(out)) == storage.names(str(out / "begun")) == []  # nothing is left


def test_an_empty_corpus(tmp_path: Path) -> None:
    counts = idf.run([], str(tmp_path / "idf"), ["--direct_num_workers", "1"])
    assert (counts.documents, counts.table.num_rows) == (0, 0)


def test_no_more_is_held_than_twice_the_vocabulary() -> None:
    combine = MERGE_COUNTS
    parts = combine.create_accumulator()
    for first in range(60):
        words = [" ".join(f"w{(first * 7 + i) % 500}" for i in range(40))]
        parts = combine.add_input(parts, count_words(pa.array(words)))
        held = sum(part.table.num_rows for part in parts)
        assert held <= 2 * merge_counts(parts).table.num_rows + 40
    assert combine.extract_output(parts).documents == 60


def test_what_a_killed_job_left_is_not_taken(tmp_path: Path) -> None:
    out = tmp_path / "idf"
    (out / "begun").mkdir(parents=True)
    (out / "begun" / "part-000").touch()
    (out / "collected.parquet").write_bytes(b"of another corpus")
    counts = idf.run(units(cut(tmp_path / "in", CORPUS, 10), "key"), str(out), [])
    assert counts.documents == len(CAPTIONS)
    assert storage.names(str(out)) == storage.names(str(out / "begun")) == []
