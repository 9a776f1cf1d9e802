"""`train-embeddings --pairs`, and the vectors that a run's encoder starts from."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from paraloom.models.embeddings.model import load_encoder
from paraloom.models.embeddings.training.pair_trainer import PairTrainer
from paraloom.models.errors import UserError
from paraloom.pipeline import cli
from paraloom.pipeline.run.run import Run
from tests.run_helpers import Capsys, Patch, calls_of, manifest, refusal

SMALL = ("--set", "embeddings.dim=8", "--set", "embeddings.epochs=2")
PHRASES = "dog\thound\ncat\tkitten\nman\tguy\nruns\tsprints\nsleeps\tnaps\n"


@pytest.fixture
def pairs(tmp_path: Path) -> str:
    lines = [f"dog {i} runs\thound {i} sprints\tcat {i} sleeps" for i in range(40)]
    (tmp_path / "pairs.tsv").write_text("\n".join(lines) + "\n")
    return str(tmp_path / "pairs.tsv")


def train(capsys: Capsys, *arguments: object) -> tuple[int, str]:
    code = cli.main(["train-embeddings", *map(str, arguments)])
    return code, capsys.readouterr().err


def test_pairs_need_no_configuration(tmp_path: Path, pairs: str, capsys: Capsys) -> None:
    run = tmp_path / "run"
    given = ("--pairs", pairs, "--out", run, *SMALL)
    assert train(capsys, *given)[0] == 0
    found = manifest(tmp_path)["stages"]
    assert list(found) == ["embeddings"] and found["embeddings"]["training"]["pairs"] == 40
    assert load_encoder(run / "embeddings").embed(["dog"]).any()
    # Up to date, also from another folder; other columns are another key.
    (tmp_path / "other").mkdir()
    moved = tmp_path / "other" / "moved.tsv"
    moved.write_bytes(Path(pairs).read_bytes())
    again = ("--pairs", moved, "--out", run, *SMALL)
    code, error = train(capsys, *again)
    assert code == 0 and "embeddings …" not in error and manifest(tmp_path)["stages"] == found
    columns = json.dumps([{"paths": [pairs], "negative": 3}])
    code, _ = train(capsys, *given, "--set", f"embeddings.pairs={columns}")
    assert code == 0
    assert manifest(tmp_path)["stages"]["embeddings"]["key"] != found["embeddings"]["key"]


def test_an_upload_that_fails_costs_no_training(
    tmp_path: Path, pairs: str, capsys: Capsys, monkeypatch: Patch
) -> None:
    def fails(run: Run, stage: str) -> str:
        raise UserError("the store is full")

    work = tmp_path / "run" / "embeddings.training"
    given = ("--pairs", pairs, "--out", work.parent, *SMALL, "--set", "embeddings.batch_size=8")
    often = ("--set", "embeddings.checkpoint_every=1")
    with monkeypatch.context() as patch:
        patch.setattr(Run, "publish", fails)
        assert train(capsys, *given, *often)[0] == 2 and list(work.glob("step-*"))
    steps = calls_of(monkeypatch, PairTrainer, "step")
    assert train(capsys, *given, *often)[0] == 0 and not work.exists()
    assert len(steps) < 5, "of ten"


def test_any_letters_in_paths(tmp_path: Path, pairs: str, capsys: Capsys) -> None:
    path = Path(pairs).rename(tmp_path / "𠮷🐕.tsv")
    assert train(capsys, "--pairs", path, "--out", tmp_path / "🐕", *SMALL)[0] == 0
    assert (tmp_path / "🐕" / "embeddings").is_dir()


def test_mistakes_are_one_line(capsys: Capsys) -> None:
    for arguments, message in (
        ((), "train-embeddings: give --config FILE, or --pairs FILE and --out DIR"),
        (("--pairs", "gone.tsv", "--out", "x"), "embeddings.pairs[0].paths[0]: gone.tsv does not"),
    ):
        assert message in refusal(capsys, "train-embeddings", *arguments)


def config_of(folder: Path, pairs: str, **changes: Any) -> Path:
    (folder / "phrases.tsv").write_text(PHRASES)
    score = {"phrases": str(folder / "phrases.tsv"), "training": {"dim": 8, "epochs": 2}}
    values = {
        "run": str(folder / "run"),
        "score": {**score, **changes.pop("score", {})},
        "embeddings": {"pairs": [{"paths": [pairs]}], "dim": 8, "epochs": 1, **changes},
    }
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump(values))
    return path


def test_encoders_start_from_the_runs_vectors(tmp_path: Path, pairs: str, capsys: Capsys) -> None:
    tiny = {"learning_rate": 1e-9}  # so that the vectors stay as they are
    config = config_of(tmp_path, pairs, **tiny)
    assert train(capsys, "--config", config)[0] == 0
    found = manifest(tmp_path)["stages"]
    assert list(found) == ["paragram", "embeddings"]
    assert "PARAGRAM" in found["embeddings"]["training"]["initial_vectors"]
    encoder = load_encoder(tmp_path / "run" / "embeddings")
    lines = (tmp_path / "run" / "paragram" / "vectors.txt").read_text().splitlines()
    rows = {line.split()[0]: np.array(line.split()[1:], np.float32) for line in lines}
    for word in ("hound", "kitten"):  # the second is not in the pairs
        assert np.allclose(encoder.embed([word])[0], rows[word], atol=1e-6)
    # Other vectors make another encoder.
    changed = ("--set", "score.training.epochs=3")
    assert train(capsys, "--config", config, *changed)[0] == 0
    assert manifest(tmp_path)["stages"]["embeddings"]["key"] != found["embeddings"]["key"]
    without = ("--set", "embeddings.initial_vectors=null")
    assert train(capsys, "--config", config, *without) == (0, "embeddings …\n")
    assert "initial_vectors" not in manifest(tmp_path)["stages"]["embeddings"]["training"]


def test_vectors_of_another_size_are_not_used(tmp_path: Path, pairs: str, capsys: Capsys) -> None:
    lines = [f"{word} 1 2 3\n" for word in ("dog", "cat")]
    (tmp_path / "vectors.txt").write_text("".join(lines))
    config = config_of(tmp_path, pairs, score={"paragram": str(tmp_path / "vectors.txt")})
    code, error = train(capsys, "--config", config)
    assert code == 0 and "vectors have 3 dimensions, but embeddings.dim is 8" in error
    assert "initial_vectors" not in manifest(tmp_path)["stages"]["embeddings"]["training"]
