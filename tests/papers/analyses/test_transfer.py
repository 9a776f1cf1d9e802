import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from paraloom.papers.analyses import transfer as module
from paraloom.papers.analyses.transfer import evaluate
from paraloom.papers.datasets.transfer import LabelledSentences, TransferTask, find_tasks
from paraloom.pipeline import cli
from tests.papers.analyses.test_gate_analysis import model_of
from tests.run_helpers import Capsys, Patch


def write(path: Path, text: str, encoding: str = "utf-8") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode(encoding))


def test_sentevals_forms(tmp_path: Path) -> None:
    write(tmp_path / "MR" / "rt-polarity.pos", "good\nvery good\n")
    write(tmp_path / "MR" / "rt-polarity.neg", "caf\xe9 is bad\n", "latin-1")
    write(tmp_path / "SST" / "binary" / "sentiment-train", "a film\t1\nno film\t0\n")
    write(tmp_path / "SST" / "binary" / "sentiment-test", "film\t1\n")
    write(tmp_path / "TREC" / "train_5500.label", "DESC:manner How ?\nHUM:ind Who is it ?\n")
    write(tmp_path / "TREC" / "TREC_10.label", "NUM:dist How far ?\n")
    head = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\r\n"
    write(tmp_path / "MRPC" / "msr_paraphrase_train.txt", f"{head}1\t2\t3\ta b\tc\r\n")
    write(tmp_path / "MRPC" / "msr_paraphrase_test.txt", f"{head}0\t2\t3\ta\tb d\r\n")

    def rows(of: LabelledSentences | None) -> list[tuple[str, ...]]:
        if of is None:
            return []
        sides = [side.to_pylist() for side in (of.first, of.second) if side is not None]
        return list(zip(of.labels.tolist(), *sides, strict=True))

    found, _ = find_tasks(tmp_path)
    assert [(task.name, task.tested, rows(task.train), rows(task.test)) for task in found] == [
        ("MR", "10-fold", [(".pos", "good"), (".pos", "very good"), (".neg", "café is bad")], []),
        ("SST", "test", [("1", "a film"), ("0", "no film")], [("1", "film")]),
        ("TREC", "test", [("DESC", "How ?"), ("HUM", "Who is it ?")], [("NUM", "How far ?")]),
        ("MRPC", "test", [("1", "a b", "c")], [("0", "a", "b d")]),
    ]


def numbers(text: pa.StringArray) -> np.ndarray:
    """A sentence of numbers is its own vector."""
    return np.array([[float(x) for x in s.split()] for s in text.to_pylist()], np.float32)


def sentences(rows: np.ndarray) -> pa.StringArray:
    return pa.array([" ".join(f"{x:.4f}" for x in row) for row in rows])


def scores_of(
    first: np.ndarray,
    labels: np.ndarray,
    second: np.ndarray | None = None,
    name: str = "MR",
    test: LabelledSentences | None = None,
) -> dict[str, float]:
    sides = {"first": sentences(first), "second": None if second is None else sentences(second)}
    examples = LabelledSentences(**sides, labels=labels)
    tested = "10-fold" if test is None else "test"
    return evaluate(numbers, TransferTask(name=name, train=examples, test=test, tested=tested))


def test_classes_are_told_by_cross_validation_and_on_a_split() -> None:
    random = np.random.default_rng(0)
    x = random.normal(size=(300, 4))
    labels = np.where(x @ [1, -1, 2, 0] > 0, "yes", "no")
    assert scores_of(x, labels)["accuracy"] > 93
    # What was trained on does not count.
    assert 35 < scores_of(x, random.permutation(labels))["accuracy"] < 65
    test = LabelledSentences(first=sentences(-x[:50]), labels=labels[:50])
    assert scores_of(x, labels, name="SST", test=test)["accuracy"] < 7


def test_a_tenth_that_is_not_trained_on_chooses_the_regularisation(monkeypatch: Patch) -> None:
    x = np.arange(60.0).reshape(-1, 1)
    labels = np.where(x[:, 0] % 2, "odd", "even")
    fitted: list[tuple[float, list[float]]] = []
    tested: list[tuple[float, list[float]]] = []

    def fit(features: np.ndarray, labels: np.ndarray, strength: float) -> Any:
        fitted.append((strength, features[:, 0].tolist()))

        def predict(found: np.ndarray) -> np.ndarray:
            tested.append((strength, found[:, 0].tolist()))
            right = np.where(found[:, 0] % 2, "odd", "even")
            return right if strength == 0.01 else np.full_like(right, "none")

        return predict

    monkeypatch.setattr(module, "_fit", fit)
    test = LabelledSentences(first=sentences(x[40:]), labels=labels[40:])
    scores = scores_of(x[:40], labels[:40], name="SST", test=test)
    found = [(strength, len(rows)) for strength, rows in fitted]
    assert found == [(0.001, 36), (0.01, 36), (0.1, 36), (0.01, 40)]
    assert tested.pop() == (0.01, x[40:, 0].tolist()) and scores == {"accuracy": 100}
    for (_, rest), (_, held_out) in zip(fitted, tested, strict=False):
        assert sorted([*rest, *held_out]) == x[:40, 0].tolist()


def test_pairs_by_products_and_distances() -> None:
    random = np.random.default_rng(0)
    a, b = random.normal(size=(2, 400, 3))
    b[::2] = a[::2] + random.normal(scale=0.1, size=(200, 3))
    distance = np.abs(a - b).sum(1)
    scores = scores_of(a, np.where(distance < 1, "1", "0"), b, "MRPC")
    assert scores["accuracy"] > 93 and scores["f1"] > 93
    assert scores_of(a, np.clip(5 - distance, 1, 5), b, "SICK-R")["pearson"] > 93


def test_the_command(tmp_path: Path, capsys: Capsys) -> None:
    model_of("word-avg").save(tmp_path / "model")
    rows = ["1 a dog runs", "0 the cat sees a bird"] * 10
    write(tmp_path / "tasks" / "stsa.binary.train", "\n".join(rows))
    write(tmp_path / "tasks" / "stsa.binary.dev", "1 a dog runs fast\n0 the cat sees it\n")
    name, file = str(tmp_path / "model"), tmp_path / "x.json"
    given = ["--model", name, "--tasks", str(tmp_path / "tasks"), "--json", str(file)]
    assert cli.main(["papers", "transfer", *given]) == 0
    shown = capsys.readouterr().out
    assert "SST" in shown and "100.0" in shown and "without MR, CR" in " ".join(shown.split())
    found = json.loads(file.read_text())["transfer"]
    assert found["tasks"]["SST"]["tested"] == "dev" and found["missing"][0] == "MR"
    assert found["tasks"]["SST"]["models"][name] == {"accuracy": 100.0}
