"""The class with which sentence-transformers loads encoders that StaticEmbedding cannot compute.
From version 6 on, the library requires `trust_remote_code=True` for such a class."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
from torch import nn

from paraloom.models.embeddings.model import SentenceEncoder, load_encoder
from paraloom.models.embeddings.vocabulary import ids_by_kind


class MosesEncoder(nn.Module):
    """The only module of a `SentenceTransformer`, with Paraloom's encoder and tokeniser."""

    modalities = ("text",)
    save_in_root = True

    def __init__(self, model: SentenceEncoder) -> None:
        super().__init__()
        self.encoder = model.encoder
        self.model = model

    def preprocess(
        self, inputs: Sequence[str], prompt: str | None = None, **_: Any
    ) -> dict[str, Any]:
        """Add the prompt before every sentence, and convert the sentences to ids."""
        text = pa.array([(prompt or "") + sentence for sentence in inputs], pa.string())
        return {"sentences": ids_by_kind(self.model.vocabularies, text)}

    def forward(self, features: dict[str, Any]) -> dict[str, Any]:
        """Add the key `sentence_embedding` with the vectors of n sentences, [n, dim]."""
        features["sentence_embedding"] = self.encoder(features["sentences"])
        return features

    def get_embedding_dimension(self) -> int:
        """Length of a sentence vector."""
        return self.model.dim

    def save(self, output_path: str, *_: Any, **__: Any) -> None:
        """Write the encoder's files. Sentence-transformers adds further files."""
        self.model.write(Path(output_path), native=False)

    @classmethod
    def load(cls, model_name_or_path: str, subfolder: str = "", **_: Any) -> Self:
        """Read a folder written by `SentenceEncoder.save` or `SentenceTransformer.save`."""
        return cls(load_encoder(Path(model_name_or_path) / subfolder))
