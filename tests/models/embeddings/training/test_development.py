"""Development data choose the weights; a killed training resumes with its evaluations."""

import json
from pathlib import Path

import numpy as np
import pytest

from paraloom.models.embeddings.datasets.similarity import read_labelled
from paraloom.models.embeddings.model import load_encoder
from paraloom.models.embeddings.options import EmbeddingOptions, PairsOptions
from paraloom.models.embeddings.tasks import train
from paraloom.models.embeddings.tasks.paraphrases import mean_agreement
from paraloom.models.embeddings.training import data
from tests.models.embeddings.training.test_checkpoint import interrupted
from tests.models.embeddings.training.test_pair_files import WORDS, rows, tsv
from tests.run_helpers import Patch

OPTIONS = EmbeddingOptions(
    dim=8, epochs=4, batch_size=8, mega_batch=2, learning_rate=0.05, checkpoint_every=3
)


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


def test_the_best_weights_are_kept(
    tmp_path: Path, pairs: list[PairsOptions], labelled: str
) -> None:
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
    monkeypatch.setattr(
        "paraloom.models.embeddings.tasks.paraphrases.mean_agreement", lambda *_: next(scores)
    )
    options = OPTIONS.replace(pairs=pairs, development=labelled, patience=2, epochs=9)
    found = train(options, tmp_path / "model", seed=1)
    assert [e["epoch"] for e in found["evaluations"]] == [1, 2, 3, 4]
    assert (found["best_epoch"], found["epochs"]) == (2, 4)


def test_killed_and_resumed_is_the_same(
    tmp_path: Path, pairs: list[PairsOptions], labelled: str, monkeypatch: Patch
) -> None:
    monkeypatch.setattr(data, "POOL", 60)
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
