"""Development data choose the weights; a killed training resumes with its evaluations."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paraloom.models.embeddings.applications.evaluation import agreement
from paraloom.models.embeddings.datasets.similarity import read_labelled, read_sick, read_sts
from paraloom.models.embeddings.model import load_encoder
from paraloom.models.embeddings.options import EmbeddingOptions, PairsOptions
from paraloom.models.embeddings.tasks import train
from paraloom.models.embeddings.tasks.paraphrases import mean_agreement, run_probe
from paraloom.models.embeddings.training import data as module
from paraloom.models.text.vectors import write_vectors
from tests.labelled import WORDS as KNOWN
from tests.labelled import write_sick
from tests.models.embeddings.training.test_checkpoint import interrupted
from tests.models.embeddings.training.test_pair_files import WORDS, rows, tsv
from tests.run_helpers import Patch

OPTIONS = EmbeddingOptions(dim=8, epochs=4, batch_size=8, mega_batch=2, learning_rate=0.05)
OPTIONS = OPTIONS.replace(checkpoint_every=3)


@pytest.fixture
def pairs(tmp_path: Path) -> list[PairsOptions]:
    (tmp_path / "pairs.tsv").write_bytes(tsv(rows(150)))
    return [PairsOptions(paths=[str(tmp_path / "pairs.tsv")], negative=3)]


@pytest.fixture
def labelled(tmp_path: Path) -> str:
    random = np.random.default_rng(1)
    lines = ["reference\tparaphrase\tscore\tfluency"]
    for score in range(0, 100, 4):
        sides = (" ".join(random.choice(WORDS, 4)) for _ in range(2))
        lines.append("\t".join([*sides, str(score), "1"]))
    path = tmp_path / "judgments.tsv"
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def test_the_best_weights_stay(tmp_path: Path, pairs: list[PairsOptions], labelled: str) -> None:
    options = OPTIONS.replace(pairs=pairs, development=labelled, evaluate_every=4)
    metrics = train(options, tmp_path / "model", seed=1)
    done = metrics["evaluations"]
    assert "25 labelled pairs" in metrics["development_data"]
    assert [e["step"] for e in done] == sorted({e["step"] for e in done}) and len(done) > 4
    assert {e["epoch"] for e in done} == {1, 2, 3, 4}
    assert metrics["development"] == max(e["development"] for e in done)
    best = {"epoch": metrics["best_epoch"], "step": metrics["best_step"]}
    assert {**best, "development": metrics["development"]} in done
    # The folder has the chosen weights and all evaluations.
    (sets,) = [read_labelled(labelled)]
    score = mean_agreement(load_encoder(tmp_path / "model"), sets)
    assert score == pytest.approx(metrics["development"], abs=1e-4)
    lines = (tmp_path / "model" / "metrics.jsonl").read_text().splitlines()
    logged = [line["development"] for line in map(json.loads, lines) if "development" in line]
    assert logged == [e["development"] for e in done]
    assert json.loads((tmp_path / "model" / "metrics.json").read_text()) == metrics
    # Without development data, the last weights.
    train(OPTIONS.replace(pairs=pairs), tmp_path / "last", seed=1)
    last = load_encoder(tmp_path / "last")
    assert mean_agreement(last, sets) == pytest.approx(done[-1]["development"], abs=1e-4)


def test_patience_ends_the_training(
    tmp_path: Path, pairs: list[PairsOptions], labelled: str, monkeypatch: Patch
) -> None:
    scores = iter([1.0, 3.0, 2.0, float("nan"), 9.0])
    measured = "paraloom.models.embeddings.tasks.paraphrases.mean_agreement"
    monkeypatch.setattr(measured, lambda *_: next(scores))
    options = OPTIONS.replace(pairs=pairs, development=labelled, patience=2, epochs=9)
    found = train(options, tmp_path / "model", seed=1)
    assert [e["epoch"] for e in found["evaluations"]] == [1, 2, 3, 4]
    assert (found["best_epoch"], found["epochs"]) == (2, 4)


def test_killed_and_resumed_is_the_same(
    tmp_path: Path, pairs: list[PairsOptions], labelled: str, monkeypatch: Patch
) -> None:
    monkeypatch.setattr(module, "POOL", 60)
    options = OPTIONS.replace(pairs=pairs, development=[labelled], evaluate_every=3, dropout=0.1)
    whole = train(options, tmp_path / "whole", seed=1)
    for at in (11, 29, 46):
        with interrupted(monkeypatch, at):
            train(options, tmp_path / "resumed", seed=1)
    resumed = train(options, tmp_path / "resumed", seed=1)
    keys = ("development", "best_epoch", "best_step", "evaluations")
    assert [resumed[key] for key in keys] == [whole[key] for key in keys]
    folders = tmp_path / "whole", tmp_path / "resumed"
    for name in ("model.safetensors", "words.txt"):
        assert len({(folder / name).read_bytes() for folder in folders}) == 1


def known_pairs() -> list[pa.StringArray]:
    """Sentences of the words of `write_sick`, and the same with another word."""
    random = np.random.default_rng(3)
    left = [" ".join(random.choice(KNOWN, 5)) for _ in range(70)]
    return [pa.array(left), pa.array([f"{text} too" for text in left])]


@pytest.mark.parametrize(("model", "start"), [("word-avg", False), ("trigram-avg+lstm-avg", True)])
def test_a_trial_is_the_training_of_the_run(tmp_path: Path, model: str, start: bool) -> None:
    """Without a trace."""
    vectors, data = None, read_sick(write_sick(tmp_path / "sick", train=20, trial=20))
    if start:
        vectors = str(tmp_path / "vectors.txt")
        write_vectors(vectors, [*KNOWN[:5], "new"], np.eye(6, 12, dtype=np.float32) + 0.1)
    options = EmbeddingOptions(model=model, dim=12, epochs=1, batch_size=20)
    options = options.replace(initial_vectors=vectors)
    left, right = sides = known_pairs()
    pairs = pa.table(sides, names=["reference", "translation"])
    pq.write_table(pairs, tmp_path / "pairs.parquet")
    train(options, tmp_path / "model", shards=[str(tmp_path / "pairs.parquet")], seed=5)
    embed = load_encoder(tmp_path / "model").embed
    mean = np.mean([agreement(embed, each).pearson for each in data])
    assert run_probe(left, right, options, data, seed=5) == pytest.approx(mean, abs=1e-9)


def test_what_a_trial_knows_nothing_of_counts_as_nothing(tmp_path: Path) -> None:
    options = EmbeddingOptions(dim=12, epochs=1, batch_size=20)
    left, right = known_pairs()
    (tmp_path / "foreign.tsv").write_text("1\taaa\tbbb\n3\tccc ddd\teee\n")
    data = read_sick(write_sick(tmp_path / "sick", train=20, trial=20))
    known = run_probe(left, right, options, data, seed=1)
    assert known > 0
    both = run_probe(left, right, options, [*data, *read_sts(tmp_path / "foreign.tsv")], seed=1)
    assert both == pytest.approx(known * 2 / 3)
