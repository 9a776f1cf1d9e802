from itertools import pairwise

import numpy as np
import pytest

from paraloom.models.embeddings.datasets.similarity import read_sts
from tests.sample import SIMILARITY, odd_sentences


@pytest.fixture(scope="module")
def pairs() -> list[tuple[str, str]]:
    """Paraphrases; then sentences against others and against themselves, damaged; odd spelling."""
    paraphrases = [
        pair
        for data in read_sts(SIMILARITY)
        for pair in zip(data.first.to_pylist(), data.second.to_pylist(), strict=True)
    ]
    odd = iter(odd_sentences(3001))
    rows = [(f"{first} {next(odd)}", f"{second} {next(odd)}") for first, second in paraphrases]
    rng = np.random.default_rng(1)
    for sentence, other in pairwise(odd_sentences(3001)):
        words = np.array(sentence.split())
        kept = words[rng.random(len(words)) < 0.8]
        rows += [
            (sentence, other),
            (sentence, " ".join(kept)),
            (sentence, " ".join(rng.permutation(words))),
        ]
    return rows
