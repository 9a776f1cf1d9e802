"""MaLSTM: its data, its LSTM, and what comes out of a whole training."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

from paraloom.models.embeddings.datasets.similarity import ENTAILMENT, LabelledPairs, read_sick
from paraloom.models.embeddings.encoders import embedding_matrices
from paraloom.models.embeddings.model import load_encoder
from paraloom.models.embeddings.training.initial_model import new_model
from paraloom.models.errors import UserError
from paraloom.papers import tasks
from paraloom.papers.analyses.transfer import pair_features
from paraloom.papers.datasets.splits import split
from paraloom.papers.options import MaLSTMOptions, SystemOptions
from paraloom.papers.tasks.malstm import entailment, initialise, rescaled
from tests.labelled import WORDS, labelled
from tests.papers.test_label_trainer import sick

__all__ = ["sick"]  # the fixture


def malstm(sick: Path, **section: Any) -> SystemOptions:
    options = SystemOptions(model="lstm", dim=12, hidden=6, epochs=8, batch_size=10, clip=1.0)
    return options.replace(task="malstm", malstm=MaLSTMOptions(data=[str(sick)], **section))


def test_malstm_with_all_its_parts(tmp_path: Path, sick: Path) -> None:
    lines = (f"{i % 6}\t{WORDS[i % 8]} runs\t{WORDS[i % 7]} runs\n" for i in range(60))
    (tmp_path / "other.tsv").write_text("".join(lines))
    (tmp_path / "thesaurus.txt").write_text("dog cat\nman woman\nzebra horse\n")
    files = {"pretrain": [str(tmp_path / "other.tsv")], "synonyms": str(tmp_path / "thesaurus.txt")}
    options = malstm(sick, **files, augmented=50)
    metrics = tasks.train(options, tmp_path / "model", seed=1)
    counts = [metrics[key] for key in ("pairs", "augmented", "pretraining_pairs")]
    assert counts == [105, 50, 60] and metrics["development_pairs"] == 45
    assert metrics["bandwidth"] > 0
    assert 0 <= metrics["entailment"]["accuracy"]["SICK trial"] <= 100
    model = load_encoder(tmp_path / "model")
    (data,) = (pairs for pairs in read_sick(sick) if pairs.name == "trial")
    predicted = model.similarity(data.first, data.second)
    mse = np.mean((predicted - data.scores) ** 2)
    assert mse == pytest.approx(metrics["test"]["SICK trial"]["mse"], abs=1e-6)
    # `test_heads.py` has what calibration is for; here, so few pairs may err more after it.
    assert mse != pytest.approx(metrics["uncalibrated"]["SICK trial"]["mse"], abs=1e-4)


def test_malstm_trains_on_the_5000_pairs_of_train_and_trial(sick: Path) -> None:
    """Where the test set is there to be reported; without it, trial is reported."""
    header, *rows = (sick / "SICK_trial.txt").read_text().splitlines()
    files = [str(sick / f"SICK_{name}.txt") for name in ("train", "trial")]
    without = split([str(sick)], held_out=0.3, train_trial=True)
    assert (len(without.train), len(without.development)) == (105, 45)
    assert [data.name for data in without.test] == ["trial"]
    (sick / "SICK_test_annotated.txt").write_text("\n".join([header, *rows[:9]]) + "\n")
    data = split([str(sick)], held_out=0.3, train_trial=True)
    assert (len(data.train), len(data.development)) == (133, 57)  # 70% and 30% of 150 + 40
    assert [(data.name, len(data)) for data in data.test] == [("test", 9)]
    assert data.train.entailment is not None
    assert [data.name for data in split(files, held_out=0.3, train_trial=True).test] == ["trial"]
    with pytest.raises(UserError, match="no pairs of SICK to train on"):
        split(files[1:], held_out=0.3, train_trial=True)


def test_word_vectors_stay_as_they_are(tmp_path: Path, sick: Path) -> None:
    (tmp_path / "vectors.txt").write_text("".join(f"{w} {' '.join(['0.5'] * 12)}\n" for w in WORDS))
    options = malstm(sick, entailment=False).replace(initial_vectors=str(tmp_path / "vectors.txt"))
    tasks.train(options, tmp_path / "model", seed=1)
    (table,) = embedding_matrices(load_encoder(tmp_path / "model").encoder).values()
    assert (table.weight[1:] == 0.5).all()


def test_the_lstm_starts_with_open_forget_gates(sick: Path) -> None:
    data = read_sick(sick)[0]
    model = new_model(malstm(sick), [data.first, data.second], 1)
    initialise(model.encoder, 1)
    (network,) = (part for part in model.encoder.modules() if isinstance(part, torch.nn.LSTM))
    W, U, b, b_other = (w.detach().numpy() for w in network.all_weights[0])
    assert (b_other == 0).all() and (b[6:12] == 2.5).all()
    assert (np.delete(b, range(6, 12)) == 0).all()
    assert np.std(W) == pytest.approx(0.01, rel=0.2) == np.std(U)


def test_labels_on_another_scale(sick: Path) -> None:
    data = read_sick(sick)[0]
    found = rescaled(data, (0.0, 1.0))
    assert found.scores == pytest.approx((data.scores - 1) / 4) and found.scale == (0.0, 1.0)


def letters(text: pa.StringArray) -> np.ndarray:
    return np.array([[s.count(c) for c in "abcd"] for s in text.to_pylist()], np.float32)


def judged(n: int, seed: int) -> LabelledPairs:
    """Judged by how many letters differ: none, one, two."""
    random = np.random.default_rng(seed)
    first = ["".join(random.choice(list("ab"), 5)) for _ in range(n)]
    differ = random.integers(0, 3, n)
    second = [text + "cd"[:d] for text, d in zip(first, differ, strict=True)]
    name, labels = "trial" if seed else "train", pa.array([ENTAILMENT[d] for d in differ])
    return labelled(first, second, np.ones(n), "SICK", name, entailment=labels)


def test_what_differs_is_learnt() -> None:
    found = entailment(letters, judged(90, 0), [judged(40, 1)], seed=1)
    assert found["accuracy"]["SICK trial"] > 95 and found["cross_validation"] > 95


def test_features() -> None:
    data = judged(3, 0)
    a, b = letters(data.first), letters(data.second)
    found = pair_features(letters, data.first, data.second)
    assert (found[:, :4] == np.abs(a - b)).all() and (found[:, 4:] == a * b).all()
