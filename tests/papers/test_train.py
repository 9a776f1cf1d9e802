"""`paraloom papers train`: no bitext, no run before, and keys by content; refused elsewhere."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from paraloom.pipeline import cli
from tests.labelled import write_sick
from tests.run_helpers import Capsys


@pytest.fixture
def config(tmp_path: Path) -> Path:
    sick = str(write_sick(tmp_path / "sick", train=60, trial=20))
    options = {"task": "similarity", "similarity": {"data": [sick]}, "dim": 8, "epochs": 2}
    values = {"run": str(tmp_path / "run"), "embeddings": options, "evaluate": {"sick": sick}}
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(values))
    return path


def run(config: Path, capsys: Capsys, *changes: str) -> tuple[int, str, str]:
    sets = [part for change in changes for part in ("--set", change)]
    code = cli.main(["papers", "train", "--config", str(config), *sets])
    shown = capsys.readouterr()
    return code, shown.out, shown.err


def made(config: Path) -> dict[str, str]:
    stages = json.loads((config.parent / "run" / "manifest.json").read_text())["stages"]
    return {name: account["key"] for name, account in stages.items()}


def test_it_needs_no_bitext_and_is_done_once(config: Path, capsys: Capsys, tmp_path: Path) -> None:
    code, out, _ = run(config, capsys)
    assert code == 0 and "SICK" in out and list(made(config)) == ["embeddings", "evaluate"]
    assert (tmp_path / "run" / "report" / "index.html").exists()
    first = made(config)
    weights = (tmp_path / "run" / "embeddings" / "model.safetensors").stat().st_mtime_ns
    assert run(config, capsys)[0] == 0
    now = (tmp_path / "run" / "embeddings" / "model.safetensors").stat().st_mtime_ns
    assert made(config) == first and now == weights

    # The same labels elsewhere are the same; another label is not.
    (tmp_path / "sick").rename(tmp_path / "moved")
    config.write_text(config.read_text().replace("/sick", "/moved"))
    assert run(config, capsys)[0] == 0 and made(config) == first
    path = tmp_path / "moved" / "SICK_train.txt"
    path.write_text(path.read_text().replace("\t5\tENTAILMENT", "\t4.5\tENTAILMENT"))
    assert run(config, capsys)[0] == 0
    assert made(config)["embeddings"] != first["embeddings"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("embeddings.similarity.data=[nothing]", "embeddings.similarity.data[0]: nothing is not"),
        ("embeddings.task=guessing", "embeddings.task: must be 'paraphrases', 'similarity',"),
        ("embeddings.task=paraphrases", "input: is missing"),
        ("embeddings.task=malstm", "embeddings.malstm: is missing"),
    ],
)
def test_mistakes_are_one_line(config: Path, capsys: Capsys, change: str, message: str) -> None:
    code, _, error = run(config, capsys, change)
    assert code == 2 and message in error and error.count("\n") == 1


def test_other_commands_name_the_papers(config: Path, capsys: Capsys, tmp_path: Path) -> None:
    """In a process that does not know these systems: their tasks, encoders, cells and models."""
    assert run(config, capsys, "embeddings.model=gran")[0] == 0
    model = str(tmp_path / "run" / "embeddings")
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("a dog\ta cat\n")
    train = ["train-embeddings", "--pairs", str(pairs), "--out", str(tmp_path / "other")]
    commands = [
        ["train-embeddings", "--config", str(config)],
        [*train, "--set", "embeddings.model=gran"],
        [*train, "--set", "embeddings.model=gru", "--set", "embeddings.cell=cho"],
        ["similarity", "--model", model],
        ["papers", "similarity", "--model", model],
    ]
    code = (
        "import json, sys; from paraloom.pipeline.cli import main\n"
        "print([main(command) for command in json.loads(sys.argv[1])])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, json.dumps(commands)],
        input="a dog runs\ta dog sleeps\n",
        capture_output=True,
        text=True,
        check=True,
    )
    label, codes = done.stdout.splitlines()
    assert codes == "[2, 2, 2, 2, 0]" and 1 <= float(label) <= 5
    lines = [line for line in done.stderr.splitlines() if line.startswith("paraloom: ")]
    of_the_papers = "task: similarity is for `paraloom papers`"
    whats = (of_the_papers, "`paraloom papers` has more", "cell: unknown", of_the_papers)
    assert all(what in line for line, what in zip(lines, whats, strict=True)), lines
