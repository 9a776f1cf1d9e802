"""Training that is killed and started again."""

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from paraloom.models.embeddings.model import load_encoder
from paraloom.models.embeddings.options import EmbeddingOptions, PairsOptions
from paraloom.models.embeddings.tasks import RunInputs, train
from paraloom.models.embeddings.tasks.paraphrases import _fingerprint
from paraloom.models.embeddings.training import data, trainer
from paraloom.models.embeddings.training.checkpoint import TrainingFolder, remove_checkpoints
from paraloom.models.embeddings.training.pair_trainer import PairTrainer
from paraloom.models.errors import UserError
from paraloom.models.text.vectors import UNKNOWN, write_vectors
from tests.run_helpers import ROOT, Capsys, Patch

OPTIONS = EmbeddingOptions(
    model="word-avg+bilstm-avg", dim=8, epochs=3, batch_size=8, mega_batch=3, learning_rate=0.01,
    clip=0.5, dropout=0.2, scramble=0.5, checkpoint_every=4, device="cpu",
)  # fmt: skip
CHILD = """
import os, signal, sys
from pathlib import Path
import torch
torch.set_num_threads(1)
from tests.models.embeddings.training.test_checkpoint import OPTIONS, run
from paraloom.models.embeddings.training.pair_trainer import PairTrainer
step = PairTrainer.step
def killed(self, quadruplets):
    if self.progress.step == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
    step(self, quadruplets)
PairTrainer.step = killed
run(Path(sys.argv[1]))
"""


def run(folder: Path, options: EmbeddingOptions = OPTIONS, name: str = "model") -> dict[str, Any]:
    data.POOL = 30
    data.PairSource.ahead = False
    trainer.LOG_EVERY = 5
    shards = [str(path) for path in sorted(folder.glob("*.parquet"))]
    metrics = train(options, folder / name, shards=shards, seed=5, threads=1)
    remove_checkpoints(folder / name)
    return metrics


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: Patch) -> Path:
    """80 pairs in several pools."""
    monkeypatch.setattr(data, "POOL", 30)
    monkeypatch.setattr(trainer, "LOG_EVERY", 5)
    monkeypatch.setattr(data.PairSource, "ahead", False)  # which `run` sets, here and in a child
    random = np.random.default_rng(0)
    words = [f"w{i}" for i in range(30)]
    left = [" ".join(random.choice(words, random.integers(2, 8))) for _ in range(80)]
    right = [" ".join([*random.permutation(text.split())[:5], "x"]) for text in left]
    table = pa.table({"reference": left, "translation": right})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=13)
    return tmp_path


def contents(folder: Path) -> tuple[dict[str, Tensor], dict[str, Any], list[dict[str, Any]]]:
    metrics = json.loads((folder / "metrics.json").read_text())
    log = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    for line in (metrics, *log):
        line.pop("seconds", None)
        line.pop("pairs_per_second")
    return load_file(folder / "model.safetensors"), metrics, log


def same(a: Path, b: Path) -> bool:
    (weights, *rest), (others, *other_rest) = contents(a), contents(b)
    assert rest == other_rest
    assert weights.keys() == others.keys()
    return all(weights[name].equal(others[name]) for name in weights)


@pytest.mark.parametrize("end", [b'{"st', b"\0" * 9, b"\xff\n", b'{"step": 2}', b"7\n", b"[1]"])
def test_lines_of_metrics_that_a_crash_damaged(tmp_path: Path, end: bytes) -> None:
    work = TrainingFolder(tmp_path / "training", {})
    log = work.folder / "metrics.jsonl"
    log.write_bytes(b'{"step": 1, "loss": NaN}\n' + end)
    work.continue_log(2, tmp_path / "model")
    work.log({"step": 3})
    lines = [json.loads(line) for line in log.read_bytes().splitlines()]
    whole = [2] * (end == b'{"step": 2}')
    assert [line["step"] for line in lines] == [1, *whole, 3]


def test_killed_and_started_again_it_ends_with_the_same_weights(folder: Path) -> None:
    command = [sys.executable, "-c", CHILD, str(folder), "13"]
    killed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert list((folder / "model.training").glob("step-*")) and not (folder / "model").exists()
    run(folder)
    run(folder, name="whole")  # without a break
    assert same(folder / "model", folder / "whole")
    assert not (folder / "model.training").exists()


class Interruption(BaseException):
    pass


@pytest.mark.parametrize("gone", ["tensors.safetensors", "metrics.jsonl"])
def test_killed_while_its_folder_is_removed(folder: Path, monkeypatch: Patch, gone: str) -> None:
    def killed(work: Path, **options: Any) -> None:  # rmtree deletes files in any order
        if work.name == "model.training":
            next(work.rglob(gone)).unlink()
            raise Interruption
        rmtree(work, **options)

    rmtree = shutil.rmtree
    with monkeypatch.context() as patch, pytest.raises(Interruption):
        patch.setattr(shutil, "rmtree", killed)
        run(folder)
    run(folder)
    run(folder, name="whole")
    assert same(folder / "model", folder / "whole")


@contextmanager
def interrupted(monkeypatch: Patch, at: int) -> Iterator[None]:
    """A training ends before this step."""
    step = PairTrainer.step

    def until(self: PairTrainer, quadruplets: Any) -> None:
        if self.progress.step == at:
            raise Interruption
        step(self, quadruplets)

    with monkeypatch.context() as patch, pytest.raises(Interruption):
        patch.setattr(PairTrainer, "step", until)
        yield


def test_at_any_step(folder: Path, monkeypatch: Patch) -> None:
    assert run(folder, name="whole")["steps"] > 30
    for at in (3, 10, 21, 28):  # at every distance from the last checkpoint
        with interrupted(monkeypatch, at):
            run(folder)
        run(folder)
        assert same(folder / "model", folder / "whole"), at


def test_other_content_in_a_file_of_the_same_name_starts_afresh(
    folder: Path, monkeypatch: Patch, capsys: Capsys
) -> None:
    monkeypatch.setattr(PairTrainer, "fit", Mock(side_effect=Interruption))
    options = OPTIONS.replace(pairs=[PairsOptions(paths=[str(folder / "pairs")])])
    afresh = []
    for number in (1, 1, 2):
        (folder / "pairs").write_text(f"w1\tw{number}\n")
        with pytest.raises(Interruption):
            run(folder, options)
        afresh.append("training starts again" in capsys.readouterr().err)
    assert afresh == [False, False, True]
    copy = pq.read_table(folder / "model.training" / "pairs" / "0.parquet")
    assert copy.column("second").to_pylist() == ["w2"]


def test_what_a_training_is_known_by(folder: Path) -> None:
    """Of everything that its weights depend on, and of nothing else."""
    files = [folder / name for name in ("a.parquet", "b.parquet", "pairs.tsv", "dev.tsv", "v.txt")]
    shutil.copyfile(files[0], files[1])
    for path in files[2:]:
        path.write_text("a\tb\n")
    shards, (pairs, labelled, vectors) = list(map(str, files[:2])), map(str, files[2:])
    of_pairs = OPTIONS.replace(pairs=[PairsOptions(paths=[pairs])], development=labelled)

    def key(options: EmbeddingOptions = OPTIONS, **changes: Any) -> str:
        given: dict[str, Any] = {"seed": 1, "language": "en", "own_vectors": False}
        given |= {"shards": shards, **changes}
        run = RunInputs(given.pop("shards"), vectors)
        return json.dumps(_fingerprint(run, options, **given))

    def rewrite(path: Path) -> None:  # so that size and name stay
        path.write_bytes(path.read_bytes()[::-1])

    same = OPTIONS.replace(checkpoint_every=9, device="auto")
    assert key() == key(same)
    keys = [key(), key(seed=2), key(language="fr"), key(OPTIONS.replace(dropout=0.3))]
    keys += [key(shards=shards[:1]), key(shards=shards[::-1]), key(own_vectors=True)]
    rewrite(files[1])
    keys += [key(), key(own_vectors=True)]
    rewrite(files[4])
    assert key() == keys[-2]  # the vectors are not its own
    keys += [key(own_vectors=True), key(of_pairs)]
    for path in files[2:4]:
        rewrite(path)
        keys.append(key(of_pairs))
    assert len(set(keys)) == len(keys)


def test_of_two_checkpoints_the_later_is_taken(tmp_path: Path) -> None:
    """A process that is killed after it wrote one has not removed the one before."""
    work, earlier = TrainingFolder(tmp_path / "work", {}), TrainingFolder(tmp_path / "earlier", {})
    earlier.save(900, {"step": 900}, {"w": torch.zeros(1)})
    work.save(1000, {"step": 1000}, {"w": torch.ones(1)})
    (earlier.folder / "step-900").rename(work.folder / "step-900")
    assert work.last() == ({"step": 1000}, {"w": torch.ones(1)})


def test_a_damaged_checkpoint_is_named_and_stays(folder: Path, monkeypatch: Patch) -> None:
    with interrupted(monkeypatch, 10):
        run(folder)
    (path,) = (folder / "model.training").glob("step-*/tensors.safetensors")
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(SafetensorError) as error:
        run(folder)
    assert error.value.__notes__ == [f"{folder / 'model.training'}: remove it to start again"]
    assert path.exists() and not (folder / "model").exists()


SMALL = EmbeddingOptions(dim=16, epochs=2, batch_size=10, mega_batch=3, learning_rate=0.01)


@pytest.fixture
def shards(tmp_path: Path) -> list[str]:
    """Two shards: 90 pairs that differ, 3 that are the same once tokenised, 2 empty ones."""
    random = np.random.default_rng(0)
    words = [f"w{i}" for i in range(40)]
    left = [" ".join(random.choice(words, 6)) for _ in range(90)]
    right = [" ".join(random.permutation(text.split()[:5])) for text in left]
    left += ["A dog.", "a  Dog .", "same", "", "text"]
    right += ["a dog .", "A dog.", "same", "text", ""]
    paths = []
    for i, rows in enumerate([slice(0, 40), slice(40, 95)]):
        table = pa.table({"id": left[rows], "reference": left[rows], "translation": right[rows]})
        path = tmp_path / f"part-{i}.parquet"
        pq.write_table(table, path, row_group_size=17, write_page_checksum=True)
        paths.append(str(path))
    return paths


def test_a_model_is_trained_written_and_loaded(tmp_path: Path, shards: list[str]) -> None:
    metrics = train(SMALL, tmp_path / "model", shards=shards, seed=1)
    assert (metrics["pairs"], metrics["identical"], metrics["empty"]) == (90, 3, 2)
    assert metrics["steps"] == 18
    assert json.loads((tmp_path / "model" / "metrics.json").read_text()) == metrics
    encoder = load_encoder(tmp_path / "model")
    vectors = encoder.embed(["w1 w2", "w2 W1", "", "nothing known"])
    assert vectors.shape == (4, 16) and vectors.dtype == np.float32
    assert np.allclose(vectors[0], vectors[1], atol=1e-6) and np.abs(vectors[0]).sum() > 0
    assert encoder.similarity(["w1", "", "w3"], ["w1", "w1", "w3 w3"]) == pytest.approx([1, 0, 1])
    assert np.allclose(encoder.embed(["w1 w2", "w5"], batch_size=1), encoder.embed(["w1 w2", "w5"]))


def test_nothing_to_learn_from(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"reference": ["x", ""], "translation": ["X", "y"]}), path)
    with pytest.raises(UserError, match=r"a.parquet: nothing to train on: 1 pairs have eq"):
        train(SMALL, tmp_path / "model", shards=[str(path)], seed=1)
    pq.write_table(pa.table({"reference": ["x"] * 3, "translation": ["y"] * 3}), path)
    with pytest.raises(UserError, match="3 have no negative"):
        train(SMALL, tmp_path / "model", shards=[str(path)], seed=1)
    pq.write_table(pa.table({"reference": pa.array([], pa.string()), "translation": []}), path)
    with pytest.raises(UserError, match=r"a\.parquet: no rows to train on"):
        train(SMALL, tmp_path / "model", shards=[str(path)], seed=1)
    with pytest.raises(UserError, match="list of Parquet files is empty"):
        train(SMALL, tmp_path / "model", shards=[], seed=1)
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize("mega_batch", [40, 1])
def test_a_loss_that_is_no_number_leaves_the_old_model(
    tmp_path: Path, shards: list[str], mega_batch: int
) -> None:
    train(SMALL, tmp_path / "model", shards=shards, seed=1)
    before = load_encoder(tmp_path / "model").embed(["w1 w2"])
    wild = SMALL.replace(mega_batch=mega_batch, learning_rate=1e38)
    with pytest.raises(UserError, match=r"the loss is (nan|inf) at step \d+: lower learning_rate"):
        train(wild, tmp_path / "model", shards=shards, seed=1)
    assert np.array_equal(load_encoder(tmp_path / "model").embed(["w1 w2"]), before)


def test_a_training_starts_from_given_vectors(tmp_path: Path, shards: list[str]) -> None:
    matrix = np.random.default_rng(0).standard_normal((3, 16)).astype(np.float32)
    write_vectors(tmp_path / "vectors.txt", ["w1", "elsewhere", UNKNOWN], matrix)
    # So small a step leaves everything as it was.
    options = SMALL.replace(initial_vectors=str(tmp_path / "vectors.txt"), learning_rate=1e-9)
    train(options, tmp_path / "model", shards=shards, seed=1)
    found = load_encoder(tmp_path / "model").embed(["w1", "elsewhere", "nowhere"])
    assert found == pytest.approx(matrix, abs=1e-6)


def test_cuda_where_there_is_none(tmp_path: Path, shards: list[str], monkeypatch: Patch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(UserError, match=r"embeddings\.device is cuda, but torch finds no GPU"):
        train(SMALL.replace(device="cuda"), tmp_path / "m", shards=shards, seed=1)
