"""`paraloom evaluate`: models side by side, in the table and as JSON."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from paraloom.models.embeddings.applications import opened
from paraloom.pipeline.cli import main
from tests.run_helpers import Capsys, Patch, refusal
from tests.small_encoder import NUMBERED, small_encoder


@pytest.fixture
def sts(tmp_path: Path) -> Path:
    random = np.random.default_rng(1)
    for year, name in (("2015", "images"), ("2017", "en-en"), ("stsb", "sts-dev")):
        rows = []
        for i in range(30):
            words = " ".join(f"w{n}" for n in random.integers(0, 30, 5))
            first = [f"main-{'news' if i % 2 else 'forums'}", "x", year, str(i)]
            score = str(round(random.uniform(0, 5), 1))
            rows.append((first if year == "stsb" else []) + [score, words, f"w{i} {words[:5]}"])
        suffix = "csv" if year == "stsb" else "tsv"
        file = tmp_path / "sts" / year / f"{name}.{suffix}"
        file.parent.mkdir(parents=True)
        file.write_text("".join("\t".join(row) + "\n" for row in rows))
    return tmp_path / "sts"


@pytest.fixture
def models(tmp_path: Path, monkeypatch: Patch) -> list[str]:
    """An encoder of ours, and the same without what is only ours."""
    monkeypatch.setattr(opened, "_SECONDS", 0.01)
    ours, theirs = tmp_path / "run" / "embeddings", tmp_path / "<theirs>"
    small_encoder(NUMBERED).save(ours)
    shutil.copytree(ours, theirs, ignore=shutil.ignore_patterns("config.json", "words.txt"))
    return [str(ours), str(theirs)]


def test_side_by_side(sts: Path, models: list[str], tmp_path: Path, capsys: Capsys) -> None:
    arguments = [part for model in models for part in ("--model", model)]
    arguments += [part for name in ("2015", "2017", "stsb") for part in ("--sts", str(sts / name))]
    assert main(["evaluate", *arguments, "--json", str(tmp_path / "x.json")]) == 0
    shown = capsys.readouterr().out
    for text in ("STS 2017 mean", "MTEB: STS 2017 (STS17", "sentences/s", "size on disk"):
        assert text in shown
    results = json.loads((tmp_path / "x.json").read_text())
    ours, theirs = models
    assert results["models"] == models
    found = results["protocols"]["mteb"]["results"]
    assert list(found) == ["STS 2015", "STS 2017", "STS Benchmark dev"]
    for of in found.values():
        assert of[ours] == pytest.approx(of[theirs], abs=1e-3)
    costs = results["costs"]["models"]
    assert min(costs[name]["bytes_on_disk"] for name in models) > 31 * 4 * 4
    assert costs[theirs]["sentences_per_second"] > 0
    assert "give --sts DIR" in refusal(capsys, "evaluate", "--model", ours)
