"""Measures the rates of training encoders in Paraloom and by the plain published procedure.

python -m benchmarks.training [--steps N] [--threads N] [--device cuda]

Both trainers start from the same weights, read the same mega-batches and take turns. Each trainer
selects negatives, but both train on the negatives that Paraloom selects, because rounding may
decide which of two sentences is nearer. The largest difference between the losses is printed, too.
A pair is a caption of Multi30k, or a made-up caption, and a changed copy of the caption.
"""

import copy
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import torch

from benchmarks.embedding import captions
from benchmarks.measure import Measured, command_line
from paraloom.models.cpu import cores
from paraloom.models.embeddings.encoders import build_encoder, random_vectors
from paraloom.models.embeddings.options import EmbeddingOptions
from paraloom.models.embeddings.training.data import Pairs, learnable
from paraloom.models.embeddings.training.pair_trainer import PairTrainer
from paraloom.models.embeddings.training.trainer import Memory
from paraloom.models.embeddings.vocabulary import build_vocabularies
from tests.plain_training import PlainTrainer, plain_of, plain_pairs

Texts = tuple[pa.StringArray, pa.StringArray]


def main(steps: int = 200, threads: int = cores(), device: str = "cpu") -> None:
    """Measure and print."""
    torch.set_num_threads(threads)
    where = f"{threads} threads" if device == "cpu" else device
    measured = Measured(f"Training on {where}: batches of 100, M = 40, 300 dimensions")
    measure(measured, steps, device)
    measured.done("training")


def measure(measured: Measured, steps: int, device: str) -> None:
    """Measure two encoders against the plain procedure."""
    texts = corpus()
    for model in ("word-avg", "bilstm-avg"):
        compare(measured, model, texts, steps, device)


def corpus() -> Texts:
    """Return captions and changed copies of them."""
    left = captions(29_000)
    random = np.random.default_rng(0)
    words = sorted({word for text in left for word in text.split()})
    right = []
    for text in left:
        kept = [word for word in text.split() if random.random() > 0.1] or ["."]
        new = random.integers(len(words), size=len(kept))
        changed = random.random(len(kept)) < 0.2
        right.append(
            " ".join(words[i] if c else w for w, i, c in zip(kept, new, changed, strict=True))
        )
    return pa.array(left), pa.array(right)


def trainer_of(model: str, texts: Texts, device: str) -> tuple[PairTrainer, Pairs]:
    """Return Paraloom's trainer with random weights, and the pairs as ids."""
    vocabulary = build_vocabularies(texts, ["words"])["words"]
    pairs = learnable(*texts, {"words": vocabulary})
    chosen = EmbeddingOptions(model=model, negatives="other")  # as in the plain procedure
    torch.manual_seed(1)
    vectors = random_vectors(len(vocabulary), chosen.dim, 1)
    encoder = build_encoder(chosen, {"words": vectors}).to(device).train()
    return PairTrainer(encoder, Memory(pairs, "corpus"), chosen, 1), pairs


def compare(measured: Measured, model: str, texts: Texts, steps: int, device: str) -> None:
    """Train both encoders for `steps` steps, in turns of one mega-batch, and add the rates."""
    trainer, pairs = trainer_of(model, texts, device)
    options = trainer.options
    plain = PlainTrainer(
        plain_of(trainer),
        margin=options.margin,
        learning_rate=options.learning_rate,
        batch_size=options.batch_size,
    )
    order = np.random.default_rng(1).permutation(len(pairs))
    ours = theirs = 0.0
    count = steps * options.batch_size
    size = options.mega_batch * options.batch_size
    chosen: list[np.ndarray] = []
    choose = trainer.negatives

    def keep(*arguments: Any) -> np.ndarray:
        chosen[:] = [choose(*arguments)]
        return chosen[0]

    trainer.negatives = keep  # type: ignore[assignment, method-assign]
    copied = PairTrainer(copy.deepcopy(trainer.encoder), trainer.source, options, 1)
    copied.train_on(pairs.take(np.arange(300)))  # the first call is slower
    for start in range(0, count, size):
        part = pairs.take(np.resize(order, count)[start : start + size])
        rows = plain_pairs(part)
        ours += seconds(partial(trainer.train_on, part), device)
        negatives = chosen[0] - [[len(part)], [0]]  # indices of right, then of left sentences
        theirs += seconds(partial(plain.train_mega_batch, rows, negatives), device)
    losses = torch.stack(trainer.losses).cpu().numpy()
    measured.add(f"{model}: ours, pairs/s", count / ours)
    measured.add(f"{model}: plain, pairs/s", count / theirs)
    measured.add(
        f"{model}: largest difference of {len(losses)} losses, × 10⁻⁶",
        float(np.abs(losses - plain.losses).max() * 1e6),
    )
    measured.ratio(f"{model}: ours / plain", theirs, ours)


def seconds(work: Callable[[], Any], device: str) -> float:
    """Return the seconds of a call, including work that the call leaves to a GPU."""
    started = time.perf_counter()
    work()
    if device != "cpu":
        torch.cuda.synchronize()
    return time.perf_counter() - started


if __name__ == "__main__":
    command_line(main)
