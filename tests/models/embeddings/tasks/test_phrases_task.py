"""Training on phrases: the loss against its equation, steps against plain ones, the whole task."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from models.embeddings import tasks
from models.embeddings.model import load_encoder
from models.embeddings.options import EmbeddingOptions
from models.embeddings.tasks.options import PhrasesOptions
from models.embeddings.tasks.phrases import PhraseTrainer
from models.embeddings.training.loss import contrastive_loss
from models.embeddings.training.trainer import Memory
from models.errors import UserError
from tests.models.embeddings.encoders.test_encoders import gradient_of
from tests.models.embeddings.training.test_trainer import DIM, lists_of, make_trainer, pool_of


def test_the_loss_is_its_equation() -> None:
    torch.manual_seed(0)
    left, right, drawn = (torch.randn(n, 3, dtype=torch.float64) for n in (4, 4, 5))
    allowed = torch.ones(4, 5, dtype=torch.float64)
    allowed[1, 2] = 0
    for tensor in (left, right, drawn):
        tensor.requires_grad_()
    found = contrastive_loss(left, right, drawn, allowed, 1.0)
    expected = torch.zeros((), dtype=torch.float64)
    for i in range(4):
        for j in range(5):
            if (i, j) != (1, 2):
                for side in (left, right):
                    hinge = 1.0 - left[i] @ right[i] + side[i] @ drawn[j]
                    expected = expected + torch.clamp(hinge, min=0) / 4
    assert torch.allclose(found, expected, rtol=0, atol=1e-14)
    gradients = [torch.autograd.grad(loss, (left, right, drawn)) for loss in (found, expected)]
    for ours, theirs in zip(*gradients, strict=True):
        assert torch.allclose(ours, theirs, rtol=0, atol=1e-14)


def plain_trainer(model: str, **options: Any) -> PhraseTrainer:
    other = make_trainer(model=model, mega_batch=1, **options)
    pairs = Memory(pool_of(other), "memory")
    return PhraseTrainer(other.encoder, pairs, other.options, 1, margin=1.0, samples=7)


@pytest.mark.parametrize("clip", [None, 0.5])
def test_steps_are_plain_gradient_steps_against_drawn_phrases(clip: float | None) -> None:
    trainer = plain_trainer("word-avg", learning_rate=0.3, clip=clip)
    pairs = pool_of(trainer)
    pairs = pairs.take(np.arange(10))
    weight = next(iter(trainer.matrices.values())).weight.clone().requires_grad_()

    random = np.random.default_rng([1, 0])
    rows = random.choice(len(trainer.keys), 7, replace=False)
    words = trainer.phrases["words"]
    drawn = [words.ids[words.offsets[row] : words.offsets[row + 1]] for row in rows]

    def encode(ids: Sequence[int] | NDArray[np.int32]) -> torch.Tensor:
        return weight[torch.tensor(ids)].mean(dim=0)

    loss = torch.zeros(())
    for left, right in lists_of(pairs):
        for other in drawn:
            if list(other) not in (left, right):
                for side in (left, right):
                    product = encode(side) @ encode(other) - encode(left) @ encode(right)
                    loss = loss + torch.clamp(1 + product, min=0) / len(pairs)
    torch.autograd.backward(loss)
    gradient = gradient_of(weight)
    scale = min(1.0, clip / gradient.norm().item()) if clip else 1.0

    trainer.encoder.train()
    trainer.train_on(pairs)
    (table,) = trainer.matrices.values()
    expected = weight.detach() - 0.3 * scale * gradient
    assert torch.allclose(table.current(), expected, rtol=0, atol=1e-6)
    assert trainer.losses[-1].item() == pytest.approx(loss.item(), rel=1e-5)


def test_the_whole_set_is_drawn_from_and_each_phrase_stands_in_it_once() -> None:
    trainer = plain_trainer("word-avg")
    pairs = pool_of(trainer)
    assert len(np.unique(trainer.keys)) == len(trainer.keys) == len(np.unique(pairs.keys))
    assert len(trainer.phrases["words"].offsets) == len(trainer.keys) + 1


def test_going_on_after_a_kill_ends_the_same() -> None:
    whole, first, second = (plain_trainer("gru", epochs=2, dropout=0.2) for _ in range(3))
    whole.fit()
    (pool,) = first.source.epoch(0)
    order = np.random.default_rng([1, 0, 0]).permutation(len(pool))
    first.encoder.train()
    with torch.random.fork_rng():
        for start in range(0, 50, 10):
            first.train_on(pool.take(order[start : start + 10]))
            first.progress.row += 10
    second.restore(
        first.progress, {name: tensor.clone() for name, tensor in first.tensors().items()}
    )
    second.fit()
    assert second.progress.step == whole.progress.step
    for ours, theirs in zip(second.weights.values(), whole.weights.values(), strict=True):
        assert torch.equal(ours, theirs)


SYNONYMS = [("big", "large"), ("dog", "hound"), ("runs", "races"), ("small", "little")]
NOUNS = ["dog", "cat", "man", "tree", "car", "bird", "house", "boat"]


def write_table(path: Path) -> str:
    """Phrases that say the same with other adjectives and verbs, all in letters."""
    lines = []
    for a in NOUNS:
        for b in NOUNS:
            if a != b:
                for one, other in SYNONYMS:
                    lines.append(f"[X] ||| {one} {a} {b} ||| {other} {a} {b} ||| Count=2")
    path.write_text("\n".join(lines) + "\n")
    return str(path)


@pytest.mark.parametrize("model", ["gru", "word-avg"])
def test_train_save_load(tmp_path: Path, model: str) -> None:
    section = PhrasesOptions(table=write_table(tmp_path / "table.txt"), samples=9)
    options = EmbeddingOptions(
        task="phrases", phrases=section, model=model, dim=DIM, epochs=6, batch_size=20
    )
    runs = [tasks.train(options, tmp_path / name, seed=1, threads=1) for name in "ab"]
    metrics = json.loads((tmp_path / "a" / "metrics.json").read_text())
    assert metrics["pairs"] + metrics["held_out"] == len(NOUNS) * 7 * 4
    assert metrics["choose_among_100"] == runs[1]["choose_among_100"] > 40
    one, other = (load_encoder(tmp_path / name) for name in "ab")
    texts = ["big dog cat", "large dog cat", "runs car boat"]
    assert np.array_equal(one.embed(texts), other.embed(texts))
    near, far = one.similarity([texts[0]] * 2, texts[1:])
    vectors = one.embed(texts).astype(np.float64)
    assert near == vectors[0] @ vectors[1] and near > far  # the dot product


def test_a_share_of_the_data(tmp_path: Path) -> None:
    table = write_table(tmp_path / "table.txt")
    for share in (1.0, 0.1):
        section = PhrasesOptions(table=table, fraction=share)
        options = EmbeddingOptions(task="phrases", phrases=section, dim=4, epochs=1)
        metrics = tasks.train(options, tmp_path / "m", seed=2)
        expected = share * (len(NOUNS) * 7 * 4 - metrics["held_out"])
        assert abs(metrics["pairs"] - expected) <= 1
    section = PhrasesOptions(table=table, fraction=0.001)
    options = EmbeddingOptions(task="phrases", phrases=section, dim=4)
    with pytest.raises(UserError, match=r"no pair is left to train on \(fraction 0\.001\)"):
        tasks.train(options, tmp_path / "n", seed=1)


def test_words_without_a_vector_are_unknown(tmp_path: Path) -> None:
    known = {word for line in SYNONYMS[:3] for word in line} | set(NOUNS)
    vectors = tmp_path / "v.txt"
    vectors.write_text("".join(f"{word} 0.1 {i} 0.3\n" for i, word in enumerate(sorted(known))))
    section = PhrasesOptions(table=write_table(tmp_path / "table.txt"), held_out=0.0)
    options = EmbeddingOptions(
        task="phrases", phrases=section, dim=3, epochs=1, initial_vectors=str(vectors)
    )
    metrics = tasks.train(options, tmp_path / "m", seed=1)
    assert metrics["pairs"] == len(NOUNS) * 7 * 3
    assert metrics["choose_among_100"] is None


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"samples": 0}, "samples: must be at least 1, not 0"),
        ({"fraction": 0.0}, r"fraction: must be more than 0, not 0\.0"),
        ({"held_out": 1.0}, r"held_out: must be less than 1, not 1\.0"),
        ({"clip": 0.0}, r"clip: must be more than 0, not 0\.0"),
    ],
)
def test_values_that_cannot_be(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PhrasesOptions(table="t", **values)
