"""Measures the rates of encoding text by Word Avg, in Paraloom and in sentence-transformers.

python -m benchmarks.embedding [--sentences N] [--threads N]

Both libraries read the same strings and word vectors on the same cores, and return one float32
array. sentence-transformers uses its cheapest pre-tokeniser, which splits at white space, and the
best of several batch sizes. All runs take turns, and their median times are compared.
"""

import os
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from benchmarks import generated
from benchmarks.measure import Measured, command_line, in_turns, read_side
from paraloom.models.cpu import cores
from paraloom.models.embeddings.encoders import build_encoder, random_vectors
from paraloom.models.embeddings.model import SentenceEncoder
from paraloom.models.embeddings.options import EmbeddingOptions
from paraloom.models.embeddings.vocabulary import build_vocabularies
from paraloom.models.errors import UserError

DIM = 300
ROUNDS = 5
SIZES = (1024, 4096, 16384)


def captions(count: int) -> list[str]:
    """Return `count` captions of Multi30k, or generated sentences if Multi30k is missing."""
    try:
        lines = read_side("en")
    except UserError:
        lines = generated.pairs(29_000, 0)["reference"].to_pylist()
    return (lines * (count // len(lines) + 1))[:count]


def encoder(sentences: list[str]) -> tuple[SentenceEncoder, list[str], Tensor]:
    """Build a Word Avg with random vectors, and return it with its words and their vectors."""
    vocabulary = build_vocabularies([pa.array(sentences)], ["words"])["words"]
    vectors = random_vectors(len(vocabulary), DIM, seed=1)
    options = EmbeddingOptions(model="word-avg", dim=DIM)
    built = build_encoder(options, {"words": vectors})
    return SentenceEncoder(built, {"words": vocabulary}, options), vocabulary.words, vectors


def static_embedding(words: list[str], vectors: Tensor) -> Any:
    """Build the same Word Avg in sentence-transformers."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.normalizers import Lowercase
    from tokenizers.pre_tokenizers import WhitespaceSplit

    tokenizer = Tokenizer(WordLevel({word: i for i, word in enumerate(words)}, unk_token=words[0]))
    tokenizer.normalizer, tokenizer.pre_tokenizer = Lowercase(), WhitespaceSplit()
    module = StaticEmbedding(tokenizer, embedding_weights=vectors)
    return SentenceTransformer(modules=[module], device="cpu")


def main(sentences: int = 29_000, threads: int = cores()) -> None:
    """Measure and print."""
    os.environ["RAYON_NUM_THREADS"] = str(threads)  # for the tokeniser of sentence-transformers
    os.environ["HF_HUB_OFFLINE"] = "1"
    torch.set_num_threads(threads)
    texts = captions(sentences)
    ours, words, vectors = encoder(texts)
    theirs = static_embedding(words, vectors)
    encode = partial(theirs.encode, texts, show_progress_bar=False)
    runs: dict[str, Callable[[], Any]] = {"Word Avg": partial(ours.embed, texts)}
    runs |= {f"StaticEmbedding, batches of {n}": partial(encode, batch_size=n) for n in SIZES}
    in_turns(runs, 1)  # warm-up
    times, _ = in_turns(runs, ROUNDS)
    mine, *others = rates = [sentences / float(np.median(of[:, 0])) for of in times.values()]
    measured = Measured(f"Embedding {sentences:,} captions on {threads} threads")
    for name, rate in zip(runs, rates, strict=True):
        measured.add(f"{name}: sentences/s", rate)
    measured.ratio("Word Avg / StaticEmbedding at its best", mine, max(others))
    measured.done("embedding")


if __name__ == "__main__":
    command_line(main)
