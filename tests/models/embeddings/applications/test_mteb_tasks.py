"""The package mteb, by a small stand-in with the functions that are called."""

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import spearmanr

from paraloom.models.embeddings.applications.evaluation import cosines
from paraloom.models.embeddings.applications.mteb_tasks import (
    MTEBEncoder,
    find_tasks,
    mteb_table,
    run_mteb,
)
from paraloom.models.embeddings.applications.opened import OpenedModel
from paraloom.models.embeddings.datasets.similarity import LabelledPairs, read_sts
from paraloom.models.errors import UserError


class Task:
    def __init__(self, name: str) -> None:
        self.metadata = SimpleNamespace(name=name, main_score="cosine_spearman")
        self.eval_splits, self.hf_subsets = ["test"], ["default"]
        self.dataset: Any = None
        self.data_loaded = False


def evaluate(model: MTEBEncoder, task: Task, **_: Any) -> Any:
    if not task.data_loaded:
        raise ConnectionError("the Hub\ncannot be reached")
    columns = task.dataset["test"]
    first, second = (
        model.encode(
            [{"text": columns[side][start : start + 500]} for start in range(0, 3000, 500)]
        )
        for side in ("sentence1", "sentence2")
    )
    pairwise = model.similarity_pairwise(first, second).numpy()
    np.testing.assert_allclose(pairwise, cosines(first, second), atol=1e-5)
    every = model.similarity(first[:3], second[:3]).numpy()
    np.testing.assert_allclose(np.diag(every), pairwise[:3], atol=1e-5)
    score = spearmanr(pairwise, columns["score"]).statistic
    return SimpleNamespace(task_results=[SimpleNamespace(get_score=lambda: score)])


def get_task(name: str, **_: Any) -> Task:
    if name not in ("STS14", "STS15"):
        raise KeyError(f"KeyError: '{name}' not found.")
    return Task(name)


@pytest.fixture
def mteb(monkeypatch: pytest.MonkeyPatch) -> None:
    package: Any = ModuleType("mteb")
    package.models = ModuleType("mteb.models")
    package.models.ModelMeta = SimpleNamespace(create_empty=lambda: None)
    package.get_task, package.evaluate, package.__version__ = get_task, evaluate, "2"
    monkeypatch.setitem(sys.modules, "mteb", package)
    monkeypatch.setitem(sys.modules, "mteb.models", package.models)


@pytest.fixture
def model() -> OpenedModel:
    from paraloom.models.embeddings.applications.evaluation import Model

    class Encoder:
        def embed(self, sentences: Any) -> np.ndarray:
            text = sentences.to_pylist() if isinstance(sentences, pa.Array) else sentences
            letters = [[each.lower().count(c) for c in "abcdefghijklmnop"] for each in text]
            return np.array(letters, np.float32)

    encoder: Any = Encoder()
    return OpenedModel(
        evaluated=Model("letters", encoder.embed),
        encode=lambda sentences, _: encoder.embed(sentences),
        batch_sizes=(4096,),
        files=[],
        encoder=encoder,
    )


@pytest.fixture
def year(data: Path) -> list[LabelledPairs]:
    return read_sts(data / "sts" / "2015")


@pytest.mark.usefixtures("mteb")
def test_local_pairs(model: OpenedModel, year: list[LabelledPairs]) -> None:
    from paraloom.models.embeddings.applications.evaluation import evaluate_on

    found = run_mteb([model], find_tasks(["STS15"]), year)
    task = found["tasks"]["STS15"]
    assert found["version"] == "2" and task["local"]
    pooled = evaluate_on(year, [model.evaluated]).protocols["mteb"][0][0]
    assert task["models"]["letters"] == pytest.approx(pooled, abs=1e-2)
    assert mteb_table(["letters"], found).row_count == 1


@pytest.mark.usefixtures("mteb")
def test_mistakes(model: OpenedModel, year: list[LabelledPairs]) -> None:
    with pytest.raises(UserError, match="--mteb: mteb has no task STS99"):
        find_tasks(["STS15", "STS99"])
    message = "--mteb STS14: mteb cannot run it on letters .*the Hub cannot be reached"
    with pytest.raises(UserError, match=message):
        run_mteb([model], find_tasks(["STS14"]), year)


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mteb", None)
    with pytest.raises(UserError, match="run `pip install mteb`"):
        find_tasks(["STS15"])
