"""Sentences/s of an exported Word Avg in sentence-transformers, beside the tokeniser usual there.

python -m benchmarks.exported_encoder [--model DIR] [--wordpiece FILE] [--sentences N] [--batch N]

Both are a StaticEmbedding with vectors of the same length; one has our tokeniser of words, the
other WordPiece (the `tokenizer.json` of a BERT model, by default a WordPiece of the same captions).
The third is `embed`, as in `paraloom embed`. All take turns on the same captions and threads;
medians are compared. Without `--model`, the encoder has random vectors.
"""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.embedding import Run, captions, encoder, offline, rates
from benchmarks.report import Measured, command_line
from paraloom.models.cpu import cores
from paraloom.models.embeddings.model import load_encoder


def tokenizer_of(sentences: Sequence[str], path: str | None) -> Any:
    """BERT's tokeniser with the vocabulary of a file, or one trained on the sentences."""
    from tokenizers import BertWordPieceTokenizer, Tokenizer

    if path is not None:
        found = Tokenizer.from_file(path)
        found.no_truncation()
        return found
    trained = BertWordPieceTokenizer(lowercase=True)
    trained.train_from_iterator(sentences, vocab_size=30_000, show_progress=False)
    return Tokenizer.from_str(trained.to_str())


def main(
    model: str | None = None,
    wordpiece: str | None = None,
    sentences: int = 29_000,
    batch: int = 1024,
    threads: int = cores(),
) -> None:
    """Measure and print."""
    offline(threads)
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding

    texts = captions(sentences)
    ours = load_encoder(model) if model else encoder("word-avg", texts)[0]
    with tempfile.TemporaryDirectory() as folder:
        ours.save(Path(folder) / "model", texts=[])
        exported = SentenceTransformer(f"{folder}/model", device="cpu")
    usual = StaticEmbedding(tokenizer_of(texts, wordpiece), embedding_dim=ours.dim)
    other = SentenceTransformer(modules=[usual], device="cpu")

    def encode(model: Any) -> Any:
        return model.encode(texts, batch_size=batch, show_progress_bar=False)

    title = f"Embedding {sentences:,} captions, batches of {batch:,}, {threads} threads"
    measured = Measured(title)
    names = ("exported", "StaticEmbedding with WordPiece", "embed")
    runs: tuple[Run, ...] = (
        lambda: encode(exported),
        lambda: encode(other),
        lambda: ours.embed(texts, batch_size=batch),
    )
    first, second, third = rates(measured, dict(zip(names, runs, strict=True)), sentences)
    measured.ratio(f"{names[0]} / {names[1]}", first, second)
    measured.ratio(f"{names[2]} / {names[0]}", third, first)
    measured.done("exported_encoder")


if __name__ == "__main__":
    command_line(main)
