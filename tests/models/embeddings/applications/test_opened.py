"""Encoders of ours and models of sentence-transformers, opened in the same way; what they cost."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from paraloom.models.embeddings.applications.opened import OpenedModel, cost, is_ours, open_model
from paraloom.models.embeddings.comparison import ComparedModel
from paraloom.models.embeddings.model import load_encoder
from paraloom.models.errors import UserError
from tests.small_encoder import NUMBERED, small_encoder

SENTENCES = ["w1 w2", "w3", "w29 w4 .", "", "something else"]


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ours") / "model"
    small_encoder(NUMBERED).save(folder)
    return folder


@pytest.fixture(scope="module")
def theirs(ours: Path) -> Path:
    folder = ours.with_name("theirs")
    shutil.copytree(ours, folder, ignore=shutil.ignore_patterns("config.json", "words.txt"))
    return folder


def test_both_give_the_same_vectors(ours: Path, theirs: Path) -> None:
    assert is_ours(ours) and not is_ours(theirs)
    first, second = open_model(str(ours)), open_model(str(theirs))
    assert first.encoder is not None and first.sentence_model is None
    assert second.encoder is None and second.sentence_model is not None
    text = pa.array([*SENTENCES, *SENTENCES[:2]])
    expected = load_encoder(ours).embed(text)
    for model in (first, second):
        found = model.evaluated.embed(text)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, expected, atol=1e-6)
        np.testing.assert_allclose(model.encode(SENTENCES, 2), expected[:5], atol=1e-6)
    names = {file.name for file in first.files}
    assert names == {"config.json", "words.txt", "model.safetensors"}
    assert {file.name for file in second.files} == {
        *("modules.json", "config_sentence_transformers.json", "tokenizer.json"),
        "model.safetensors",
    }
    assert second.size == sum(file.stat().st_size for file in theirs.iterdir())


def test_models_that_cannot_be_opened(theirs: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"neither an encoder of Paraloom .* nor a model of sent"):
        open_model(str(tmp_path))
    copy = tmp_path / "copy"
    shutil.copytree(theirs, copy)
    (copy / "modules.json").write_text('{"a": 1}')
    with pytest.raises(UserError, match="the model cannot be loaded"):
        open_model(str(copy))


def test_the_fastest_batch_size() -> None:
    clock: list[float] = [0.0]

    def model(name: str, seconds_of_a_batch: float, seconds_of_a_sentence: float) -> OpenedModel:
        def encode(sentences: Sequence[str], batch_size: int) -> Any:
            batches = -(-len(sentences) // batch_size)
            clock[0] += batches * seconds_of_a_batch + len(sentences) * seconds_of_a_sentence
            return np.zeros((len(sentences), 1), np.float32)

        evaluated = ComparedModel(name, lambda text: encode(text.to_pylist(), 32))
        sizes = (32, 1024, 8192)
        return OpenedModel(evaluated=evaluated, encode=encode, batch_sizes=sizes, files=[])

    sentences = ["a"] * 20_000
    with pytest.MonkeyPatch.context() as patch:
        counter = "paraloom.models.embeddings.applications.opened.time.perf_counter"
        patch.setattr(counter, lambda: clock[0])
        static, large, _ = cost(model("static", 0.01, 1e-5), sentences)
        slow, usual, _ = cost(model("slow", 0.0, 0.01), sentences)
    assert (large, usual) == (8192, 32)
    assert slow == pytest.approx(100, rel=0.01)
    assert 1.001 / (0.01 / 8192 + 1e-5) > static > 0.8 / (0.01 / 8192 + 1e-5)
