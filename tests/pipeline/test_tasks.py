"""Encoders trained on files of their own: no bitext, no run before, and keys by content."""

import json
from pathlib import Path

import numpy as np
import pytest
import yaml

from paraloom.models.embeddings.tasks import TASKS
from paraloom.pipeline import cli

WORDS = ("dog", "cat", "man", "woman", "runs", "sleeps", "eats", "sings")


@pytest.fixture
def config(tmp_path: Path) -> Path:
    random = np.random.default_rng(0)
    sick = tmp_path / "sick"
    sick.mkdir()
    for name, rows in (("train", 60), ("trial", 20)):
        lines = ["pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment"]
        for i in range(rows):
            sides = (" ".join(random.choice(WORDS, 3)) for _ in range(2))
            lines.append("\t".join([str(i), *sides, str(1 + i % 5), "NEUTRAL"]))
        (sick / f"SICK_{name}.txt").write_text("\n".join(lines) + "\n")
    values = {
        "run": str(tmp_path / "run"),
        "embeddings": {
            "task": "similarity",
            "similarity": {"data": [str(sick)]},
            "dim": 8,
            "epochs": 2,
        },
        "evaluate": {"sick": str(sick)},
    }
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(values))
    return path


def train(config: Path, capsys: pytest.CaptureFixture[str], *changes: str) -> tuple[int, str, str]:
    code = cli.main(["train-embeddings", "--config", str(config), *changes])
    shown = capsys.readouterr()
    return code, shown.out, shown.err


def made(config: Path) -> dict[str, str]:
    stages = json.loads((config.parent / "run" / "manifest.json").read_text())["stages"]
    return {name: account["key"] for name, account in stages.items()}


def test_training_needs_no_bitext_and_is_not_repeated(
    config: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    code, out, _ = train(config, capsys)
    assert code == 0 and "MSE" in out and list(made(config)) == ["embeddings", "evaluate"]
    assert (tmp_path / "run" / "report" / "index.html").exists()
    first = made(config)
    weights = (tmp_path / "run" / "embeddings" / "model.safetensors").stat().st_mtime_ns
    assert train(config, capsys)[0] == 0
    now = (tmp_path / "run" / "embeddings" / "model.safetensors").stat().st_mtime_ns
    assert made(config) == first and now == weights

    # The same labels elsewhere are the same; another label is not.
    (tmp_path / "sick").rename(tmp_path / "moved")
    text = config.read_text().replace(str(tmp_path / "sick"), str(tmp_path / "moved"))
    config.write_text(text)
    assert train(config, capsys)[0] == 0 and made(config) == first
    path = tmp_path / "moved" / "SICK_train.txt"
    path.write_text(path.read_text().replace("\t5\tNEUTRAL", "\t4.5\tNEUTRAL"))
    assert train(config, capsys)[0] == 0
    assert made(config)["embeddings"] != first["embeddings"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("embeddings.similarity.data=[nothing]", "embeddings.similarity.data[0]: nothing is not"),
        (
            "embeddings.similarity.start=nothing",
            "embeddings.similarity.start: nothing is not there",
        ),
        ("embeddings.similarity=null", "embeddings.similarity: is missing; task similarity reads"),
        ("embeddings.similarity.sata=[a]", "embeddings.similarity.sata: unknown key; did you mean"),
        ("embeddings.similarity.data=a", "embeddings.similarity.data: must be a list, not 'a'"),
        ("embeddings.task=guessing", "embeddings.task: must be paraphrases, similarity,"),
        ("embeddings.task=paraphrases", "input: is missing"),
        ("embeddings.task=malstm", "embeddings.malstm: is missing"),
    ],
)
def test_mistakes_are_one_line(
    config: Path, capsys: pytest.CaptureFixture[str], change: str, message: str
) -> None:
    code, _, error = train(config, capsys, "--set", change)
    assert code == 2 and message in error and error.count("\n") == 1


def test_the_papers_other_systems_have_a_command_of_their_own(
    config: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(TASKS, "phrases", raising=False)  # another test may have added it
    change = f"embeddings={{task: phrases, phrases: {{table: {config}}}}}"
    code, _, error = train(config, capsys, "--set", change)
    assert code == 2
    expected = "embeddings.task: phrases is for `paraloom papers train --config FILE`"
    assert error == f"paraloom: {expected}\n"


def test_a_corpus_needs_bitext(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["corpus", "--config", str(config)]) == 2
    assert capsys.readouterr().err == "paraloom: input: is missing\n"
