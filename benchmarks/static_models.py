"""Makes two StaticEmbedding models as baselines, with random and with trained weights.

python -m benchmarks.static_models --pairs FOLDER --tokenizer FILE --out DIR [--epochs N] [--rate R]

Both models use the WordPiece tokeniser in a `tokenizer.json`, such as a BERT model's.
`DIR/static-random` has random weights. `DIR/static-trained` starts from these weights and is
trained on the columns `reference` and `translation` of a corpus, with the loss that
sentence-transformers recommends for such models. `paraloom evaluate` compares both models with an
encoder.
"""

from pathlib import Path
from typing import Annotated, Any

import pyarrow.parquet as pq
import torch
import typer

from benchmarks.measure import command_line

DIM = 300
START = 0.1  # standard deviation of random weights; AdamW changes larger weights too little
BATCH = 2048  # pairs; each pair has the other pairs of its batch as negatives


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


def main(
    pairs: Annotated[str, typer.Option()],
    tokenizer: Annotated[str, typer.Option()],
    out: Annotated[Path, typer.Option()],
    epochs: int = 10,
    rate: float = 0.02,
) -> None:
    """Write both folders."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    from tokenizers import Tokenizer

    torch.manual_seed(1)
    pieces = Tokenizer.from_file(tokenizer)
    pieces.no_truncation()
    module = StaticEmbedding(pieces, embedding_dim=DIM)
    with torch.no_grad():
        module.embedding.weight *= START  # cosines stay the same
    model = SentenceTransformer(modules=[module], device="cpu")
    model.save(str(out / "static-random"))
    table = pq.read_table(pairs, columns=["reference", "translation"])
    first, second = (column.to_pylist() for column in table.columns)
    train(model, first, second, epochs, rate)
    model.save(str(out / "static-trained"))


if __name__ == "__main__":
    command_line(main)
