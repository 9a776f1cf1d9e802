"""Sentences/s from text to vectors: Word Avg here and in sentence-transformers.

python -m benchmarks.embedding [--sentences N] [--threads N]

Both get the same strings, the same word vectors and the same cores, and give one float32 array.
sentence-transformers has the cheapest pre-tokeniser (white space), and its best of several batch
sizes counts. All take turns; medians are compared.
"""

import os
import time
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

import pyarrow as pa
import torch
from torch import Tensor

from benchmarks import generated
from benchmarks.noisy_bitext import read_side
from benchmarks.report import Measured, command_line
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
    """The English side of Multi30k, repeated as needed; generated captions without it."""
    try:
        lines = read_side("en")
    except UserError:
        lines = generated.pairs(29_000, 0)["reference"].to_pylist()
    return (lines * (count // len(lines) + 1))[:count]


def encoder(sentences: list[str]) -> tuple[SentenceEncoder, list[str], Tensor]:
    """Our Word Avg with random vectors, its words and their vectors."""
    vocabulary = build_vocabularies([pa.array(sentences)], ["words"])["words"]
    vectors = random_vectors(len(vocabulary), DIM, seed=1)
    options = EmbeddingOptions(model="word-avg", dim=DIM)
    built = build_encoder(options, {"words": vectors})
    return SentenceEncoder(built, {"words": vocabulary}, options), vocabulary.words, vectors


def static_embedding(words: list[str], vectors: Tensor) -> Any:
    """Word Avg in sentence-transformers."""
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
    os.environ["RAYON_NUM_THREADS"] = str(threads)  # of sentence-transformers' tokeniser
    os.environ["HF_HUB_OFFLINE"] = "1"
    torch.set_num_threads(threads)
    texts = captions(sentences)
    ours, words, vectors = encoder(texts)
    theirs = static_embedding(words, vectors)
    encode = partial(theirs.encode, texts, show_progress_bar=False)
    runs: dict[str, Callable[[], Any]] = {"Word Avg": partial(ours.embed, texts)}
    runs |= {f"StaticEmbedding, batches of {n}": partial(encode, batch_size=n) for n in SIZES}
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for turn in range(ROUNDS + 1):  # the first is a warm-up
        for name, run in runs.items():
            started = time.perf_counter()
            run()
            if turn:
                seconds[name].append(time.perf_counter() - started)
    mine, *others = rates = [sentences / median(times) for times in seconds.values()]
    measured = Measured(f"Embedding {sentences:,} captions on {threads} threads")
    for name, rate in zip(runs, rates, strict=True):
        measured.add(f"{name}: sentences/s", rate)
    measured.ratio("Word Avg / StaticEmbedding at its best", mine, max(others))
    measured.done("embedding")


if __name__ == "__main__":
    command_line(main)
