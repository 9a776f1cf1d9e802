import numpy as np
import pyarrow as pa
import pytest

from paraloom.models.embeddings.comparison import Embed
from paraloom.models.text.tokens import moses_tokens


def _bag_of_words(text: pa.StringArray) -> np.ndarray:
    vectors = np.zeros((len(text), 4096), np.float32)
    for vector, tokens in zip(vectors, moses_tokens(text).to_pylist(), strict=True):
        for token in tokens:
            vector[int.from_bytes(token.encode()[:8], "little") % 4093] += 1
    return vectors


@pytest.fixture
def bag_of_words() -> Embed:
    """Vectors with a known meaning: the cosine is the overlap of (hashed) words."""
    return _bag_of_words
