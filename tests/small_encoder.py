"""Small untrained encoders for given words or texts."""

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
import torch

from paraloom.models.embeddings.encoders import build_encoder, kinds
from paraloom.models.embeddings.model import SentenceEncoder
from paraloom.models.embeddings.options import read_options
from paraloom.models.embeddings.ragged_columns import Kind
from paraloom.models.embeddings.vocabulary import Vocabulary, build_vocabularies

NUMBERED = [f"w{i}" for i in range(30)]


def small_encoder(words: Iterable[str], model: str = "word-avg", **options: Any) -> SentenceEncoder:
    """Return an encoder. Its vectors have 4 dimensions unless `options` has `dim`."""
    chosen = read_options({"model": model, "dim": 4, **options})
    vocabulary = Vocabulary([*words], tags=chosen.tags)
    torch.manual_seed(0)
    vectors = torch.randn(len(vocabulary), chosen.dim)
    encoder = build_encoder(chosen, {"words": vectors}).eval()
    return SentenceEncoder(encoder, {"words": vocabulary}, chosen)


def encoder_of_texts(
    texts: Sequence[str], model: str = "word-avg", *, language: str = "en", **options: Any
) -> SentenceEncoder:
    """Return an encoder with the vocabularies of some texts."""
    chosen = read_options({"model": model, "dim": 12, **options})
    vocabularies = build_vocabularies(
        [pa.array(texts)], kinds(model), tags=chosen.tags, language=language
    )
    torch.manual_seed(0)
    vectors = {kind: torch.randn(len(of), chosen.dim) for kind, of in vocabularies.items()}
    return SentenceEncoder(build_encoder(chosen, vectors).eval(), vocabularies, chosen)


def vocabulary_of(
    batches: Iterable[pa.StringArray], kind: Kind = "words", **limits: Any
) -> Vocabulary:
    """Return a vocabulary of one kind."""
    return build_vocabularies(batches, [kind], **limits)[kind]
