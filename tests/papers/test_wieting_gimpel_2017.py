"""Wieting & Gimpel 2017: equations and settings, in float64 or as printed."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from torch.nn.functional import cosine_similarity

from paraloom.models.embeddings.encoders import embedding_matrices
from paraloom.models.embeddings.ragged_columns import join_all, take_all
from paraloom.models.embeddings.training.data import learnable
from paraloom.models.embeddings.vocabulary import Vocabulary
from paraloom.models.errors import UserError
from paraloom.papers import tasks
from paraloom.papers.options import SimilarityOptions, SystemOptions
from paraloom.papers.scrambling import VariantTrainer, scrambled
from paraloom.pipeline.config import read_config
from tests.labelled import write_sick
from tests.models.embeddings.encoders.test_encoders import gradient_of
from tests.models.embeddings.training.test_trainer import in_float64, make_trainer, pool_of
from tests.run_helpers import Patch, calls_of
from tests.small_encoder import vocabulary_of


def test_equation_2_with_its_regularisation(monkeypatch: Patch) -> None:
    """Hinges + λ_c ‖W_c‖² + λ_w ‖W_initial − W‖², of one mini-batch, by autograd in float64."""
    options: Any = {"model": "gran", "lambda_c": 0.3, "lambda_w": 0.7, "negatives": "same"}
    trainer = in_float64(make_trainer(mega_batch=1, **options))
    batch = pool_of(trainer).take(np.arange(10))
    (table,) = trainer.matrices.values()
    start = table.weight.clone()
    table.weight += 0.1  # away from where the vectors started
    sentences = join_all(batch.sides)
    negatives = trainer.negatives(sentences, batch.keys)

    encoder: Any = in_float64(trainer).encoder
    words = next(iter(embedding_matrices(encoder).values())).weight.requires_grad_()
    weights = list(encoder.parameters())
    both: torch.Tensor = encoder(sentences)
    left, right = both.chunk(2)
    found = both[torch.from_numpy(negatives[0])], both[torch.from_numpy(negatives[1])]
    positive = cosine_similarity(left, right)
    hinges = (0.4 - positive + cosine_similarity(left, found[0])).clamp_min(0)
    hinges = hinges + (0.4 - positive + cosine_similarity(right, found[1])).clamp_min(0)
    penalty = 0.3 * sum((weight**2).sum() for weight in weights)
    penalty = penalty + 0.7 * ((start - words) ** 2).sum()
    torch.autograd.backward(hinges.mean() + penalty)

    seen: dict[str, Any] = {}
    assert trainer.optimizer is not None
    (group,) = trainer.optimizer.param_groups

    def keep() -> None:  # with the decay that torch's Adam adds
        decay = group["weight_decay"]
        seen["weights"] = [gradient_of(w) + decay * w.detach() for w in trainer.weights.values()]

    monkeypatch.setattr(trainer.optimizer, "step", keep)
    fused = torch._fused_adam_

    def record(weight: Any, gradient: Any, *others: Any, **options: Any) -> None:
        seen["words"] = gradient[0].clone()
        fused(weight, gradient, *others, **options)

    monkeypatch.setattr(torch, "_fused_adam_", record)
    trainer.train_on(batch)
    assert torch.allclose(seen["words"], gradient_of(words), rtol=0, atol=1e-7)
    for ours, weight in zip(seen["weights"], weights, strict=True):
        assert torch.allclose(ours, gradient_of(weight), rtol=0, atol=1e-7)


def sides(count: int, **options: Any) -> tuple[Any, Any]:
    """The sides of scrambled pairs, and of the pairs."""
    left, right = (pa.array([" ".join(f"{s}{k}" for k in range(8))] * count) for s in "ab")
    chosen = SystemOptions(**options)
    words = vocabulary_of([left, right], tags=chosen.tags)
    pairs = learnable(left, right, {"words": words})
    return scrambled(pairs.sides, chosen, np.random.default_rng(0)), pairs.sides


def moved(before: Any, after: Any) -> Any:
    """How many words of each sentence are elsewhere."""
    count = len(before["words"].lengths)
    rows = [column["words"].ids.reshape(count, -1) for column in (before, after)]
    assert np.array_equal(np.sort(rows[0], axis=1), np.sort(rows[1], axis=1))
    return (rows[0] != rows[1]).sum(axis=1)


def test_sentences_are_scrambled_singly() -> None:
    mixed, pairs = sides(3000, scramble=0.5, scramble_variant="sentences")
    left, right = (moved(*of) > 0 for of in zip(pairs, mixed, strict=True))
    for share in (left.mean(), right.mean()):
        assert share == pytest.approx(0.5, abs=0.03)
    assert (left & right).mean() == pytest.approx(0.25, abs=0.03)


@pytest.mark.parametrize("tags", [False, "start", "end"])
def test_the_number_of_swaps_has_a_poisson_distribution(tags: Any) -> None:
    mixed, pairs = sides(4000, scramble=1.0, scramble_swaps=1.5, tags=tags)
    count = moved(pairs[0], mixed[0])
    # No swap, or two that undo each other; one swap.
    assert np.exp(-1.5) - 0.02 < np.mean(count == 0) < np.exp(-1.5) + 0.03
    assert np.mean(count == 2) == pytest.approx(1.5 * np.exp(-1.5), abs=0.03)
    rows = mixed[0]["words"].ids.reshape(4000, -1)
    assert (rows[:, 0] == 1).all() == (tags == "start")
    assert (rows[:, -1] == 2).all() == (tags == "end")
    assert rows.shape[1] == 8 + bool(tags)


@pytest.mark.parametrize(("variant", "equal"), [(None, False), ("after_negatives", True)])
def test_negatives_may_precede_scrambling(variant: Any, equal: bool, monkeypatch: Patch) -> None:
    how = {"scramble": 1.0, "scramble_variant": variant}
    trainer = make_trainer(kind=VariantTrainer, model="lstm", **how)
    batch = pool_of(trainer).take(np.arange(40))
    expected = trainer.negatives(join_all(batch.sides), batch.keys)
    seen: list[Any] = []
    negatives = trainer.negatives

    def record(*of: Any) -> Any:
        seen.append(negatives(*of))
        return seen[0]

    monkeypatch.setattr(trainer, "negatives", record)
    trained = calls_of(monkeypatch, trainer, "step")
    trainer.train_on(batch)
    assert np.array_equal(seen[0], expected) is equal
    plain = take_all(join_all(batch.sides), np.arange(10))["words"].ids
    assert not np.array_equal(trained[0]["words"].ids[: len(plain)], plain)


@pytest.mark.parametrize(("tags", "expected"), [("start", [1, 3]), ("end", [3, 2])])
def test_one_tag(tags: Any, expected: list[int]) -> None:
    """Footnote 4 tunes over both tags, each of them, and none."""
    vocabulary = Vocabulary(["dog", "cat"], tags=tags)
    column = vocabulary.ids(pa.array(["dog", "", "dog cat"]))
    assert column.ids[:2].tolist() == expected and column.lengths.tolist() == [2, 1, 3]
    pairs = learnable(pa.array(["dog", ""]), pa.array(["cat", "dog"]), {"words": vocabulary})
    assert (len(pairs), pairs.empty) == (1, 1)


def sick_options(folder: Path, **changes: Any) -> SystemOptions:
    section = SimilarityOptions(data=[str(folder)], held_out=None, units=3)
    given = {"task": "similarity", "similarity": section, "dim": 6, "epochs": 2}
    return SystemOptions(**{**given, **changes})


def test_the_trial_pairs_of_sick_choose_the_epoch(tmp_path: Path) -> None:
    write_sick(tmp_path / "sick", train=60, trial=20, test_annotated=15)
    metrics = tasks.train(sick_options(tmp_path / "sick"), tmp_path / "model", seed=1)
    assert (metrics["pairs"], metrics["development_pairs"]) == (60, 20)
    assert metrics["test"]["SICK test"]["pairs"] == 15 and "SICK trial" not in metrics["test"]
    write_sick(tmp_path / "few", train=60)
    with pytest.raises(UserError, match=r"no SICK_trial\.txt, whose pairs choose the epoch"):
        tasks.train(sick_options(tmp_path / "few"), tmp_path / "other", seed=1)
    write_sick(tmp_path / "untested", train=60, trial=20)
    metrics = tasks.train(sick_options(tmp_path / "untested"), tmp_path / "third", seed=1)
    assert metrics["test"] == {} and metrics["development_pairs"] == 20


CONFIGS = Path(__file__).resolve().parents[2] / "configs"


def test_the_preset_has_the_settings_of_the_paper(monkeypatch: Patch) -> None:
    """4.1.2 and 4.2."""
    for name in ("PAIRS", "PARAGRAM", "PARALOOM_DATA"):
        monkeypatch.setenv(name, "/data")
    transfer = read_config(CONFIGS / "gran.yaml").embeddings
    assert isinstance(transfer, SystemOptions)
    assert (transfer.dim, transfer.batch_size, transfer.epochs) == (300, 100, 3)
    assert (transfer.learning_rate, transfer.cell) == (0.001, "peephole")
    assert (transfer.negatives, transfer.mega_batch) == ("same", 1)
    assert transfer.dropout in (0.2, 0.4, 0.6) and transfer.scramble in (0.25, 0.5, 0.75)
    assert transfer.margin in (0.4, 0.6, 0.8)
