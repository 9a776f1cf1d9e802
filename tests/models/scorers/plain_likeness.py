"""P(human | translation), written out for one pair with Python's own integers."""

import math

import xxhash

from benchmarks.plain_scoring import fast_tokenizer
from paraloom.models.scorers.learned.human_classifier import Classifier

WORD = 1 << 64


def buckets(text: str) -> list[int]:
    """The bucket of every n-gram of up to 3 tokens."""
    tokens = fast_tokenizer()(text) if text else []
    hashes = [xxhash.xxh3_64_intdigest(token.encode()) for token in tokens]
    found = []
    for n in (1, 2, 3):
        for start in range(len(hashes) - n + 1):
            key = hashes[start]
            for hashed in hashes[start + 1 : start + n]:
                key = (key * 0xC2B2AE3D27D4EB4F + hashed) % WORD
            found.append(key * 0x9E3779B97F4A7C15 % WORD >> 44)
    return found


def fold(reference: str) -> int:
    return xxhash.xxh3_64_intdigest(reference.encode()) % 5


def plain_likeness(reference: str, translation: str, classifier: Classifier) -> float:
    weights, bias = (array[fold(reference)] for array in (classifier.weights, classifier.bias))
    ngrams = buckets(translation)
    total = sum(float(weights[bucket]) for bucket in ngrams) / math.sqrt(max(len(ngrams), 1))
    return 1 / (1 + math.exp(-(float(bias) + total)))
