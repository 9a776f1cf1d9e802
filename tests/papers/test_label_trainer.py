"""`paraloom papers train`, and the labelled tasks: steps, what is kept, whole trainings."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
import yaml

from paraloom.models.embeddings.applications.evaluation import LabelCorrelation
from paraloom.models.embeddings.comparison import Compare, Embed
from paraloom.models.embeddings.datasets.similarity import LabelledPairs, read_sick
from paraloom.models.embeddings.encoders import embedding_matrices
from paraloom.models.embeddings.model import load_encoder, weights
from paraloom.models.embeddings.ragged_columns import Sentences
from paraloom.models.embeddings.training.initial_model import new_model
from paraloom.models.errors import UserError
from paraloom.papers import tasks
from paraloom.papers.heads import Distribution
from paraloom.papers.options import SimilarityOptions, SystemOptions
from paraloom.papers.tasks import similarity as module
from paraloom.papers.tasks import train
from paraloom.papers.tasks.similarity import SHAPE, LabelledExamples, LabelTrainer, trained_model
from paraloom.pipeline import cli
from tests.labelled import write_sick
from tests.models.embeddings.encoders.test_encoders import gradient_of
from tests.run_helpers import Capsys, Patch
from tests.small_encoder import small_encoder

SMALL = SystemOptions(dim=12, epochs=15, batch_size=10, learning_rate=0.02)


@pytest.fixture
def sick(tmp_path: Path) -> Path:
    return write_sick(tmp_path / "sick", train=150, trial=40)


def similarity(sick: Path, **section: Any) -> SystemOptions:
    similarity = SimilarityOptions(data=[str(sick)], **section)
    return SMALL.replace(task="similarity", similarity=similarity)


def test_the_kl_objective_trains_a_model_that_predicts_labels(tmp_path: Path, sick: Path) -> None:
    metrics = tasks.train(similarity(sick), tmp_path / "model", seed=1)
    trial = metrics["test"]["SICK trial"]
    assert metrics["pairs"] == 135 and metrics["development_pairs"] == 15
    assert trial["pairs"] == 40 and trial["pearson"] > 80 and trial["mse"] < 1.5
    model = load_encoder(tmp_path / "model")
    (data,) = (pairs for pairs in read_sick(sick) if pairs.name == "trial")
    predicted = model.similarity(data.first, data.second)
    assert predicted.min() >= 1 and predicted.max() <= 5
    assert np.mean((predicted - data.scores) ** 2) == pytest.approx(trial["mse"], abs=1e-6)
    assert model.embed(["a dog"]).shape == (1, 12)
    kept = json.loads((tmp_path / "model" / "metrics.json").read_text())
    scores = [line["development"] for line in kept["history"]]
    assert max(scores) == metrics["development"] == scores[metrics["best_epoch"] - 1]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "sick"]


@pytest.mark.parametrize("anchored", [True, False])
def test_a_step_is_the_objective_with_pull(sick: Path, anchored: bool, monkeypatch: Patch) -> None:
    """Loss + λ ‖θ − θ₀‖² of all weights but the words, + λ_w ‖W − W₀‖² of the words."""
    data = read_sick(sick)[0]
    options = SMALL.replace(model="lstm-avg", lambda_c=0.3, lambda_w=0.2, learning_rate=0.01)
    model = new_model(options, [data.first, data.second], 1)
    model.head = Distribution(dim=12, units=3, lowest=1, highest=5)
    trainer = LabelTrainer(model, data, data, 1, anchored=anchored)
    weights = list(trainer.weights.values())
    before = [weight.detach().clone() for weight in weights]
    for weight in weights:  # away from where they were
        weight.data.add_(0.05)

    batch = LabelledExamples.of(data, model).take(np.arange(30))
    (table,) = embedding_matrices(model.encoder).values()
    vectors = table.current().clone()

    def gradients_of(trainer: LabelTrainer) -> list[torch.Tensor]:
        found: list[torch.Tensor] = []
        with monkeypatch.context() as patch:
            patch.setattr(
                trainer.optimizer, "step", lambda: found.extend(map(gradient_of, weights))
            )
            trainer.train_on(batch)
        return found

    assert trainer.adam
    gradients = gradients_of(trainer)
    model.options = options.replace(lambda_c=0.0, lambda_w=0.0)
    plain = LabelTrainer(model, data, data, 1, anchored=anchored)
    (table,) = plain.matrices.values()
    table.weight = vectors
    table.prepare(0.01)
    expected = gradients_of(plain)
    encoder = len(list(model.encoder.parameters()))
    every = zip(gradients, expected, weights, before, strict=True)
    for i, (found, base, weight, old) in enumerate(every):
        start = old if anchored and i < encoder else torch.zeros_like(old)
        assert torch.allclose(found, base + 2 * 0.3 * (weight.detach() - start), atol=1e-5)


def label_trainer(sick: Path, **options: Any) -> LabelTrainer:
    data = read_sick(sick)[0]
    chosen = SMALL.replace(model="lstm-avg", **options)
    model = new_model(chosen, [data.first, data.second], 1)
    torch.manual_seed(0)
    model.head = Distribution(dim=12, units=3, lowest=1, highest=5)
    return LabelTrainer(model, data, data, 1)


def test_encoder_and_head_of_the_best_epoch_are_left(sick: Path, monkeypatch: Patch) -> None:
    trainer = label_trainer(sick, epochs=3)
    modules = trainer.encoder, trainer.label_head
    seen: list[list[torch.Tensor]] = []

    def present() -> list[torch.Tensor]:
        return [weight.clone() for module in modules for weight in weights(module).values()]

    def agreement(embed: Embed, data: LabelledPairs, compare: Compare) -> LabelCorrelation:
        seen.append(present())
        return LabelCorrelation(pearson=min(len(seen), 2), spearman=len(seen))

    monkeypatch.setattr(module, "agreement", agreement)
    trainer.fit()
    for number, kept in enumerate(seen):
        same = {torch.equal(*both) for both in zip(present(), kept, strict=True)}
        assert same == {number == 1}, number
    assert trainer.metrics()["best_epoch"] == trainer.metrics()["development"] == 2
    assert [line["epoch"] for line in trainer.progress.evaluations] == [1, 2, 3]


def test_every_step_has_noise_and_orders_of_its_own(sick: Path, monkeypatch: Patch) -> None:
    trainer = label_trainer(sick, dropout=0.5, scramble=1.0)
    (pool,) = trainer.source.epoch(0)
    batch = pool.take(np.arange(10))
    dropped: list[tuple[int, ...]] = []
    read: list[tuple[int, ...]] = []
    encode = trainer.encode
    trainer.encoder.train()

    def record(sentences: Sentences) -> torch.Tensor:
        assert trainer.encoder.training  # after an evaluation, too
        read.append(tuple(sentences["words"].ids.tolist()))
        dropped.append(tuple(torch.nn.functional.dropout(torch.ones(99)).tolist()))
        return encode(sentences)

    monkeypatch.setattr(trainer, "encode", record)
    with torch.random.fork_rng():
        for epoch, row in ((0, 0), (0, 10), (1, 0), (1, 10), (0, 0)):
            trainer.progress.epoch, trainer.progress.row = epoch, row
            trainer.train_on(batch)
            trainer.model.embed(["dog runs"])
    for found in (read, dropped):
        assert found[0] == found[-1] and len(set(found)) == 4
    rows = [np.sort(np.reshape(ids, (20, 4)), axis=1).tolist() for ids in read]
    assert rows == rows[:1] * 5  # both sides of each pair keep their words


def test_a_trained_model_to_start_from(tmp_path: Path, sick: Path) -> None:
    pairs = next(pairs for pairs in read_sick(sick) if pairs.name == "train")
    table = pa.table({"reference": pairs.first, "translation": pairs.second})
    pq.write_table(table, tmp_path / "a.parquet")
    encoder = SystemOptions(model="lstm", dim=10, hidden=6, epochs=1)
    train(encoder, tmp_path / "universal", shards=[str(tmp_path / "a.parquet")], seed=1)
    start = load_encoder(tmp_path / "universal")
    options = similarity(sick, start=str(tmp_path / "universal")).replace(dropout=0.5, epochs=3)
    encoder_of: Any = trained_model(options, str(tmp_path / "universal")).encoder
    assert encoder_of.input.dropout == 0.5

    def distance(pull: float) -> float:
        chosen = options.replace(lambda_c=pull, lambda_w=pull)
        tasks.train(chosen, tmp_path / "model", seed=1)
        model = load_encoder(tmp_path / "model")
        assert model.options.model == "lstm" and model.dim == 6
        return float(np.linalg.norm(model.embed(["dog runs"]) - start.embed(["dog runs"])))

    free, held = distance(0.0), distance(15.0)
    assert 0 < held < 0.3 * free

    with pytest.raises(UserError, match="has its own vectors; remove this key"):
        trained_model(options.replace(initial_vectors="x.txt"), str(tmp_path / "universal"))
    with pytest.raises(UserError, match=r"nothing/config\.json: cannot be read"):
        trained_model(options, str(tmp_path / "nothing"))


def test_a_trained_model_keeps_its_shape_and_takes_all_other_options(tmp_path: Path) -> None:
    shape: dict[str, Any] = {"model": "bilstm+bigran", "dim": 3, "hidden": 3, "cell": "peephole"}
    shape |= {"combine": "tanh", "mix": "add", "tags": True}
    assert shape.keys() == set(SHAPE)
    options = SystemOptions(**shape, dropout=0.5, margin=0.3)
    small_encoder("ab", **options.chosen()).save(tmp_path / "model")
    given = SystemOptions(dropout=0.125, word_dropout=0.25, margin=0.6, device="cpu")
    found: Any = trained_model(given, str(tmp_path / "model"))
    assert found.options == given.replace(**shape)
    noise = [(part.input.dropout, part.input.word_dropout) for part in found.encoder.parts]
    assert noise == [(0.125, 0.25)] * 2


@pytest.fixture
def config(tmp_path: Path) -> Path:
    sick = str(write_sick(tmp_path / "sick", train=60, trial=20))
    options = {"task": "similarity", "similarity": {"data": [sick]}, "dim": 8, "epochs": 2}
    values = {"run": str(tmp_path / "run"), "embeddings": options, "evaluate": {"sick": sick}}
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(values))
    return path


def run(config: Path, capsys: Capsys, *changes: str) -> tuple[int, str, str]:
    sets = [part for change in changes for part in ("--set", change)]
    code = cli.main(["papers", "train", "--config", str(config), *sets])
    shown = capsys.readouterr()
    return code, shown.out, shown.err


def made(config: Path) -> dict[str, str]:
    stages = json.loads((config.parent / "run" / "manifest.json").read_text())["stages"]
    return {name: account["key"] for name, account in stages.items()}


def test_it_needs_no_bitext_and_is_done_once(config: Path, capsys: Capsys, tmp_path: Path) -> None:
    code, out, _ = run(config, capsys)
    assert code == 0 and "SICK" in out and list(made(config)) == ["embeddings", "evaluate"]
    assert (tmp_path / "run" / "report" / "index.html").exists()
    first = made(config)
    weights = (tmp_path / "run" / "embeddings" / "model.safetensors").stat().st_mtime_ns
    assert run(config, capsys)[0] == 0
    now = (tmp_path / "run" / "embeddings" / "model.safetensors").stat().st_mtime_ns
    assert made(config) == first and now == weights

    # The same labels elsewhere are the same; another label is not.
    (tmp_path / "sick").rename(tmp_path / "moved")
    config.write_text(config.read_text().replace("/sick", "/moved"))
    assert run(config, capsys)[0] == 0 and made(config) == first
    path = tmp_path / "moved" / "SICK_train.txt"
    path.write_text(path.read_text().replace("\t5\tENTAILMENT", "\t4.5\tENTAILMENT"))
    assert run(config, capsys)[0] == 0
    assert made(config)["embeddings"] != first["embeddings"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("embeddings.similarity.data=[nothing]", "embeddings.similarity.data[0]: nothing does"),
        ("embeddings.task=guessing", "embeddings.task: must be 'paraphrases', 'similarity',"),
        ("embeddings.task=paraphrases", "input: is missing"),
        ("embeddings.task=malstm", "embeddings.malstm: is missing"),
    ],
)
def test_mistakes_are_one_line(config: Path, capsys: Capsys, change: str, message: str) -> None:
    code, _, error = run(config, capsys, change)
    assert code == 2 and message in error and error.count("\n") == 1


def test_other_commands_name_the_papers(config: Path, capsys: Capsys, tmp_path: Path) -> None:
    """In a process that does not know these systems: their tasks, encoders, cells and models."""
    assert run(config, capsys, "embeddings.model=gran")[0] == 0
    model = str(tmp_path / "run" / "embeddings")
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("a dog\ta cat\n")
    train = ["train-embeddings", "--pairs", str(pairs), "--out", str(tmp_path / "other")]
    commands = [
        ["train-embeddings", "--config", str(config)],
        [*train, "--set", "embeddings.model=gran"],
        [*train, "--set", "embeddings.model=gru", "--set", "embeddings.cell=cho"],
        ["similarity", "--model", model],
        ["papers", "similarity", "--model", model],
    ]
    code = (
        "import json, sys; from paraloom.pipeline.cli import main\n"
        "print([main(command) for command in json.loads(sys.argv[1])])"
    )
    program, pair = [sys.executable, "-c", code, json.dumps(commands)], "a dog runs\ta dog sleeps\n"
    done = subprocess.run(program, input=pair, capture_output=True, text=True, check=True)
    label, codes = done.stdout.splitlines()
    assert codes == "[2, 2, 2, 2, 0]" and 1 <= float(label) <= 5
    lines = [line for line in done.stderr.splitlines() if line.startswith("paraloom: ")]
    of_the_papers = "task: similarity is for `paraloom papers`"
    cell = "embeddings.cell: is for `paraloom papers`"
    whats = (of_the_papers, "`paraloom papers` has more", cell, of_the_papers)
    assert all(what in line for line, what in zip(lines, whats, strict=True)), lines
