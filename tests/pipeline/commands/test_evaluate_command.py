"""`paraloom evaluate`: models side by side, in the table, as JSON and as a page."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paraloom.models.embeddings.applications import cost
from paraloom.models.embeddings.applications.cost_table import Cost
from paraloom.models.embeddings.applications.evaluation import evaluate_models
from paraloom.models.embeddings.comparison import ComparedModel
from paraloom.pipeline.cli import main
from paraloom.pipeline.commands.model import evaluate
from paraloom.pipeline.commands.model.comparison_page import comparison_page
from tests.pipeline.report.test_report_browser import needs_browser, opened
from tests.run_helpers import Capsys, Patch
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
    monkeypatch.setattr(evaluate, "memory_of", lambda name, sentences: 12_000_000)
    monkeypatch.setattr(cost, "_SECONDS", 0.01)
    ours, theirs = tmp_path / "run" / "embeddings", tmp_path / "<theirs>"
    small_encoder(NUMBERED).save(ours)
    shutil.copytree(ours, theirs, ignore=shutil.ignore_patterns("config.json", "words.txt"))
    return [str(ours), str(theirs)]


def test_side_by_side(sts: Path, models: list[str], tmp_path: Path, capsys: Capsys) -> None:
    arguments = [part for model in models for part in ("--model", model)]
    arguments += [part for name in ("2015", "2017", "stsb") for part in ("--sts", str(sts / name))]
    files = ["--json", str(tmp_path / "x.json"), "--html", str(tmp_path / "x.html")]
    assert main(["evaluate", *arguments, *files]) == 0
    shown = capsys.readouterr().out
    for text in ("STS 2017 mean", "MTEB: STS 2017 (STS17", "main-news", "sentences/s", "12.0"):
        assert text in shown
    results = json.loads((tmp_path / "x.json").read_text())
    ours, theirs = models
    assert results["models"] == models
    for protocol in ("papers", "mteb"):
        found = results["protocols"][protocol]["results"]
        assert list(found) == ["STS 2015", "STS 2017", "STS Benchmark dev"]
        for of in found.values():
            assert of[ours] == pytest.approx(of[theirs], abs=1e-3)
    costs = results["costs"]["models"]
    assert min(costs[name]["bytes_on_disk"] for name in models) > 31 * 4 * 4
    assert costs[ours]["memory_bytes"] == 12_000_000
    assert costs[theirs]["sentences_per_second"] > 0
    assert "median of 5 rounds" in results["costs"]["how"]
    page = (tmp_path / "x.html").read_text()
    assert "&lt;theirs&gt;" in page and "<theirs>" not in page
    assert page.count("<svg") == 2 and "src=" not in page


def test_mistakes(sts: Path, models: list[str], tmp_path: Path, capsys: Capsys) -> None:
    def fails(message: str, *arguments: str) -> None:
        assert main(["evaluate", "--model", models[0], *arguments]) == 2
        error = capsys.readouterr().err
        assert re.search(message, error) and error.count("\n") == 1

    page = str(tmp_path / "x.html")
    fails("give --sts DIR", "--html", page)
    fails("stands twice among the models", "--model", models[0], "--sts", str(sts / "2015"))
    nowhere, missing = f"{models[0]}/config.json/x.html", str(tmp_path / "x.json")
    on_2015 = ("--sts", str(sts / "2015"), "--json", missing)
    fails(r"config\.json/x\.html: cannot be written", *on_2015, "--html", nowhere)
    assert not Path(page).exists() and not Path(missing).exists()


@needs_browser
def test_the_page_reads_well(sts: Path, tmp_path: Path) -> None:
    def model(i: int) -> ComparedModel:
        random = np.random.default_rng(i)
        return ComparedModel(
            f"folder/a-model-of-number-{i}", lambda text: random.normal(size=(len(text), 3))
        )

    report = evaluate_models([model(i) for i in range(7)], sts)
    speeds = (200_000.0, 20_000, 19_500, 15_000, 190, 189, 180)
    costs = [Cost(speed, 32, 10**8, None) for speed in speeds]
    for width, dark in ((390, True), (1280, False)):
        found: dict[str, Any]
        page = comparison_page(report, costs, "measured")
        found, console = opened(tmp_path, page, width=width, dark=dark)
        assert not console
        assert found["scroll"] <= found["width"]
        assert (found["overlaps"], found["outside"], found["pale"]) == ([], [], [])
        assert found["svgs"] == 2
