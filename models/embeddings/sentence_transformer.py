"""Module that lets sentence-transformers load encoders beyond its own modules.

If one of the library's modules can compute an encoder, the folder names that module
(`paraloom.models.embeddings.export`); all other folders name the class below. From version 6 on,
sentence-transformers loads third-party modules only on request: `SentenceTransformer(folder,
trust_remote_code=True)`. No code is ever read from the folder.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
from torch import nn

from paraloom.models.embeddings.model import SentenceEncoder, load_encoder
from paraloom.models.embeddings.vocabulary import ids_by_kind


class MosesEncoder(nn.Module):
    """An encoder with its Moses tokeniser, as the only module of a `SentenceTransformer`."""

    modalities = ("text",)
    save_in_root = True

    def __init__(self, model: SentenceEncoder) -> None:
        super().__init__()
        self.encoder = model.encoder
        self.model = model

    def preprocess(
        self, inputs: Sequence[str], prompt: str | None = None, **_: Any
    ) -> dict[str, Any]:
        """Convert sentences to ids, with the prompt before every sentence."""
        text = pa.array([(prompt or "") + sentence for sentence in inputs], pa.string())
        return {"sentences": ids_by_kind(self.model.vocabularies, text)}

    def forward(self, features: dict[str, Any]) -> dict[str, Any]:
        """Add `sentence_embedding`, [n, dim]."""
        features["sentence_embedding"] = self.encoder(features["sentences"])
        return features

    def get_embedding_dimension(self) -> int:
        """Length of a sentence vector."""
        return self.model.dim

    def save(self, output_path: str, *_: Any, **__: Any) -> None:
        """Write the model's files; sentence-transformers adds its own."""
        self.model.write(Path(output_path), native=False)

    @classmethod
    def load(cls, model_name_or_path: str, subfolder: str = "", **_: Any) -> Self:
        """Read a folder written by `SentenceEncoder.save` or `SentenceTransformer.save`."""
        return cls(load_encoder(Path(model_name_or_path) / subfolder))
