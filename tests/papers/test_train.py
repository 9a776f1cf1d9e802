"""`paraloom papers train`: runs that train the papers' other systems."""

from pathlib import Path

import pytest
import yaml

from paraloom.pipeline import cli
from tests.pipeline.test_tasks import made


@pytest.fixture
def config(tmp_path: Path) -> Path:
    table = tmp_path / "table.txt"
    nouns = [f"{a}{b}" for a in "bcdfg" for b in ("at", "en", "ig", "od", "ull")]
    rows = [f"{one} {noun}" for one in ("big", "small", "old", "new") for noun in nouns]
    table.write_text("".join(f"{row}\tthe {row}\n" for row in rows))
    section = {"task": "phrases", "phrases": {"table": str(table)}, "model": "gru"}
    values = {"run": str(tmp_path / "run"), "embeddings": section | {"dim": 8, "epochs": 2}}
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(values))
    return path


def train(config: Path, *changes: str) -> int:
    sets = [part for change in changes for part in ("--set", change)]
    return cli.main(["papers", "train", "--config", str(config), *sets])


def test_phrases_to_the_report(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert train(config) == 0 and "the best of 2" in capsys.readouterr().out
    assert (config.parent / "run" / "report" / "index.html").exists()
    before = made(config)
    assert train(config) == 0 and made(config) == before


@pytest.mark.parametrize(
    ("change", "content", "message"),
    [
        ("{task: context, context: {text: [FILE]}, model: word-sum}", "It rains.", "nowhere do th"),
        ("{task: phrases, phrases: {table: FILE}}", "", "FILE: empty, no phrase pairs"),
        ("{task: malstm, malstm: {data: [FILE]}, model: lstm}", "6\ta\tb\n", "6 is not in 0–5"),
    ],
)
def test_files_that_are_wrong(
    config: Path, capsys: pytest.CaptureFixture[str], change: str, content: str, message: str
) -> None:
    path = config.with_name("file.tsv")
    path.write_text(content)
    assert train(config, f"embeddings={change.replace('FILE', str(path))}") == 2
    (line,) = (of for of in capsys.readouterr().err.splitlines() if of.startswith("paraloom:"))
    assert message.replace("FILE", str(path)) in line
    assert not list((config.parent / "run").glob("embeddings*"))
