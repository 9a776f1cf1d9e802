"""Sentences/s from text to vectors: Word Avg and BiLSTM here and in sentence-transformers.

python -m benchmarks.embedding [--sentences N] [--recurrent N] [--threads N]

Both get the same strings, the same word vectors and the same cores, and give one float32 array.
Of sentence-transformers the best of several batch sizes counts, with the cheapest of pre-tokenisers
(white space). All take turns; medians are compared.
"""

import os
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
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
from paraloom.models.embeddings.vocabulary import Vocabulary
from paraloom.models.errors import UserError

DIM = 300
ROUNDS = 5

Run = Callable[[], Any]


def captions(count: int) -> list[str]:
    """The English side of Multi30k, repeated as needed; generated captions without it."""
    try:
        lines = read_side("en")
    except UserError:
        lines = generated.pairs(29_000, 0)["reference"].to_pylist()
    return (lines * (count // len(lines) + 1))[:count]


def encoder(model: str, sentences: list[str]) -> tuple[SentenceEncoder, list[str], Tensor]:
    """Our encoder with random weights, its words and their vectors."""
    vocabulary = Vocabulary.build([pa.array(sentences)], kind="words")
    vectors = random_vectors(len(vocabulary), DIM, seed=1)
    options = EmbeddingOptions(model=model, dim=DIM)
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


def lstm(words: list[str], vectors: Tensor) -> Any:
    """BiLSTM Avg (2 × 300, concatenated) in sentence-transformers."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import LSTM, Pooling, WordEmbeddings
    from sentence_transformers.sentence_transformer.modules.tokenizer import WhitespaceTokenizer

    tokenizer = WhitespaceTokenizer(words, stop_words=[], do_lower_case=True)
    modules = [
        WordEmbeddings(tokenizer, vectors.numpy(), max_seq_length=1000),
        LSTM(embedding_dimension=DIM, hidden_dim=DIM),
        Pooling(2 * DIM),
    ]
    return SentenceTransformer(modules=modules, device="cpu")


def rates(measured: Measured, runs: Mapping[str, Run], count: int) -> list[float]:
    """Measure the median sentences/s of each; the first round is a warm-up."""
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for turn in range(ROUNDS + 1):
        for name, run in runs.items():
            started = time.perf_counter()
            run()
            if turn:
                seconds[name].append(time.perf_counter() - started)
    for name, times in seconds.items():
        measured.add(f"{name}, sentences/s", count / statistics.median(times))
    return [count / statistics.median(times) for times in seconds.values()]


def compare(
    measured: Measured,
    names: tuple[str, str],
    sentences: list[str],
    ours: SentenceEncoder,
    theirs: Any,
    batch_sizes: Sequence[int],
) -> None:
    """Measure the two encoders and add the figures."""

    def at(size: int) -> Run:
        return lambda: theirs.encode(sentences, batch_size=size, show_progress_bar=False)

    runs: dict[str, Run] = {names[0]: lambda: ours.embed(sentences)}
    runs |= {f"{names[1]} at batch size {size}": at(size) for size in batch_sizes}
    mine, *others = rates(measured, runs, len(sentences))
    measured.ratio(f"{names[0]} / {names[1]} at its best", mine, max(others))


def offline(threads: int) -> None:
    """Let torch and the package tokenizers use so many threads, and no network."""
    os.environ["RAYON_NUM_THREADS"] = str(threads)
    os.environ["HF_HUB_OFFLINE"] = "1"
    torch.set_num_threads(threads)


def main(sentences: int = 29_000, recurrent: int = 4_000, threads: int = cores()) -> None:
    """Measure and print."""
    offline(threads)
    measured = Measured(f"Embedding {sentences:,} captions on {threads} threads")

    texts = captions(sentences)
    ours, words, vectors = encoder("word-avg", texts)
    names = ("Word Avg", "StaticEmbedding")
    static = static_embedding(words, vectors)
    compare(measured, names, texts, ours, static, (1024, 4096, 16384))

    texts = captions(recurrent)
    ours, words, vectors = encoder("bilstm-avg", texts)
    names = ("BiLSTM Avg", "WordEmbeddings + LSTM + Pooling")
    compare(measured, names, texts, ours, lstm(words, vectors), (32, 128, 512))
    measured.done("embedding")


if __name__ == "__main__":
    command_line(main)
