"""A trial gives what the whole training gives, without a trace."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paraloom.models.embeddings.applications.evaluation import agreement
from paraloom.models.embeddings.datasets.similarity import read_sts
from paraloom.models.embeddings.model import load_encoder
from paraloom.models.embeddings.options import EmbeddingOptions
from paraloom.models.embeddings.tasks import train
from paraloom.models.embeddings.tasks.paraphrases import run_probe
from paraloom.models.text.vectors import write_vectors

WORDS = [f"word{i}" for i in range(30)]


@pytest.fixture
def pairs() -> pa.Table:
    random = np.random.default_rng(3)
    left = [" ".join(random.choice(WORDS, 5)) for _ in range(70)]
    return pa.table({"reference": left, "translation": [f"{text} too" for text in left]})


@pytest.fixture
def labelled(tmp_path: Path) -> Path:
    random = np.random.default_rng(4)
    folder = tmp_path / "labelled"
    folder.mkdir()
    for name in ("one", "two"):
        lines = []
        for _ in range(20):
            words, same = random.choice(WORDS, 5, replace=False), random.integers(0, 6)
            other = [*words[:same], *random.choice(WORDS, 5 - same)]
            lines.append(f"{same}\t{' '.join(words)}\t{' '.join(other)}\n")
        (folder / f"{name}.tsv").write_text("".join(lines))
    return folder


@pytest.mark.parametrize(("model", "start"), [("word-avg", False), ("trigram-avg+lstm-avg", True)])
def test_it_is_the_training_of_the_run(
    pairs: pa.Table, labelled: Path, tmp_path: Path, model: str, start: bool
) -> None:
    vectors = None
    if start:
        vectors = str(tmp_path / "vectors.txt")
        write_vectors(vectors, [*WORDS[:9], "new"], np.eye(10, 12, dtype=np.float32) + 0.1)
    options = EmbeddingOptions(
        model=model, dim=12, initial_vectors=vectors, epochs=1, batch_size=20
    )
    pq.write_table(pairs, tmp_path / "pairs.parquet")
    train(options, tmp_path / "model", shards=[str(tmp_path / "pairs.parquet")], seed=5)
    embed, data = load_encoder(tmp_path / "model").embed, read_sts(labelled)
    mean = np.mean([agreement(embed, each).pearson for each in data])
    left, right = (pairs[name].combine_chunks() for name in ("reference", "translation"))
    assert run_probe(left, right, options, data, seed=5) == pytest.approx(mean, abs=1e-9)


def test_what_it_knows_nothing_of_counts_as_nothing(
    pairs: pa.Table, labelled: Path, tmp_path: Path
) -> None:
    options = EmbeddingOptions(dim=12, epochs=1, batch_size=20)
    left, right = (pairs[name].combine_chunks() for name in ("reference", "translation"))
    (tmp_path / "foreign.tsv").write_text("1\taaa\tbbb\n3\tccc ddd\teee\n")
    data = read_sts(labelled)
    known = run_probe(left, right, options, data, seed=1)
    assert known > 0
    both = run_probe(left, right, options, [*data, *read_sts(tmp_path / "foreign.tsv")], seed=1)
    assert both == pytest.approx(known * 2 / 3)
