from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

from paraloom.models.embeddings.encoders import build_encoder, kinds, random_vectors
from paraloom.models.embeddings.model import SentenceEncoder, load_encoder
from paraloom.models.embeddings.options import EmbeddingOptions
from paraloom.models.embeddings.vocabulary import Vocabulary
from tests.sample import odd_sentences

ODD = ["", "Mr. Smith's `x` http://a.b/c?d=1,000.5", "\u2028", "…", "Žluťoučký kůň"]


@pytest.fixture(scope="module")
def sentences() -> list[str]:
    return odd_sentences(200)


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


def encoder(model: str, lines: list[str]) -> SentenceEncoder:
    options = EmbeddingOptions(model=model, dim=20)
    vocabularies = {
        kind: Vocabulary.build([pa.array(lines[:100])], kind=kind) for kind in kinds(model)
    }
    vectors = {kind: random_vectors(len(words), 20, seed=1) for kind, words in vocabularies.items()}
    torch.manual_seed(2)
    return SentenceEncoder(build_encoder(options, vectors), vocabularies, options)


def opened(folder: Path, *, trust_remote_code: bool = True) -> Any:
    """As sentence-transformers opens it."""
    from sentence_transformers import SentenceTransformer  # takes seconds

    return SentenceTransformer(str(folder), device="cpu", trust_remote_code=trust_remote_code)


@pytest.mark.parametrize("model", ["word-avg", "trigram-avg", "gran", "word-avg+bilstm-max"])
def test_the_same_vectors(model: str, sentences: list[str], tmp_path: Path) -> None:
    native = model == "word-avg"
    encoder(model, sentences).save(tmp_path / "model")
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
    saved = encoder("gru", sentences)
    saved.save(tmp_path / "model")
    loaded = opened(tmp_path / "model")
    prompted = loaded.encode(["dog ."], prompt="A ")
    np.testing.assert_allclose(prompted, saved.embed(["A dog ."]), atol=1e-5)


def test_no_code_comes_from_the_folder(sentences: list[str], tmp_path: Path) -> None:
    """A file named as our module does not run: the folder only names what is installed."""
    encoder("gru", sentences).save(tmp_path / "model")
    for name in ("models", "sentence_transformer", "MosesEncoder"):
        (tmp_path / "model" / f"{name}.py").write_text("raise SystemExit('ran')\n")
    loaded = opened(tmp_path / "model")
    assert type(loaded[0]).__module__ == "paraloom.models.embeddings.sentence_transformer"
