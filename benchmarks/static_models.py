"""Two models to compare an encoder with: StaticEmbedding with random and with trained weights.

python -m benchmarks.static_models --pairs FILE --tokenizer FILE --out DIR [--epochs N] [--rate R]

Both have the WordPiece tokeniser in a `tokenizer.json`, such as a BERT model's. The weights of
`DIR/static-trained` are trained on the columns `reference` and `translation` of Parquet files, with
the loss that sentence-transformers recommends for such models; the weights of `DIR/static-random`
are the initial ones of this training. `paraloom evaluate` compares both models with an encoder.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import torch

DIM = 300
START = 0.1  # standard deviation of the random weights; from 1, AdamW hardly moves them
BATCH = 2048  # pairs; the others of a batch are negatives


def train(model: Any, first: list[str], second: list[str], epochs: int, rate: float) -> None:
    """Train with MultipleNegativesRankingLoss and AdamW."""
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

    loss = MultipleNegativesRankingLoss(model)
    steps = epochs * -(-len(first) // BATCH)
    optimiser = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=0.0)
    schedule = torch.optim.lr_scheduler.LinearLR(optimiser, 1.0, 0.0, total_iters=steps)
    generator = torch.Generator().manual_seed(1)
    for _ in range(epochs):
        order = torch.randperm(len(first), generator=generator).tolist()
        for start in range(0, len(order), BATCH):
            rows = order[start : start + BATCH]
            sides = ([side[row] for row in rows] for side in (first, second))
            optimiser.zero_grad()
            loss([model.preprocess(side) for side in sides], None).backward()
            optimiser.step()
            schedule.step()


def main(arguments: Sequence[str] = ()) -> None:
    """Write both folders."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", required=True, nargs="+")
    parser.add_argument("--tokenizer", required=True)
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--rate", type=float, default=0.02)
    options = parser.parse_args(arguments)
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    from tokenizers import Tokenizer

    torch.manual_seed(1)
    tokenizer = Tokenizer.from_file(options.tokenizer)
    tokenizer.no_truncation()
    module = StaticEmbedding(tokenizer, embedding_dim=DIM)
    with torch.no_grad():
        module.embedding.weight *= START  # cosines stay the same
    model = SentenceTransformer(modules=[module], device="cpu")
    model.save(str(options.out / "static-random"))
    pairs = pq.read_table(options.pairs, columns=["reference", "translation"])
    first, second = (column.to_pylist() for column in pairs.columns)
    train(model, first, second, options.epochs, options.rate)
    model.save(str(options.out / "static-trained"))


if __name__ == "__main__":
    main(sys.argv[1:])
