"""Training on phrases: the loss against its equation, steps against plain ones, the whole task."""

import json
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

from paraloom.models.embeddings.encoders import embedding_matrices
from paraloom.models.embeddings.model import load_encoder
from paraloom.models.embeddings.ragged_columns import join_all, take_all
from paraloom.models.embeddings.training.trainer import Memory
from paraloom.models.text.vectors import load_vectors, write_vectors
from paraloom.papers import tasks
from paraloom.papers.analyses.phrase_tests import read_turney2012, turney2012
from paraloom.papers.datasets.phrases import PhrasePairs
from paraloom.papers.options import PhrasesOptions, SystemOptions
from paraloom.papers.tasks import phrases
from paraloom.papers.tasks.phrases import (
    PhraseData,
    PhraseExamples,
    PhraseTrainer,
    contrastive_loss,
    examples_of,
    read_phrase_data,
)
from tests.models.embeddings.encoders.test_encoders import gradient_of
from tests.models.embeddings.training.test_trainer import DIM, make_trainer, pool_of
from tests.run_helpers import Patch
from tests.small_encoder import vocabulary_of


def test_the_loss_is_the_papers() -> None:
    """Mean over pairs of Σᵢ max(0, δ − p₁ᵀp₂ + p₁ᵀcᵢ), with contrasts of each pair's own (2.4)."""
    torch.manual_seed(0)
    left, right = (torch.randn(4, 3, dtype=torch.float64) for _ in range(2))
    contrasts = torch.randn(4, 5, 3, dtype=torch.float64)
    allowed = torch.ones(4, 5, dtype=torch.float64)
    allowed[1, 2] = 0
    sides = [tensor.requires_grad_() for tensor in (left, right, contrasts)]
    found = contrastive_loss(left, right, contrasts, allowed, 0.7)
    expected = torch.zeros((), dtype=torch.float64)
    for t in range(4):
        for i in range(5):
            if (t, i) != (1, 2):
                hinge = 0.7 - left[t] @ right[t] + left[t] @ contrasts[t, i]
                expected = expected + torch.clamp(hinge, min=0) / 4
    assert torch.allclose(found, expected, rtol=0, atol=1e-12)  # sums of another order
    gradients = [torch.autograd.grad(loss, sides) for loss in (found, expected)]
    for ours, theirs in zip(*gradients, strict=True):
        assert torch.allclose(ours, theirs, rtol=0, atol=1e-12)


def plain_trainer(model: str, **section: Any) -> PhraseTrainer:
    other = make_trainer(model=model, mega_batch=1)
    assert isinstance(other.options, SystemOptions)
    values: dict[str, Any] = {"table": "t", "margin": 0.7, "samples": 7, "dropout": 0.0, **section}
    pairs, options = pool_of(other), other.options.replace(phrases=PhrasesOptions(**values))
    _, first, row = np.unique(pairs.keys.ravel(), return_index=True, return_inverse=True)
    examples = Memory(PhraseExamples(row[: len(pairs)], row[len(pairs) :]), "memory")
    texts = take_all(join_all(pairs.sides), first)
    return PhraseTrainer(other.encoder, examples, texts, options, 1)


def test_steps_are_plain_gradient_steps_against_sampled_phrases() -> None:
    clip = 0.5
    trainer = plain_trainer("word-avg", learning_rate=0.3, clip=clip)
    (pool,) = trainer.source.epoch(0)
    batch = pool.take(np.arange(10))
    weight = next(iter(trainer.matrices.values())).weight.clone().requires_grad_()
    words = trainer.phrases["words"]

    def encode(row: int) -> torch.Tensor:
        return weight[words.ids[words.offsets[row] : words.offsets[row + 1]]].mean(dim=0)

    contrasts = trainer.contrasts(batch)
    assert contrasts.shape == (10, 7) and len(np.unique(contrasts)) > 20  # each pair has its own
    loss = torch.zeros(())
    for p1, p2, rows in zip(batch.left, batch.right, contrasts, strict=True):
        for row in rows[rows >= 0]:
            assert row not in (p1, p2)
            product = encode(p1) @ encode(row) - encode(p1) @ encode(p2)
            loss = loss + torch.clamp(0.7 + product, min=0) / len(batch)
    torch.autograd.backward(loss)
    gradient = gradient_of(weight)
    scale = min(1.0, clip / gradient.norm().item())

    trainer.encoder.train()
    trainer.train_on(batch)
    (table,) = trainer.matrices.values()
    expected = weight.detach() - 0.3 * scale * gradient
    assert torch.allclose(table.current(), expected, rtol=0, atol=1e-6)
    assert trainer.losses[-1].item() == pytest.approx(loss.item(), rel=1e-5)


def test_noise_and_contrasts_are_new_at_every_step(monkeypatch: Patch) -> None:
    trainer = plain_trainer("gru", dropout=0.5)
    (pool,) = trainer.source.epoch(0)
    batch = pool.take(np.arange(10))
    seen: list[tuple[int, ...]] = []

    def record(left: torch.Tensor, *others: Any) -> torch.Tensor:
        seen.append(tuple((left == 0).flatten().tolist()))
        return left.sum()

    monkeypatch.setattr(phrases, "contrastive_loss", record)
    contrasts = []
    with torch.random.fork_rng():
        for trainer.progress.step in (0, 1, 2, 0):
            contrasts.append(tuple(trainer.contrasts(batch).ravel().tolist()))
            trainer.train_on(PhraseExamples(batch.left, batch.right, batch.left[:, None]))
    assert np.mean([dropped for step in seen for dropped in step]) == pytest.approx(0.5, abs=0.06)
    for found in (seen, contrasts):
        assert found[0] == found[-1] and len(set(found)) == 3


def test_phrases_of_the_same_ids_are_one() -> None:
    """A pair of one phrase is left out with its contrasts."""
    texts = pa.array(["a dog", "a hound", "A dog", "x", "y"])
    pairs = PhrasePairs(texts.take(pa.array([0, 0, 1])), texts.take(pa.array([1, 2, 3])))
    contrasts = np.array([[3, -1], [4, 3], [2, 4]])
    data = PhraseData(texts, pairs, contrasts, None, 0, pairs)
    vocabulary = vocabulary_of([texts])
    pool, phrases = examples_of(data, {"words": vocabulary})
    ids = np.split(phrases["words"].ids, phrases["words"].offsets[1:-1])
    names = [" ".join(vocabulary.words[i] for i in row) for row in ids]
    assert sorted(names) == ["a dog", "a hound", "x", "y"] and pool.identical == 1
    assert [names[row] for row in pool.left] == ["a dog", "a hound"]
    assert [names[row] for row in pool.right] == ["a hound", "x"]
    assert pool.contrasts is not None
    found = [[names[row] if row >= 0 else "" for row in of] for of in pool.contrasts]
    assert found == [["x", ""], ["a dog", "y"]]


SYNONYMS = [("big", "large"), ("dog", "hound"), ("runs", "races"), ("small", "little")]
NOUNS = ["dog", "cat", "man", "tree", "car", "bird", "house", "boat"]


def write_table(path: Path) -> str:
    """Phrases that say the same with other adjectives and verbs, all in letters."""
    ends = [f"{a} {b}" for a, b in permutations(NOUNS, 2)]
    row = "[X] ||| {} {} ||| {} {} ||| Count=2\n"
    lines = [row.format(one, end, other, end) for end in ends for one, other in SYNONYMS]
    path.write_text("".join(lines))
    return str(path)


def test_train_save_load(tmp_path: Path) -> None:
    section = PhrasesOptions(table=write_table(tmp_path / "table.txt"), samples=9, dropout=0.0)
    options = SystemOptions(task="phrases", phrases=section, model="gru", dim=DIM)
    options = options.replace(epochs=12, batch_size=20)
    runs = [tasks.train(options, tmp_path / name, seed=1, threads=1) for name in "ab"]
    metrics = json.loads((tmp_path / "a" / "metrics.json").read_text())
    count = len(NOUNS) * 7 * 4
    held_out, development = metrics["held_out"], metrics["development_pairs"]
    assert metrics["pairs"] + held_out + development == count
    assert 0.05 * count < min(held_out, development) < max(held_out, development) < 0.16 * count
    assert metrics["choose_among_100"] == runs[1]["choose_among_100"] > 40
    one, other = (load_encoder(tmp_path / name) for name in "ab")
    texts = ["big dog cat", "large dog cat", "runs car boat"]
    assert np.array_equal(one.embed(texts), other.embed(texts))
    near, far = one.similarity([texts[0]] * 2, texts[1:])
    vectors = one.embed(texts).astype(np.float64)
    # The dot product; in another batch, and on another processor, float32 is rounded otherwise.
    assert near == pytest.approx(vectors[0] @ vectors[1], rel=1e-5) and near > far


def vectors_of(path: Path, dim: int = 8) -> str:
    random = np.random.default_rng(0)
    words = sorted({*sum(SYNONYMS, ()), *NOUNS, "high", "river", "dry", "hot"})
    write_vectors(path, words, random.standard_normal((len(words), dim)).astype(np.float32))
    return str(path)


def test_given_vectors_are_not_trained(tmp_path: Path) -> None:
    """As in the paper; an average of them is its baseline, which is not trained at all."""
    vectors = vectors_of(tmp_path / "v.txt")
    table = write_table(tmp_path / "table.txt")
    original = load_vectors(Path(vectors))
    cases = (("gru", False, True), ("word-avg", False, False), ("word-avg", True, True))
    for model, trains, steps in cases:
        section = PhrasesOptions(table=table, train_words=trains)
        options = SystemOptions(task="phrases", phrases=section, model=model, dim=8, epochs=1)
        options = options.replace(initial_vectors=vectors)
        metrics = tasks.train(options, tmp_path / "m", seed=1)
        encoder = load_encoder(tmp_path / "m")
        (matrix,) = embedding_matrices(encoder.encoder).values()
        given = original.matrix[original.rows(encoder.vocabularies["words"].words[1:])]
        assert np.array_equal(matrix.weight[1:].numpy(), given) is not trains
        assert bool(metrics["steps"]) is steps
        assert metrics["development"] is not None and metrics["choose_among_100"] is not None


def test_training_on_turneys_questions(tmp_path: Path) -> None:
    """Each stem with its solution against the other four choices, and the reverse order."""
    line = "{0} {2} | {1} {2} | {0} | {2} | cat | high river | dry | hot"
    lines = [line.format(one, other, noun) for one, other in SYNONYMS for noun in NOUNS]
    path = tmp_path / "turney.txt"
    path.write_text("\n".join(lines) + "\n")
    data = read_phrase_data(PhrasesOptions(table=str(path), held_out=0.2), None)
    assert data.contrasts is not None and data.contrasts.shape == (len(data.train), 4)
    texts = data.phrases.to_pylist()
    examples = list(zip(*(side.to_pylist() for side in data.train), data.contrasts, strict=True))
    stem, solution, choices = examples[0]
    assert [texts[row] for row in choices] == ["cat", "high river", "dry", "hot"]
    back, again, reverse = examples[1]
    assert (back, again) == (solution, stem)
    assert [texts[row] for row in reverse if row >= 0] == [" ".join(reversed(stem.split()))]
    assert len(data.train) == 2 * (len(lines) - data.development_pairs) and not len(data.test)
    section = PhrasesOptions(table=str(path), development=str(path), dropout=0.0)
    options = SystemOptions(task="phrases", phrases=section, model="gru", cell="cho")
    options = options.replace(dim=16, epochs=8, batch_size=4)
    metrics = tasks.train(options, tmp_path / "m", seed=1)
    scores = turney2012(load_encoder(tmp_path / "m").named("m"), read_turney2012(path))
    assert metrics["development"] == pytest.approx(np.mean(list(scores.values())))
    assert metrics["development"] > 70
