import copy

import numpy as np
import pyarrow as pa
import pytest
import torch

from benchmarks.plain_training import PlainEncoder, PlainLSTM, PlainTrainer
from models.embeddings.encoders import build_encoder, embedding_matrices, random_vectors
from models.embeddings.options import EmbeddingOptions
from models.embeddings.training import pair_trainer as module
from models.embeddings.training.data import learnable
from models.embeddings.training.label_trainer import better
from models.embeddings.training.pair_trainer import PairTrainer
from models.embeddings.training.trainer import Memory
from models.embeddings.vocabulary import Vocabulary

DIM = 12


def make_pairs(n=90, seed=0):
    random = np.random.default_rng(seed)
    words = [f"w{i}" for i in range(50)]
    left = [" ".join(random.choice(words, random.integers(1, 9))) for _ in range(n)]
    right = [" ".join([*random.permutation(text.split())[:6], "x"]) for text in left]
    left[1], right[2] = left[0], right[0]  # negatives that are not allowed
    sides = pa.array(left), pa.array(right)
    vocabulary = Vocabulary.build(sides)
    return learnable(*sides, {"words": vocabulary}), vocabulary


def make_trainer(seed=1, **options):
    pairs, vocabulary = make_pairs()
    options = EmbeddingOptions(
        **{"dim": DIM, "batch_size": 10, "mega_batch": 3, "learning_rate": 0.01, **options}
    )
    torch.manual_seed(0)
    encoder = build_encoder(options, {"words": random_vectors(len(vocabulary), DIM, 1)})
    encoder.train()
    return PairTrainer(encoder, Memory(pairs, "memory"), options, seed)


def in_float64(trainer):
    """The same trainer with weights in double precision, so that rounding does not blur tests."""
    encoder = copy.deepcopy(trainer.encoder).double()
    for table in embedding_matrices(encoder).values():
        table.trained = False
    return PairTrainer(encoder, trainer.source, trainer.options, trainer.seed)


def plain_of(trainer):
    """The plain encoder with the same weights."""
    encoder = trainer.encoder
    vectors = next(iter(trainer.matrices.values())).weight
    if trainer.options.model == "word-avg":
        return PlainEncoder(vectors)
    plain = PlainLSTM(vectors, DIM, both=trainer.options.model == "bilstm-avg").to(vectors.dtype)
    for direction, suffix in zip(encoder.directions, ("", "_reverse"), strict=False):
        for name, weight in direction.weights.named_parameters():
            getattr(plain.lstm, name + suffix).data.copy_(weight.data)
    return plain


def lists_of(pairs):
    sides = (np.split(s["words"].ids, s["words"].offsets[1:-1]) for s in (pairs.left, pairs.right))
    return list(zip(*([ids.tolist() for ids in side] for side in sides), strict=True))


@pytest.mark.parametrize("model", ["word-avg", "lstm-avg", "bilstm-avg"])
def test_every_mini_batch_has_the_gradient_of_the_plain_procedure(model, monkeypatch):
    trainer = make_trainer(model=model)
    monkeypatch.setattr(PairTrainer, "encode", lambda self, sentences: self.encoder(sentences))
    trainer = in_float64(trainer)
    plain = PlainTrainer(plain_of(trainer), margin=0.4, learning_rate=0.01, batch_size=10)

    ours, theirs = [], []
    (table,) = trainer.matrices.values()
    step, plain_step = table.step, plain.adam.step

    def record():
        rows, leaf = table._read.positions, table.read
        dense = torch.zeros_like(table.weight).index_add_(0, rows, leaf.grad)
        ours.append([dense, *gradients])
        step()

    def record_plain():
        theirs.append([p.grad.clone() for p in plain.encoder.parameters()])
        plain_step()

    gradients = []
    if trainer.optimizer is not None:
        adam_step = trainer.optimizer.step

        def keep():
            gradients[:] = [weight.grad.clone() for weight in trainer.weights.values()]
            adam_step()

        monkeypatch.setattr(trainer.optimizer, "step", keep)
    monkeypatch.setattr(table, "step", record)
    monkeypatch.setattr(plain.adam, "step", record_plain)

    pairs = trainer.source.pool
    for start in (0, 30, 60):
        part = pairs.take(np.arange(start, start + 30))
        trainer.train_on(part)
        plain.train_mega_batch(lists_of(part))
    assert trainer.progress.step == 9 == len(ours) == len(theirs)
    for mine, its in zip(ours, theirs, strict=True):
        assert len(mine) == len(its)
        assert all(g.abs().max() > 1e-6 for g in mine)
        for a, b in zip(mine, its, strict=True):
            assert torch.allclose(a, b, rtol=0, atol=1e-7)
    losses = torch.stack(trainer.losses).tolist()
    assert losses == pytest.approx(plain.losses, abs=1e-7)
    assert torch.allclose(table.current(), plain.encoder.embedding.weight, rtol=0, atol=1e-6)


def test_training_for_many_steps_stays_with_the_plain_procedure():
    trainer = make_trainer(model="word-avg")
    plain = PlainTrainer(plain_of(trainer), margin=0.4, learning_rate=0.01, batch_size=10)
    pairs = trainer.source.pool
    random = np.random.default_rng(0)
    for _ in range(25):
        order = random.permutation(len(pairs))[:80]
        trainer.train_on(pairs.take(order))
        plain.train_mega_batch(lists_of(pairs.take(order)))
    losses = torch.stack(trainer.losses).tolist()
    assert len(losses) == 200 and losses == pytest.approx(plain.losses, abs=1e-4)
    assert losses[-1] < 0.5 * losses[0]


def test_gradients_are_clipped_together(monkeypatch):
    norms = []
    for clip in (None, 0.01):
        trainer = make_trainer(model="lstm-avg", clip=clip)
        (table,) = trainer.matrices.values()
        step = table.step
        found = []

        def record(found=found, table=table, step=step):
            found.append(table.read.grad.norm().item())
            step()

        def keep(found=found, trainer=trainer, step=trainer.optimizer.step):
            found += [weight.grad.norm().item() for weight in trainer.weights.values()]
            step()

        monkeypatch.setattr(table, "step", record)
        monkeypatch.setattr(trainer.optimizer, "step", keep)
        trainer.train_on(trainer.source.pool.take(np.arange(10)))
        norms.append(np.array(found))
    assert np.linalg.norm(norms[0]) > 0.02
    assert np.linalg.norm(norms[1]) == pytest.approx(0.01, rel=1e-3)
    assert norms[1] / norms[1].sum() == pytest.approx(norms[0] / norms[0].sum(), rel=1e-3)


def test_l2_pulls_the_weights_but_not_the_words_to_zero():
    sizes = []
    for l2 in (0.0, 1.0):
        trainer = make_trainer(model="lstm-avg", l2=l2, epochs=20)
        trainer.fit()
        (table,) = trainer.matrices.values()
        weights = sum(weight.norm().item() for weight in trainer.weights.values())
        sizes.append((weights, table.current().norm().item()))
    assert sizes[1][0] < 0.2 * sizes[0][0]
    assert sizes[1][1] > 0.5 * sizes[0][1]


def test_l2_words_holds_the_words_where_they_started():
    moved = []
    for l2_words in (0.0, 10.0):
        trainer = make_trainer(l2_words=l2_words, epochs=20)
        (table,) = trainer.matrices.values()
        start = table.weight.clone()
        trainer.fit()
        moved.append((table.current() - start).norm())
    assert moved[1] < 0.2 * moved[0]


def test_mega_batches_grow(monkeypatch):
    trainer = make_trainer(mega_batch=4, mega_batch_growth=2, epochs=3)
    sizes = []
    train = trainer.train_on
    monkeypatch.setattr(trainer, "train_on", lambda pairs: (sizes.append(len(pairs)), train(pairs)))
    trainer.fit()
    assert sizes[:6] == [10, 10, 20, 30, 20, 40] and max(sizes) == 40


def test_training_ends_after_so_many_steps():
    trainer = make_trainer(steps=23, epochs=1)
    at = trainer.fit()
    assert (at.step, at.pairs, at.seen) == (23, 90, 230)


def test_noise_and_scrambling_depend_on_the_seed_alone():
    noise = {"dropout": 0.3, "word_dropout": 0.2, "scramble": 0.7, "model": "bilstm-avg"}
    results = []
    for seed in (1, 1, 2):
        torch.manual_seed(np.random.default_rng().integers(1000))
        trainer = make_trainer(seed, epochs=2, **noise)
        state = torch.random.get_rng_state()
        trainer.fit()
        assert torch.equal(torch.random.get_rng_state(), state)  # the caller's numbers stay its own
        results.append(next(iter(trainer.matrices.values())).current())
    assert torch.equal(results[0], results[1]) and not torch.equal(results[0], results[2])


def test_negatives_are_chosen_without_noise(monkeypatch):
    trainer = make_trainer(dropout=0.5)
    modes = []
    encode = trainer.encode
    monkeypatch.setattr(
        trainer, "encode", lambda s: (modes.append(trainer.encoder.training), encode(s))[1]
    )
    trainer.train_on(trainer.source.pool.take(np.arange(20)))
    assert modes == [False, True, True]


def test_mega_batches_are_encoded_in_parts(monkeypatch):
    whole, parts = make_trainer(), make_trainer()
    pairs = whole.source.pool
    whole.train_on(pairs)
    monkeypatch.setattr(module, "_ENCODED", 7)
    parts.train_on(pairs)
    assert torch.allclose(torch.stack(whole.losses), torch.stack(parts.losses), atol=1e-6)


def test_better():
    nan = float("nan")
    assert better(1.0, None) and better(nan, None) and better(2.0, 1.0) and better(1.0, nan)
    assert not better(1.0, 1.0) and not better(nan, 1.0) and not better(nan, nan)
