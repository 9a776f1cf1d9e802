import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paraloom.models.embeddings.model import load_encoder
from tests.run_helpers import Capsys
from tests.sample import odd_sentences
from tests.small_encoder import encoder_of_texts

ODD = ["", "Mr. Smith's `x` http://a.b/c?d=1,000.5", "\u2028", "…", "Žluťoučký kůň"]


@pytest.fixture(scope="module")
def sentences() -> list[str]:
    return odd_sentences(200)


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


def opened(folder: Path, *, trust_remote_code: bool = True) -> Any:
    """As sentence-transformers opens it."""
    from sentence_transformers import SentenceTransformer  # takes seconds

    return SentenceTransformer(str(folder), device="cpu", trust_remote_code=trust_remote_code)


@pytest.mark.parametrize(
    ("model", "tags"),
    [
        *[("word-avg", False), ("word-avg", True), ("word-sum", False), ("trigram-avg", False)],
        *[("gran", False), ("word-avg+bilstm-max", False)],
    ],
)
def test_the_same_vectors(
    model: str, tags: bool, sentences: list[str], tmp_path: Path, capsys: Capsys
) -> None:
    native = model == "word-avg" and not tags
    encoder_of_texts(sentences[:100], model, tags=tags).save(tmp_path / "model")
    record = json.loads((tmp_path / "model" / "config.json").read_text())["sentence_transformers"]
    assert record["native"] is native
    if not native:
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith(f"paraloom: {tmp_path / 'model'}: sentence-transformers loads this")
    ours = load_encoder(tmp_path / "model").embed([*sentences, *ODD])
    loaded = opened(tmp_path / "model", trust_remote_code=not native)
    (module,) = loaded
    assert type(module).__name__ == ("StaticEmbedding" if native else "MosesEncoder")
    theirs = loaded.encode([*sentences, *ODD])
    assert theirs.dtype == np.float32
    np.testing.assert_allclose(theirs, ours, atol=1e-6 if native else 1e-5)
    assert loaded.get_embedding_dimension() == ours.shape[1]
    assert loaded.encode(sentences[0]).shape == ours[0].shape
    similarity = loaded.similarity(theirs[:3], theirs[:3])
    np.testing.assert_allclose(similarity.diagonal(), np.ones(3), atol=1e-5)

    loaded.save(str(tmp_path / "again"))
    again = opened(tmp_path / "again", trust_remote_code=not native)
    np.testing.assert_allclose(again.encode(sentences), ours[: len(sentences)], atol=1e-5)
    if not native:  # else the folder is no longer one of ours
        back = load_encoder(tmp_path / "again").embed(sentences)
        np.testing.assert_allclose(back, ours[: len(sentences)], atol=1e-6)  # in other batches


def test_a_prompt_stands_before_the_sentence(sentences: list[str], tmp_path: Path) -> None:
    saved = encoder_of_texts(sentences[:100], "gru")
    saved.save(tmp_path / "model")
    loaded = opened(tmp_path / "model")
    prompted = loaded.encode(["dog ."], prompt="A ")
    np.testing.assert_allclose(prompted, saved.embed(["A dog ."]), atol=1e-5)


def test_no_code_comes_from_the_folder(sentences: list[str], tmp_path: Path) -> None:
    """A file named as our module does not run: the folder only names what is installed."""
    encoder_of_texts(sentences[:100], "gru").save(tmp_path / "model")
    for name in ("models", "sentence_transformer", "MosesEncoder"):
        (tmp_path / "model" / f"{name}.py").write_text("raise SystemExit('ran')\n")
    loaded = opened(tmp_path / "model")
    assert type(loaded[0]).__module__ == "paraloom.models.embeddings.sentence_transformer"
