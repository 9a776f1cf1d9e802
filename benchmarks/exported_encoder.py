"""Sentences/s of an exported Word Avg in sentence-transformers, beside the tokeniser usual there.

python -m benchmarks.exported_encoder [--model DIR] [--wordpiece FILE] [--sentences N] [--batch N]

Both are a StaticEmbedding with vectors of the same length; one has our tokeniser of words, the
other WordPiece (the `tokenizer.json` of a BERT model, by default a WordPiece of the same captions).
The third is `embed`, as in `paraloom embed`. All take turns on the same captions and threads;
medians are compared. Without `--model`, the encoder has random vectors.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from benchmarks.embedding import captions, encoder, rates
from benchmarks.report import Measured
from paraloom.models.cpu import cores
from paraloom.models.embeddings.model import load_encoder


def wordpiece(sentences: Sequence[str], path: str | None) -> Any:
    """BERT's tokeniser with the vocabulary of a file, or one trained on the sentences."""
    from tokenizers import BertWordPieceTokenizer, Tokenizer

    if path is not None:
        found = Tokenizer.from_file(path)
        found.no_truncation()
        return found
    trained = BertWordPieceTokenizer(lowercase=True)
    trained.train_from_iterator(sentences, vocab_size=30_000, show_progress=False)
    return Tokenizer.from_str(trained.to_str())


def main(arguments: Sequence[str] = ()) -> dict[str, Any]:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--model")
    parser.add_argument("--wordpiece")
    parser.add_argument("--sentences", type=int, default=29_000)
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--threads", type=int, default=cores())
    options = parser.parse_args(arguments)
    os.environ["RAYON_NUM_THREADS"] = str(options.threads)  # of the package tokenizers
    os.environ["HF_HUB_OFFLINE"] = "1"
    torch.set_num_threads(options.threads)
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding

    sentences = captions(options.sentences)
    ours = load_encoder(options.model) if options.model else encoder("word-avg", sentences)[0]
    with tempfile.TemporaryDirectory() as folder:
        ours.save(Path(folder) / "model", texts=[])
        exported = SentenceTransformer(f"{folder}/model", device="cpu")
    usual = StaticEmbedding(wordpiece(sentences, options.wordpiece), embedding_dim=ours.dim)
    other = SentenceTransformer(modules=[usual], device="cpu")

    def encode(model: Any) -> Any:
        return model.encode(sentences, batch_size=options.batch, show_progress_bar=False)

    measured = Measured(
        f"Embedding {options.sentences:,} captions, batches of {options.batch:,}, "
        f"{options.threads} threads"
    )
    names = ("exported", "StaticEmbedding with WordPiece", "embed")
    found = rates(
        {
            f"{names[0]}, sentences/s": lambda: encode(exported),
            f"{names[1]}, sentences/s": lambda: encode(other),
            f"{names[2]}, sentences/s": lambda: ours.embed(sentences, batch_size=options.batch),
        },
        len(sentences),
    )
    for name, rate in found.items():
        measured.add(name, rate)
    first, second, third = found.values()
    measured.ratio(f"{names[0]} / {names[1]}", first, second)
    measured.ratio(f"{names[2]} / {names[0]}", third, first)
    return measured.done("exported_encoder")


if __name__ == "__main__":
    main(sys.argv[1:])
