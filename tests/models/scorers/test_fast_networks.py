"""Networks in CTranslate2 against the same ones in torch: small ones with random weights."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from paraloom.models.errors import UserError
from paraloom.models.scorers import fast_networks
from paraloom.models.scorers.fast_networks import FastNetwork, parallel
from paraloom.models.scorers.learned.sentence_similarity import (
    encode,
    open_cross_encoder,
    open_sentence_model,
)
from tests.models.scorers import small_transformers
from tests.models.scorers.small_transformers import WORDS, write_bert

SIZES: dict[str, Any] = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
SIZES |= {"intermediate_size": 64, "initializer_range": 0.2, "vocab_size": len(WORDS)}
SENTENCES = [" ".join(WORDS[4 : 4 + n % 9] * (1 + n % 4)) + " cat" * (n % 3) for n in range(90)]


def write(folder: Path, kind: str, pooling: str = "mean", **settings: Any) -> Path:
    """A model of sentence-transformers over a small network of a kind (`Bert`, …)."""
    import transformers
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import Dense, Pooling, Transformer

    bert = write_bert(folder.with_name(f"{folder.name}.bert"))
    names = {"DistilBert": {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64}}
    config = getattr(transformers, f"{kind}Config")(**(SIZES | names.get(kind, {}) | settings))
    torch.manual_seed(2)
    getattr(transformers, f"{kind}Model")(config).save_pretrained(bert)
    words = Transformer(str(bert))
    modules = [words, Pooling(32, pooling_mode=pooling), Dense(32, 8)]
    model = SentenceTransformer(modules=modules, device="cpu", prompts={"x": "the dog "})
    model.default_prompt_name = "x"
    model.save(str(folder))
    return folder


def library(folder: Path) -> np.ndarray:
    """Unit vectors of the sentences by the library."""
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(folder), device="cpu")
    return model.encode(SENTENCES, normalize_embeddings=True)


@pytest.mark.parametrize(
    ("kind", "pooling", "settings"),
    [
        ("Bert", "mean", {}),
        ("Bert", "cls", {"hidden_act": "relu", "layer_norm_eps": 1e-5}),
        ("DistilBert", "max", {}),
        ("Roberta", "mean", {"pad_token_id": 1, "max_position_embeddings": 66}),
        ("XLMRoberta", "cls", {"pad_token_id": 1, "max_position_embeddings": 66}),
    ],
)
def test_vectors_are_those_of_the_library(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    pooling: str,
    settings: dict[str, Any],
) -> None:
    if "pad_token_id" in settings:  # positions count from there on
        monkeypatch.setattr(small_transformers, "WORDS", ["[UNK]", "[PAD]", *WORDS[2:]])
    folder = write(tmp_path / "model", kind, pooling, **settings)
    model = open_sentence_model(folder)
    assert any(isinstance(module, FastNetwork) for module in model.modules())
    np.testing.assert_allclose(encode(model, SENTENCES), library(folder), rtol=0, atol=1e-5)


def test_values_do_not_depend_on_threads(tmp_path: Path) -> None:
    folder, before, found = write(tmp_path / "model", "Bert"), torch.get_num_threads(), []
    try:
        for threads in (1, 2, 7):
            torch.set_num_threads(threads)
            model = open_sentence_model(folder)
            assert parallel(model) == threads
            found.append(encode(model, SENTENCES))
            assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
    assert all(np.array_equal(found[0], other) for other in found[1:])


def test_other_networks_stay_in_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kind, an activation that CTranslate2 lacks; a conversion that gives other values."""
    folders = [
        write(tmp_path / "mpnet", "MPNet", pad_token_id=0, max_position_embeddings=66),
        write(tmp_path / "activation", "Bert", hidden_act="mish"),
        write(tmp_path / "epsilon", "Bert", layer_norm_eps=0.3),
    ]
    load = fast_networks.FastNetwork.__init__

    def without_epsilon(self: Any, network: Any, compute_type: str) -> None:
        epsilon, network.config.layer_norm_eps = network.config.layer_norm_eps, 1e-12
        load(self, network, compute_type)
        network.config.layer_norm_eps = epsilon

    monkeypatch.setattr(fast_networks.FastNetwork, "__init__", without_epsilon)
    for folder in folders:
        model = open_sentence_model(folder)
        assert parallel(model) == 0
        np.testing.assert_allclose(encode(model, SENTENCES), library(folder), rtol=0, atol=1e-6)
        with pytest.raises(UserError, match=r"^score\.compute_type: int8 is not possible with \w+"):
            open_sentence_model(folder, "int8")


@pytest.mark.parametrize(("labels", "softmax"), [(1, False), (3, True)])
def test_cross_encoders(tmp_path: Path, labels: int, softmax: bool) -> None:
    from sentence_transformers import CrossEncoder

    folder = write_bert(tmp_path / "model", labels=labels)
    if labels > 1:
        file = folder / "config.json"
        file.write_text(file.read_text().replace("LABEL_1", "entailment"))
    pairs = list(pairwise(SENTENCES))
    expected = CrossEncoder(str(folder), device="cpu").predict(pairs, apply_softmax=softmax)
    model = open_cross_encoder(folder)
    assert any(isinstance(module, FastNetwork) for module in model.modules())
    found = model.predict(pairs, apply_softmax=softmax)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)
    rough = open_cross_encoder(folder, "int8").predict(pairs, apply_softmax=softmax)
    assert 0 < np.abs(rough - expected).max() < 0.1
