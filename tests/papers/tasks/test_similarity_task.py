"""The labelled task: the encoder that its training starts from."""

from pathlib import Path
from typing import Any

import torch

from paraloom.models.embeddings.encoders import build_encoder, kinds
from paraloom.models.embeddings.model import SentenceEncoder
from paraloom.models.embeddings.vocabulary import Vocabulary
from paraloom.papers.options import SystemOptions
from paraloom.papers.tasks.similarity import SHAPE, trained_model


def test_a_trained_model_keeps_its_shape_and_takes_all_other_options(tmp_path: Path) -> None:
    shape: dict[str, Any] = {"model": "bilstm+bigran", "dim": 3, "hidden": 3, "cell": "peephole"}
    shape |= {"combine": "tanh", "mix": "add", "tags": True}
    assert shape.keys() == set(SHAPE)
    options = SystemOptions(**shape, dropout=0.5, margin=0.3)
    vocabularies = {kind: Vocabulary(["a", "b"], tags=True) for kind in kinds(options.model)}
    encoder = build_encoder(options, {"words": torch.randn(5, 3)})
    SentenceEncoder(encoder, vocabularies, options).save(tmp_path / "model")
    given = SystemOptions(dropout=0.125, word_dropout=0.25, margin=0.6, device="cpu")
    found: Any = trained_model(given, str(tmp_path / "model"))
    assert found.options == given.replace(**shape)
    noise = [(part.input.dropout, part.input.word_dropout) for part in found.encoder.parts]
    assert noise == [(0.125, 0.25)] * 2
