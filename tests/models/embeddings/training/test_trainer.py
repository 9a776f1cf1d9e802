import copy
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch.nn.functional import cosine_similarity

from paraloom.models.embeddings.encoders import build_encoder, embedding_matrices, random_vectors
from paraloom.models.embeddings.options import read_options
from paraloom.models.embeddings.ragged_columns import Sentences, join_all, take_all
from paraloom.models.embeddings.training import negatives
from paraloom.models.embeddings.training import pair_trainer as module
from paraloom.models.embeddings.training.data import Pairs, learnable
from paraloom.models.embeddings.training.loss import margin_loss
from paraloom.models.embeddings.training.negatives import NegativesFrom, hardest_negatives
from paraloom.models.embeddings.training.pair_trainer import PairTrainer
from paraloom.models.embeddings.training.trainer import Memory, Pool, Progress, Trainer, better
from paraloom.models.embeddings.vocabulary import Vocabulary
from paraloom.models.errors import UserError
from tests.models.embeddings.encoders.test_encoders import gradient_of
from tests.plain_training import PlainTrainer, plain_of, plain_pairs
from tests.run_helpers import Patch
from tests.small_encoder import vocabulary_of

DIM = 12


def make_pairs(n: int = 90, seed: int = 0) -> tuple[Pairs, Vocabulary]:
    random = np.random.default_rng(seed)
    words = [f"w{i}" for i in range(50)]
    left = [" ".join(random.choice(words, random.integers(1, 9))) for _ in range(n)]
    right = [" ".join([*random.permutation(text.split())[:6], "x"]) for text in left]
    left[1], right[2] = left[0], right[0]  # negatives that are not allowed
    sides = pa.array(left), pa.array(right)
    vocabulary = vocabulary_of(sides)
    return learnable(*sides, {"words": vocabulary}), vocabulary


def make_trainer(
    seed: int = 1, kind: type[PairTrainer] = PairTrainer, **options: Any
) -> PairTrainer:
    pairs, vocabulary = make_pairs()
    defaults = {"dim": DIM, "batch_size": 10, "mega_batch": 3, "learning_rate": 0.01}
    chosen = read_options({**defaults, **options})
    torch.manual_seed(0)
    encoder = build_encoder(chosen, {"words": random_vectors(len(vocabulary), DIM, 1)})
    encoder.train()
    return kind(encoder, Memory(pairs, "memory"), chosen, seed)


def in_float64(trainer: PairTrainer) -> PairTrainer:
    """The same trainer with weights in double precision, so that rounding does not blur tests."""
    encoder = copy.deepcopy(trainer.encoder).double()
    for table in embedding_matrices(encoder).values():
        table.trained = False
    return PairTrainer(encoder, trainer.source, trainer.options, trainer.seed)


def pool_of(trainer: Trainer[Pairs]) -> Pairs:
    """All pairs: those of `make_trainer` are in memory."""
    assert isinstance(trainer.source, Memory) and isinstance(trainer.source.pool, Pairs)
    return trainer.source.pool


@pytest.mark.parametrize("model", ["word-avg", "lstm-avg", "bilstm-avg"])
def test_each_batch_has_the_gradient_of_the_plain_procedure(model: str, monkeypatch: Patch) -> None:
    trainer = make_trainer(model=model, negatives="other", margin=0.3)
    monkeypatch.setattr(PairTrainer, "encode", lambda self, sentences: self.encoder(sentences))
    trainer = in_float64(trainer)
    plain = PlainTrainer(plain_of(trainer), margin=0.3, learning_rate=0.01, batch_size=10)

    ours: list[list[torch.Tensor]] = []
    theirs: list[list[torch.Tensor]] = []
    (table,) = trainer.matrices.values()
    step, plain_step = table.step, plain.adam.step

    def record() -> None:
        assert table._read is not None
        rows = table._read.positions
        dense = torch.zeros_like(table.weight).index_add_(0, rows, gradient_of(table.read))
        ours.append([dense, *gradients])
        step()

    def record_plain() -> None:
        theirs.append([gradient_of(p) for p in plain.encoder.parameters()])
        plain_step()

    gradients: list[torch.Tensor] = []
    if trainer.optimizer is not None:
        adam_step = trainer.optimizer.step

        def keep() -> None:
            gradients[:] = [gradient_of(weight) for weight in trainer.weights.values()]
            adam_step()

        monkeypatch.setattr(trainer.optimizer, "step", keep)
    monkeypatch.setattr(table, "step", record)
    monkeypatch.setattr(plain.adam, "step", record_plain)

    pairs = pool_of(trainer)
    for start in (0, 30, 60):
        part = pairs.take(np.arange(start, start + 30))
        trainer.train_on(part)
        plain.train_mega_batch(plain_pairs(part))
    assert trainer.progress.step == 9 == len(ours) == len(theirs)
    for mine, its in zip(ours, theirs, strict=True):
        assert len(mine) == len(its)
        assert all(g.abs().max() > 1e-6 for g in mine)
        for a, b in zip(mine, its, strict=True):
            assert torch.allclose(a, b, rtol=0, atol=1e-7)
    losses = torch.stack(trainer.losses).tolist()
    assert losses == pytest.approx(plain.losses, abs=1e-7)
    assert torch.allclose(table.current(), plain.encoder.embedding.weight, rtol=0, atol=1e-6)


def norms_of_a_step(trainer: PairTrainer, monkeypatch: Patch) -> NDArray[np.float64]:
    """The norm of every gradient that the optimisers see in one step."""
    found: list[torch.Tensor] = []
    (table,) = trainer.matrices.values()
    weights = trainer.weights.values()
    monkeypatch.setattr(table, "step", lambda: found.append(gradient_of(table.read)))
    monkeypatch.setattr(trainer.optimizer, "step", lambda: found.extend(map(gradient_of, weights)))
    trainer.train_on(pool_of(trainer).take(np.arange(10)))
    return np.array([gradient.norm().item() for gradient in found])


def test_gradients_are_clipped_together(monkeypatch: Patch) -> None:
    norms = []
    for clip in (None, 0.01):
        trainer = make_trainer(model="lstm-avg", clip=clip)
        norms.append(norms_of_a_step(trainer, monkeypatch))
    assert np.linalg.norm(norms[0]) > 0.02
    assert np.linalg.norm(norms[1]) == pytest.approx(0.01, rel=1e-3)
    assert norms[1] / norms[1].sum() == pytest.approx(norms[0] / norms[0].sum(), rel=1e-3)


def test_a_pair_needs_a_negative_for_each_side(monkeypatch: Patch) -> None:
    trainer = make_trainer()
    pairs = pool_of(trainer).take(np.arange(25))
    found = np.stack([np.arange(25, 50), np.arange(25)])
    found[0, 3] = found[1, 4] = -1
    found[:, 10:20] = -1  # a whole mini-batch
    seen: list[Sentences] = []
    monkeypatch.setattr(trainer, "negatives", lambda *_: found)
    monkeypatch.setattr(trainer, "step", seen.append)
    trainer.train_on(pairs)
    kept = [[0, 1, 2, 5, 6, 7, 8, 9], [20, 21, 22, 23, 24]]
    for sentences, rows in zip(seen, kept, strict=True):
        order = np.concatenate([rows, np.add(rows, 25), np.add(rows, 25), rows])
        expected = take_all(join_all(pairs.sides), order)["words"]
        assert np.array_equal(sentences["words"].ids, expected.ids)
        assert np.array_equal(sentences["words"].offsets, expected.offsets)


def test_noise_and_scrambling_depend_on_the_seed_alone(monkeypatch: Patch) -> None:
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)  # GPUs that must not be used
    noise: dict[str, Any] = {"dropout": 0.3, "word_dropout": 0.2, "scramble": 0.7}
    noise["model"] = "bilstm-avg"
    results = []
    for seed in (1, 1, 2**32 - 1):
        torch.manual_seed(np.random.default_rng().integers(1000))
        trainer = make_trainer(seed, epochs=2, **noise)
        state = torch.random.get_rng_state()
        trainer.fit()
        assert torch.equal(torch.random.get_rng_state(), state)  # the caller's numbers stay its own
        results.append(next(iter(trainer.matrices.values())).current())
    assert torch.equal(results[0], results[1]) and not torch.equal(results[0], results[2])


@pytest.mark.parametrize("noise", ["dropout", "word_dropout"])
def test_every_step_has_noise_of_its_own(noise: str) -> None:
    options: dict[str, Any] = {noise: 0.5}
    trainer = make_trainer(**options)
    trainer.encoder.train()
    batch = join_all(pool_of(trainer).sides)

    def noisy(step: int, seed: int = 1) -> torch.Tensor:
        trainer.progress.step, trainer.seed = step, seed
        trainer.seed_noise()
        return trainer.encode(batch)

    with torch.random.fork_rng():
        first, second = noisy(0), noisy(1)
        assert torch.equal(noisy(0), first)
        assert not torch.equal(second, first) and not torch.equal(noisy(0, seed=2), second)


def test_words_are_scrambled_anew_at_every_position(monkeypatch: Patch) -> None:
    trainer = make_trainer(scramble=1.0)
    batch = pool_of(trainer).take(np.arange(10))
    seen: list[list[int]] = []
    monkeypatch.setattr(trainer, "step", lambda of: seen.append(of["words"].ids.tolist()))
    for epoch, pool, row in ((0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 10), (0, 0, 0)):
        trainer.progress = Progress(epoch=epoch, pool=pool, row=row)
        trainer.train_on(batch)
    assert seen[0] == seen[-1] and len(set(map(tuple, seen))) == 4


def test_negatives_are_chosen_without_noise(monkeypatch: Patch) -> None:
    trainer = make_trainer(dropout=0.5)
    modes = []
    encode = trainer.encode

    def record(sentences: Sentences) -> torch.Tensor:
        modes.append(trainer.encoder.training)
        return encode(sentences)

    monkeypatch.setattr(trainer, "encode", record)
    trainer.train_on(pool_of(trainer).take(np.arange(20)))
    assert modes == [False, True, True]


def test_mega_batches_are_encoded_in_parts(monkeypatch: Patch) -> None:
    whole, parts = make_trainer(), make_trainer()
    pairs = pool_of(whole)
    whole.train_on(pairs)
    monkeypatch.setattr(module, "_ENCODED", 7)
    parts.train_on(pairs)
    assert torch.allclose(torch.stack(whole.losses), torch.stack(parts.losses), atol=1e-6)


class Recorder:
    """In place of a `TrainingFolder`."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []
        self.saved: list[int] = []

    def log(self, line: dict[str, Any]) -> None:
        self.lines.append(line)

    def save(self, step: int, state: dict[str, Any], tensors: dict[str, torch.Tensor]) -> None:
        assert state["step"] == step and state["lines"] == len(self.lines)
        self.saved.append(step)


@pytest.mark.parametrize("read_every", [1, 5])
def test_lines_and_checkpoints_are_due_in_time(monkeypatch: Patch, read_every: int) -> None:
    """Also where losses are read less often, as on a GPU."""
    monkeypatch.setattr("paraloom.models.embeddings.training.trainer.LOG_EVERY", 5)
    trainer = make_trainer(epochs=2, checkpoint_every=4)
    trainer.read_every = read_every
    folder: Any = Recorder()
    trainer.folder = folder
    steps: list[float] = []
    take = trainer.optimizer_step

    def record(loss: torch.Tensor) -> None:
        steps.append(loss.item())
        take(loss)

    monkeypatch.setattr(trainer, "optimizer_step", record)
    trainer.fit()
    # Due after the mega-batch, of three steps, in which a multiple of five, or four, is passed.
    position = [(line["step"], line["epoch"], line["pairs"]) for line in folder.lines]
    assert position == [(6, 0, 60), (12, 1, 120), (15, 1, 150)]
    assert folder.saved == [6, 9, 12, 18]
    for start, line in zip((0, 6, 12), folder.lines, strict=True):
        assert line["loss"] == pytest.approx(np.mean(steps[start : line["step"]]), rel=1e-5)
    assert trainer.progress.loss == pytest.approx(np.mean(steps[15:]), rel=1e-5)


def test_the_step_without_a_finite_loss_is_named() -> None:
    trainer = make_trainer()
    trainer.progress.step = 9
    trainer.losses = [torch.tensor(value) for value in (0.5, float("inf"), 0.5, float("nan"))]
    with pytest.raises(UserError, match=r"^the loss is inf at step 7: .* learning_rate \(0\.01\)"):
        trainer.report(8)


@pytest.mark.parametrize(
    ("scores", "best"),
    [([1.0, 1.0, 2.0], [0, 2]), ([math.nan, math.nan, -1.0, math.nan, 0.0], [0, 2, 4])],
)
def test_the_best_scores_so_far(scores: list[float], best: list[int]) -> None:
    """An undefined one is the best only until another is defined."""
    found: list[int] = []
    for at, score in enumerate(scores):
        if better(score, scores[found[-1]] if found else None):
            found.append(at)
    assert found == best


class Twice(Memory[Pairs]):
    """Epochs of two pools with the same pairs."""

    def epoch(self, epoch: int, first: int = 0) -> Iterator[Pool[Pairs]]:
        yield from [self.pool, self.pool][first:]


def test_every_pool_of_every_epoch_has_an_order_of_its_own(monkeypatch: Patch) -> None:
    pairs = pool_of(make_trainer())
    number = {key: i for i, key in enumerate(zip(*pairs.keys.tolist(), strict=True))}
    orders: list[tuple[int, ...]] = []
    for seed in (1, 1, 2):
        trainer = make_trainer(seed, epochs=2, mega_batch=9)
        trainer.source = Twice(pairs, "twice")

        def keep(batch: Pairs) -> None:
            orders.append(tuple(number[key] for key in zip(*batch.keys.tolist(), strict=True)))

        monkeypatch.setattr(trainer, "train_on", keep)
        monkeypatch.setattr(trainer, "progress", Progress(step=1))  # no step is made
        trainer.fit()
    assert all(sorted(order) == list(range(90)) for order in orders)
    assert orders[:4] == orders[4:8] and len(set(orders)) == 8


BLOCKS = st.sampled_from([1, 20, 10_000])
POOLS = st.sampled_from(["other", "same", "both"])
SEEDS = st.integers(0, 1000)


def found_in_blocks(block: int, *of: Any) -> list[int]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(negatives, "_CPU_BLOCK", block)
        return [int(row) for row in torch.cat(hardest_negatives(*of))]


def plain(
    left: torch.Tensor,
    right: torch.Tensor,
    left_keys: NDArray[np.uint64],
    right_keys: NDArray[np.uint64],
    pool: NegativesFrom,
    sources: NDArray[np.uint64] | None = None,
) -> list[int]:
    """Sentence by sentence, as the papers describe it."""
    n = len(left)
    of = np.arange(n) if sources is None else sources
    vectors = torch.nn.functional.normalize(torch.cat([left, right]), dim=1)
    keys = np.concatenate([left_keys, right_keys])
    result = []
    for i in range(2 * n):
        side, partner = i // n, (i + n) % (2 * n)
        best, where = -2.0, -1
        for j in range(2 * n):
            allowed = {"other": j // n != side, "same": j // n == side, "both": True}[pool]
            allowed = allowed and of[j % n] != of[i % n]
            if allowed and keys[j] not in (keys[i], keys[partner]):
                cosine = float(vectors[i] @ vectors[j])
                if cosine > best:
                    best, where = cosine, j
        result.append(where)
    return result


@settings(max_examples=80)
@given(n=st.integers(1, 12), distinct=st.integers(1, 20), pool=POOLS, block=BLOCKS, seed=SEEDS)
def test_equals_a_loop(n: int, distinct: int, pool: NegativesFrom, block: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    keys = random.integers(0, distinct, 2 * n).astype(np.uint64)
    each = torch.from_numpy(random.standard_normal((distinct, 5))).float()
    vectors = each[torch.from_numpy(keys.astype(np.int64))]  # equal keys: equal sentences
    sides = vectors[:n], vectors[n:], keys[:n], keys[n:]
    expected = plain(*sides, pool)
    found = found_in_blocks(block, *sides, pool)
    # of equal sentences any is right
    of = [[keys[j] if j >= 0 else -1 for j in rows] for rows in (found, expected)]
    assert of[0] == of[1]


@settings(max_examples=60)
@given(n=st.integers(1, 12), pool=POOLS, block=BLOCKS, seed=SEEDS)
def test_translations_of_the_same_source_are_no_negatives(
    n: int, pool: NegativesFrom, block: int, seed: int
) -> None:
    random = np.random.default_rng(seed)
    sources = random.integers(0, 4, n).astype(np.uint64)
    keys = np.arange(2 * n, dtype=np.uint64)
    vectors = torch.from_numpy(random.standard_normal((2 * n, 5))).float()
    sides = vectors[:n], vectors[n:], keys[:n], keys[n:]
    assert found_in_blocks(block, *sides, pool, sources) == plain(*sides, pool, sources)


def plain_loss(quads: torch.Tensor, margin: float) -> torch.Tensor:
    left, right, left_negative, right_negative = quads.chunk(4)
    positive = cosine_similarity(left, right)
    hinges = torch.relu(margin - positive + cosine_similarity(left, left_negative))
    hinges = hinges + torch.relu(margin - positive + cosine_similarity(right, right_negative))
    return hinges.mean()


def test_the_loss_equals_the_equation_and_its_gradient() -> None:
    torch.manual_seed(0)
    quads = torch.randn(80, 6, dtype=torch.float64)
    quads[20:40] = quads[:20] + 0.3 * torch.randn(20, 6)  # so that some hinges are closed
    quads.requires_grad_()
    loss, expected = margin_loss(quads, 0.4), plain_loss(quads, 0.4)
    gradients = (torch.autograd.grad(3 * value, quads)[0] for value in (loss, expected))
    gradient, expected_gradient = gradients
    assert torch.allclose(loss, expected, rtol=0, atol=1e-12)
    assert torch.allclose(gradient, expected_gradient, rtol=0, atol=1e-12)
    assert 0 < (gradient[40:60] == 0).all(dim=1).sum() < 20


def test_a_vector_without_a_direction_has_cosine_0_and_gets_no_gradient() -> None:
    quads = torch.tensor([[0.0, 0], [1, 0], [0, 1], [0, 1]], requires_grad=True)
    loss = margin_loss(quads, 0.4)
    assert loss.item() == torch.tensor(0.8)
    torch.autograd.backward(loss)
    assert quads.grad is not None
    assert quads.grad[0].tolist() == [0, 0] and quads.grad.isfinite().all()
    apart = torch.tensor([[1.0, 0], [1, 0], [-1, 0], [0, 1]])
    assert margin_loss(apart, 0.4).item() == 0
