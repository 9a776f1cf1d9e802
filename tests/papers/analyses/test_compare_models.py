"""Pairs on which one of two models is nearer to people."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from paraloom.models.embeddings.comparison import ComparedModel, Scores, Vectors
from paraloom.papers.analyses.compare_models import disagreements
from paraloom.pipeline import cli
from tests.labelled import labelled
from tests.papers.analyses.test_gate_analysis import model_of
from tests.run_helpers import refusal


def model(
    name: str,
    said: Mapping[str, Sequence[float] | Scores],
    scale: tuple[float, float] | None = None,
) -> ComparedModel:
    """Scores by the texts' own names."""

    def embed(texts: pa.StringArray) -> Vectors:
        return np.array(texts.to_pylist(), object)[:, None]

    def compare(first: Vectors, second: Vectors) -> Scores:
        names = (text.split() for text in first[:, 0])
        return np.array([said[set][int(number)] for set, number in names])

    return ComparedModel(name, embed, compare, scale)


SETS = [
    labelled([f"{name} {i}" for i in range(4)], [f"{name} {i}'" for i in range(4)], of, name=name)
    for name, of in (("x", [0, 5, 2.5, 1]), ("y", [3.5, 0, 5, 2.5]))
]


def test_scores_are_stretched_to_the_scale_set_by_set() -> None:
    # Of x: 0, 5, 2.5, 5 on the scale; of y: 0, 5, 2.5, 2.5.
    first = model("A", {"x": [-1, 1, 0, 1], "y": [0.2, 0.4, 0.3, 0.3]})
    # Predicted labels stay as they are.
    second = model("B", {"x": [1, 4, 2.5, 1], "y": [4, 4, 4, 2.5]}, scale=(0, 5))
    for_b, for_a = disagreements((first, second), SETS, count=3)
    assert [(d.first, d.label, d.scores) for d in for_b] == [
        ("x 3", 1.0, (5.0, 1.0)),
        ("y 0", 3.5, (0.0, 4.0)),
        ("y 2", 5.0, (pytest.approx(2.5), 4.0)),
    ]
    assert for_b[0].data == "STS 2014 x" and for_b[0].second == "x 3'"
    assert for_b[0].errors == (4.0, 0.0)
    assert [d.first for d in for_a] == ["x 0", "x 1"] or [d.first for d in for_a] == ["x 1", "x 0"]


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("word-avg", "gran"):
        model_of(name).save(tmp_path / name)
    sts = tmp_path / "sts" / "2014"
    sts.mkdir(parents=True)
    rows = ["5\ta dog runs\ta dog runs fast", "1\tthe cat\trun", "3\ta cat\tthe bird sees"]
    (sts / "made.tsv").write_text("\n".join(rows) + "\n")
    file, on = tmp_path / "errors.json", ["--sts", str(tmp_path / "sts")]
    models = ["--model", str(tmp_path / "word-avg"), "--model", str(tmp_path / "gran")]
    command = ["papers", "compare-models"]
    assert cli.main([*command, *models, *on, "--json", str(file)]) == 0
    assert "is closer to the label than" in capsys.readouterr().out
    found = json.loads(file.read_text())
    assert set(found) == {str(tmp_path / name) for name in ("word-avg", "gran")}
    assert "give --model twice" in refusal(capsys, *command, *models[:2], *on)
    assert "nothing to evaluate on" in refusal(capsys, *command, *models)
