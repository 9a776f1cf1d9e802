import json
import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paraloom.models.embeddings.model import load_encoder
from paraloom.models.embeddings.options import EmbeddingOptions
from paraloom.models.embeddings.tasks import train
from paraloom.models.errors import UserError
from paraloom.models.text.vectors import UNKNOWN, write_vectors
from paraloom.papers.options import SystemOptions
from tests.run_helpers import Patch

SMALL = EmbeddingOptions(dim=16, epochs=2, batch_size=10, mega_batch=3, learning_rate=0.01)


@pytest.fixture
def shards(tmp_path: Path) -> list[str]:
    """Two shards: 90 pairs that differ, 3 that are the same once tokenised, 2 empty ones."""
    random = np.random.default_rng(0)
    words = [f"w{i}" for i in range(40)]
    left = [" ".join(random.choice(words, 6)) for _ in range(90)]
    right = [" ".join(random.permutation(text.split()[:5])) for text in left]
    left += ["A dog.", "a  Dog .", "same", "", "text"]
    right += ["a dog .", "A dog.", "same", "text", ""]
    paths = []
    for i, rows in enumerate([slice(0, 40), slice(40, 95)]):
        table = pa.table({"id": left[rows], "reference": left[rows], "translation": right[rows]})
        path = tmp_path / f"part-{i}.parquet"
        pq.write_table(table, path, row_group_size=17, write_page_checksum=True)
        paths.append(str(path))
    return paths


def test_a_model_is_trained_written_and_loaded(tmp_path: Path, shards: list[str]) -> None:
    metrics = train(SMALL, tmp_path / "model", shards=shards, seed=1)
    assert (metrics["pairs"], metrics["identical"], metrics["empty"]) == (90, 3, 2)
    assert metrics["steps"] == 18
    assert json.loads((tmp_path / "model" / "metrics.json").read_text()) == metrics
    encoder = load_encoder(tmp_path / "model")
    vectors = encoder.embed(["w1 w2", "w2 W1", "", "nothing known"])
    assert vectors.shape == (4, 16) and vectors.dtype == np.float32
    assert np.allclose(vectors[0], vectors[1], atol=1e-6) and np.abs(vectors[0]).sum() > 0
    assert encoder.similarity(["w1", "", "w3"], ["w1", "w1", "w3 w3"]) == pytest.approx([1, 0, 1])
    assert np.allclose(encoder.embed(["w1 w2", "w5"], batch_size=1), encoder.embed(["w1 w2", "w5"]))


def test_nothing_to_learn_from(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"reference": ["x", ""], "translation": ["X", "y"]}), path)
    with pytest.raises(UserError, match=r"a.parquet: nothing to train on: 1 pairs are id"):
        train(SMALL, tmp_path / "model", shards=[str(path)], seed=1)
    pq.write_table(pa.table({"reference": ["x"] * 3, "translation": ["y"] * 3}), path)
    with pytest.raises(UserError, match="3 no negative"):
        train(SMALL, tmp_path / "model", shards=[str(path)], seed=1)
    pq.write_table(pa.table({"reference": pa.array([], pa.string()), "translation": []}), path)
    with pytest.raises(UserError, match=r"a\.parquet: nothing to train on .no rows"):
        train(SMALL, tmp_path / "model", shards=[str(path)], seed=1)
    with pytest.raises(UserError, match="list of Parquet files is empty"):
        train(SMALL, tmp_path / "model", shards=[], seed=1)
    assert not (tmp_path / "model").exists()


def test_a_loss_that_is_no_number_leaves_the_old_model(tmp_path: Path, shards: list[str]) -> None:
    train(SMALL, tmp_path / "model", shards=shards, seed=1)
    before = load_encoder(tmp_path / "model").embed(["w1 w2"])
    wild = EmbeddingOptions(dim=16, epochs=2, batch_size=10, learning_rate=1e38)
    with pytest.raises(UserError, match=r"the loss is (nan|inf) at step \d+: lower learning_rate"):
        train(wild, tmp_path / "model", shards=shards, seed=1)
    assert np.array_equal(load_encoder(tmp_path / "model").embed(["w1 w2"]), before)


@pytest.mark.parametrize(
    "model", ["word-sum", "trigram-avg", "gru", "bilstm-max", "gran-4", "trigram-avg+lstm+gran-5"]
)
def test_encoders_of_every_kind_are_trained_saved_and_loaded(
    tmp_path: Path, shards: list[str], model: str
) -> None:
    cell = "normalised" if model == "gru" else "peephole"
    values = {**SMALL.chosen(), "cell": cell, "combine": "tanh", "tags": True, "epochs": 1}
    options = SystemOptions.of({**values, "model": model})
    metrics = train(options, tmp_path / "model", shards=shards, seed=1)
    assert metrics["steps"] == 9 and math.isfinite(metrics["loss"])
    first, second = (load_encoder(tmp_path / "model") for _ in range(2))
    vectors = first.embed(["w1 w2 w3", "", "w3 w1"])
    assert np.isfinite(vectors).all() and (vectors[0] != 0).any()
    assert np.array_equal(vectors, second.embed(["w1 w2 w3", "", "w3 w1"]))
    assert vectors.shape == (3, first.dim)
    assert first.options.chosen() == options.chosen()


def test_initial_vectors(tmp_path: Path, shards: list[str]) -> None:
    words = ["w1", "w2", "elsewhere", UNKNOWN]
    matrix = np.random.default_rng(0).standard_normal((4, 16)).astype(np.float32)
    write_vectors(tmp_path / "vectors.txt", words, matrix)
    # So small a step leaves everything as it was.
    options = SMALL.replace(
        initial_vectors=str(tmp_path / "vectors.txt"), learning_rate=1e-9, tags=True
    )
    train(options.replace(tags=False), tmp_path / "model", shards=shards, seed=1)
    encoder = load_encoder(tmp_path / "model")
    found = encoder.embed(["w1", "w2", "elsewhere", "nowhere", "w3"])
    assert found[:4] == pytest.approx(matrix, abs=1e-6)
    assert 0.3 < found[4].std() < 3  # a word of the corpus that has no vector
    corpus = [f"w{i}" for i in range(40)] + ["a", "dog", ".", "same", "text"]
    assert sorted(encoder.vocabularies["words"].words[1:]) == sorted([*corpus, "elsewhere"])
    assert train(options, tmp_path / "model", shards=shards, seed=1)["vocabulary"]


def test_cuda_where_there_is_none(tmp_path: Path, shards: list[str], monkeypatch: Patch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(UserError, match=r"embeddings\.device is cuda, but torch finds no GPU"):
        train(SMALL.replace(device="cuda"), tmp_path / "m", shards=shards, seed=1)
