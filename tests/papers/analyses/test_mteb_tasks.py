"""The package mteb, by a small stand-in with the functions that are called."""

import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.stats import spearmanr

from paraloom.models.embeddings.applications.evaluation import evaluate_models
from paraloom.models.embeddings.comparison import cosines
from paraloom.models.embeddings.datasets.similarity import SEMEVAL, read_sts
from paraloom.models.embeddings.model import load_encoder
from paraloom.papers.analyses.mteb_tasks import MTEBEncoder
from paraloom.pipeline import cli
from tests.papers.analyses.test_gate_analysis import model_of
from tests.run_helpers import Capsys, Patch

WORDS = ("a", "dog", "the", "cat", "bird", "sees", "run", "runs", "fast", ".")


class Task:
    def __init__(self, name: str) -> None:
        self.metadata = SimpleNamespace(name=name, main_score="cosine_spearman")
        self.eval_splits, self.hf_subsets = ["test"], ["default"]
        self.dataset: Any = None
        self.data_loaded = False


def evaluate(model: MTEBEncoder, task: Task, **_: Any) -> Any:
    assert task.data_loaded
    columns = task.dataset["test"]
    batches = [slice(start, start + 500) for start in range(0, 3000, 500)]
    first, second = (
        model.encode([{"text": columns[side][batch]} for batch in batches])
        for side in ("sentence1", "sentence2")
    )
    pairwise = model.similarity_pairwise(first, second).numpy()
    np.testing.assert_allclose(pairwise, cosines(first, second), atol=1e-5)
    every = model.similarity(first[:3], second[:3]).numpy()
    np.testing.assert_allclose(np.diag(every), pairwise[:3], atol=1e-5)
    score = spearmanr(pairwise, columns["score"]).statistic
    return SimpleNamespace(task_results=[SimpleNamespace(get_score=lambda: score)])


@pytest.fixture
def mteb(monkeypatch: Patch) -> None:
    package: Any = ModuleType("mteb")
    package.models = ModuleType("mteb.models")
    package.models.ModelMeta = SimpleNamespace(create_empty=lambda: None)
    package.get_task = lambda name, **_: Task(name)
    package.evaluate, package.__version__ = evaluate, "2"
    monkeypatch.setitem(sys.modules, "mteb", package)
    monkeypatch.setitem(sys.modules, "mteb.models", package.models)


@pytest.fixture
def year(tmp_path: Path) -> Path:
    """Pairs as many as those of the task STS15."""
    random = np.random.default_rng(0)
    for name in SEMEVAL["2015"]:
        sides = ([" ".join(random.choice(WORDS, 8)) for _ in range(600)] for _ in range(2))
        rows = [f"{random.random():.3f}\t{a}\t{b}" for a, b in zip(*sides, strict=True)]
        path = tmp_path / "2015" / f"{name}.tsv"
        path.parent.mkdir(exist_ok=True)
        path.write_text("\n".join(rows) + "\n")
    return path.parent


@pytest.mark.usefixtures("mteb")
def test_the_command(year: Path, tmp_path: Path, capsys: Capsys) -> None:
    model_of("word-avg").save(tmp_path / "model")
    name, file = str(tmp_path / "model"), tmp_path / "x.json"
    given = ["--model", name, "--tasks", "STS15", "--sts", str(year), "--json", str(file)]
    assert cli.main(["papers", "mteb", *given]) == 0
    assert "--sts, --sick" in capsys.readouterr().out
    found = json.loads(file.read_text())["mteb"]
    task = found["tasks"]["STS15"]
    assert found["version"] == "2" and task["local"]
    pooled = evaluate_models(read_sts(year), [load_encoder(name).named(name)]).mteb
    assert task["models"] == {name: pytest.approx(pooled[0][0], abs=0.05)}
