import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import Mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from paraloom.models.errors import UserError
from paraloom.models.files import digest
from paraloom.models.nmt import (
    NmtOptions,
    NmtTrainingOptions,
    Translator,
    fairseq_run,
    train,
    training_data,
)
from paraloom.models.nmt.families.fairseq import FairseqModel
from paraloom.models.nmt.train import train_nmt
from paraloom.models.nmt.training_data import (
    HeldOut,
    hold_out,
    train_subwords,
    write_dictionary,
    write_pieces,
    write_text,
)
from paraloom.models.progress import Meter
from paraloom.models.tracking import Board
from tests.models.test_tracking import events
from tests.run_helpers import Capsys, Patch
from tests.small_model import SEED

from .conftest import TINY, toy_pairs, write_pairs


def test_the_result_is_a_model_folder_that_translates(toy_model: Path) -> None:
    """And a report that says how the model was chosen."""
    names = {path.name for path in toy_model.iterdir()}
    files = {"checkpoint.pt", "dict.cs.txt", "dict.en.txt", "sentencepiece.model"}
    assert names == {*files, "training.json"}
    sources, references = toy_pairs()
    rows, _ = Translator(toy_model, threads=1).translate(sources)
    assert rows["reason"].null_count == len(sources)
    right = sum(map(str.__eq__, rows["translation"].to_pylist(), references))
    assert right > len(sources) * 0.8

    report = json.loads((toy_model / "training.json").read_text())
    tried = report["bleu_of_candidates"]
    assert list(tried) == ["update 40", "update 80", "update 120", "average of the last 3"]
    assert tried[report["chosen"]] == max(tried.values())
    assert report["bleu"] > 50
    training = len(sources) - TINY.held_out
    counts = {"training": training, "held_out": 24, "choice": 12, "bleu": 12}
    assert report["pairs"] == counts
    assert report["seed"] == SEED and NmtTrainingOptions.of(report["options"]) == TINY
    assert not list(toy_model.parent.glob(".toy.training*"))
    loss = events(toy_model.parent / "logs" / "tensorboard" / toy_model.name)["loss"]
    assert loss[-1][0] == TINY.updates and loss[-1][1] < loss[0][1]


def test_the_commands_have_the_options(tmp_path: Path, monkeypatch: Patch) -> None:
    given: list[Any] = []
    monkeypatch.setattr(train, "_run_commands", lambda *of: given.append(of))
    options = NmtTrainingOptions(
        layers=5, decoder_layers=1, dim=60, heads=3, ffn=70, dropout=0.3, label_smoothing=0.2,
        learning_rate=0.5, warmup=11, updates=100, batch_tokens=999, checkpoints=7,
    )  # fmt: skip
    board = Board(tmp_path / "model")
    train._run_fairseq(tmp_path, options, ("de", "fr"), 9, 4, board)
    assert given == [(tmp_path, 4, 100, board)]
    preprocess, of_training = json.loads((tmp_path / "commands.json").read_text())
    languages = {"--source-lang=de", "--target-lang=fr"}
    places = ("--trainpref= data/train", "--srcdict= data/dict.de.txt", "--destdir= binary")
    files = {place.replace(" ", f"{tmp_path}/") for place in places}
    assert "--workers=4" in preprocess
    assert preprocess[0] == "preprocess" and files | languages <= set(preprocess)
    assert "--joined-dictionary" in preprocess and "--share-all-embeddings" in of_training
    assert of_training[:2] == ["train", f"{tmp_path}/binary"] and languages <= set(of_training)
    assert {
        *("--label-smoothing=0.2", "--dropout=0.3", "--lr=0.5", "--warmup-updates=11"),
        *("--max-update=100", "--max-tokens=999", "--seed=9", "--save-interval-updates=15"),
        *("--encoder-layers=5", "--decoder-layers=1", f"--save-dir={tmp_path}/checkpoints"),
        *(f"--{side}-{key}" for side in ("encoder", "decoder")
          for key in ("embed-dim=60", "attention-heads=3", "ffn-embed-dim=70", "normalize-before")),
    } <= set(of_training)  # fmt: skip


def test_of_equal_candidates_the_later_is_the_model(
    toy_corpus: Path, tmp_path: Path, monkeypatch: Patch, capsys: Capsys
) -> None:
    """One half of the held-out pairs chooses it, greedily; its BLEU is that on the other half."""
    scores = {"update 40": 30.0, "update 80": 50.0, "update 120": 50.0, "average": 20.0}
    measured: list[tuple[Any, ...]] = []

    def assemble(folder: Path, data: Path, name: str) -> None:
        folder.mkdir(exist_ok=True)
        (folder / "name").write_text(name)

    def bleu(folder: Path, held_out: HeldOut, part: slice, how: NmtOptions, threads: int) -> float:
        name = (folder / "name").read_text()
        measured.append((name, len(held_out.sources[part]), part.start, how.beam, threads))
        return scores[name] if part.start is None else 7.0

    none = Mock(**{"converted.return_value.path": tmp_path / "none"})
    changes: dict[str, Any] = {"_candidates": lambda *_: {name: name for name in scores}}
    changes |= {"_run_fairseq": lambda *_: None}
    changes |= {"_assemble": assemble, "_bleu": bleu, "fairseq.FairseqModel": lambda _: none}
    for name, instead in changes.items():
        monkeypatch.setattr(f"paraloom.models.nmt.train.{name}", instead)
    (tmp_path / ".model.training" / "checkpoints").mkdir(parents=True)  # of a killed training
    report = train_nmt([toy_corpus], tmp_path / "model", TINY.replace(held_out=25), threads=1)
    assert measured == [
        *((name, 12, None, 1, 1) for name in scores),
        ("update 120", 13, 12, NmtOptions().beam, 1),
    ]
    assert (report["chosen"], report["bleu"]) == ("update 120", 7.0)
    assert report["bleu_of_candidates"] == scores
    assert report["gained_by_average"] == -30.0
    said = "-30.0 BLEU against the best checkpoint, on the other 12 held-out pairs"
    assert said in capsys.readouterr().out
    counts = {"training": len(toy_pairs()[0]) - 25, "held_out": 25, "choice": 12, "bleu": 13}
    assert report["pairs"] == counts
    assert (tmp_path / "model" / "name").read_text() == "update 120"
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_overlong_pairs_are_left_out(tmp_path: Path, monkeypatch: Patch) -> None:
    class Letters:
        """In place of SentencePiece."""

        def encode(self, sides: list[str], out_type: type) -> list[list[str]]:
            return [list(side) for side in sides]

    lengths = [(1, 2), (0, 1), (1, 0), (4, 4), (5, 1), (1, 5), (3, 4)]
    texts, out = ((tmp_path / f"{kind}0", tmp_path / f"{kind}1") for kind in ("text", "out"))
    for side, path in enumerate(texts):
        path.write_text("".join("ab"[side] * of[side] + "\n" for of in lengths))
    letters: Any = Letters()
    for longest, bound in ((5, 200), (200, 5)):
        monkeypatch.setattr(training_data, "_LONGEST", bound)
        assert write_pieces(letters, texts, out, longest) == 3
        assert out[0].read_text() == "a\na a a a\na a a\n"
        assert out[1].read_text() == "b b\nb b b b\nb b b b\n"
    with pytest.raises(UserError, match="no pair has fewer than 2 subwords on each side"):
        write_pieces(letters, texts, out, 2)


def test_candidates_hold_nothing_of_the_machine(tmp_path: Path) -> None:
    """Also the average: which of them is chosen hangs on the training."""
    for updates in (1, 2):
        settings = argparse.Namespace(arch="transformer", data="/here", save_dir="/here/too")
        state = {
            "args": None,
            "cfg": {"model": settings},
            "model": {"weight": torch.full((2,), float(updates))},
            "extra_state": {"train_wall": 1.5, "path": "/here"},
            "last_optimizer_state": {"state": torch.zeros(9)},
        }
        torch.save(state, tmp_path / f"update_1_{updates}.pt")
    found = train._candidates(tmp_path, 3)
    assert list(found) == ["update 1", "update 2", "average of the last 2"]
    weights = [of.pop("model")["weight"].tolist() for of in found.values()]
    assert weights == [[1, 1], [2, 2], [1.5, 1.5]]
    assert list(train._candidates(tmp_path, 1)) == ["update 1", "update 2"]
    assert "here" not in str(found)
    assert found["average of the last 2"] == found["update 2"]


def test_a_killed_training_ends_the_same(
    toy_corpus: Path, toy_model: Path, tmp_path: Path, monkeypatch: Patch
) -> None:
    def kill(self: Meter, done: float, **_: Any) -> None:
        if done >= 50:  # the checkpoint of update 40 is there
            raise KeyboardInterrupt

    folder = tmp_path / "again"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with monkeypatch.context() as patch:
        patch.setattr(Meter, "set", kill)
        with pytest.raises(KeyboardInterrupt):
            train_nmt([toy_corpus], folder, TINY, seed=SEED, threads=1)
    assert not folder.exists()
    assert (tmp_path / ".again.training").is_dir()  # what it left does not count
    train_nmt([toy_corpus], folder, TINY, seed=SEED, threads=1)
    assert digest(folder / "checkpoint.pt") == digest(toy_model / "checkpoint.pt")
    (converted,) = (tmp_path / "cache" / "paraloom" / "nmt").glob("ctranslate2-*")
    assert converted.name.endswith(FairseqModel(folder).digest)  # not those of other checkpoints


def test_when_fairseq_fails_its_log_is_named(
    toy_corpus: Path, tmp_path: Path, monkeypatch: Patch
) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text("print('begin'); raise MemoryError('too small a machine')")
    monkeypatch.setattr(fairseq_run, "__file__", str(broken))
    with pytest.raises(UserError, match=r"fairseq\.log: fairseq failed .*too small a m") as error:
        train_nmt([toy_corpus], tmp_path / "model", TINY, threads=1)
    log = Path(str(error.value).partition(": ")[0])
    assert "begin" in log.read_text()
    assert not (tmp_path / "model").exists()


def test_the_trainer_ends_with_its_parent(tmp_path: Path) -> None:
    """And what it forks. A module stands in for a fairseq command that never ends."""
    (tmp_path / "fairseq_cli").mkdir()
    (tmp_path / "fairseq_cli" / "__init__.py").touch()
    (tmp_path / "fairseq_cli" / "endless.py").write_text(
        "import os, time\ndef cli_main():\n"
        "    print('runs' if os.fork() else 'forked', flush=True)\n    time.sleep(600)\n"
    )
    (tmp_path / "commands.json").write_text('[["endless"]]')
    process = subprocess.Popen(
        [sys.executable, "-P", str(fairseq_run.__file__), str(tmp_path / "commands.json")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={"PYTHONPATH": str(tmp_path)},
    )
    assert process.stdin is not None and process.stdout is not None
    assert {process.stdout.readline(), process.stdout.readline()} == {b"runs\n", b"forked\n"}
    process.stdin.close()
    assert process.stdout.read() == b""  # waits for both
    assert process.wait(timeout=120) == 1
    process.stdout.close()


@pytest.mark.parametrize("gpus", [0, 1, 8])
def test_one_gpu_trains_in_mixed_precision(
    tmp_path: Path, monkeypatch: Patch, capsys: Capsys, gpus: int
) -> None:
    given: list[list[str]] = []
    for name in ("preprocess", "train"):
        stub: Any = ModuleType(f"fairseq_cli.{name}")
        stub.cli_main = lambda: given.append(list(sys.argv))
        monkeypatch.setitem(sys.modules, stub.__name__, stub)
    monkeypatch.setattr(fairseq_run, "_end_with_parent", lambda: None)
    monkeypatch.setattr(os, "register_at_fork", lambda **_: None)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpus > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    monkeypatch.setattr(torch.serialization, "add_safe_globals", lambda _: None)
    commands = tmp_path / "commands.json"
    commands.write_text('[["preprocess", "--a"], ["train", "--num-workers=0"]]')
    monkeypatch.setattr(sys, "argv", ["fairseq_run", str(commands)])
    fairseq_run.main()
    more = ["--fp16", "--num-workers=2", "--distributed-world-size=1"] if gpus else ["--cpu"]
    trained = ["fairseq-train", "--num-workers=0", *more]
    assert given == [["fairseq-preprocess", "--a"], trained]
    line = f"{fairseq_run.TO_USER}training on one of 8 GPUs\n" if gpus > 1 else ""
    assert capsys.readouterr().out == line


@pytest.mark.parametrize(
    ("lengths", "max_tokens", "multiple", "sizes"),
    # What fairseq 0.12.3.1's compiled `batch_by_size_vec` gave.
    [
        ([1, 2, 3, 3, 3, *[4] * 4, 5, 6, 7, *[8] * 4, *[9] * 4], 24, 8, [6, 4, 3, 3, 2]),
        ([*[1] * 4, 2, 2, 3, 3, 3, 5, 5, 6, *[7] * 4, 8, 8, 9], 30, 4, [8, 4, 4]),
        ([8, 4, 5, 7, 5, 7, 9, 7, 6, 9, 7, 4], 12, 1, [1, 2, *[1] * 9]),
    ],
)
def test_batches_are_fairseqs(
    lengths: list[int], max_tokens: int, multiple: int, sizes: list[int]
) -> None:
    given = {"max_tokens": max_tokens, "required_batch_size_multiple": multiple}
    batches = fairseq_run._batch_by_size(range(len(lengths)), lengths.__getitem__, **given)
    assert [len(batch) for batch in batches] == sizes


sentences = st.text("abc XY", min_size=1, max_size=4)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pairs=st.lists(st.tuples(sentences, sentences), min_size=30, max_size=60))
def test_nothing_held_out_is_trained_on(tmp_path: Path, pairs: list[tuple[str, str]]) -> None:
    def normal(text: str) -> str:
        return " ".join(text.lower().split())

    path = write_pairs(tmp_path / "pairs.parquet", *zip(*pairs, strict=True))
    held_out = hold_out([path], 5)
    assert 0 < len(held_out.sources) == len(held_out.references) <= min(5, len(pairs) // 10)
    assert set(zip(held_out.sources, held_out.references, strict=True)) <= set(pairs)
    texts = (tmp_path / "source", tmp_path / "reference")
    hidden = {normal(text) for text in held_out.sources}, {normal(t) for t in held_out.references}
    sides = (0, 1)
    kept = [pair for pair in pairs if not any(normal(pair[i]) in hidden[i] for i in sides)]
    if not kept:
        with pytest.raises(UserError, match="no pairs are left to train on"):
            write_text([path], held_out, *texts)
        return
    assert write_text([path], held_out, *texts) == len(kept)
    lines = [[normal(line) for line in text.read_text().split("\n")[:-1]] for text in texts]
    assert lines == [[normal(pair[side]) for pair in kept] for side in sides]


def test_no_sentence_is_held_out_twice(tmp_path: Path) -> None:
    """Others take the place of those that repeat one."""
    sources = [f"zdroj {row}" for row in range(60)]
    references = [f"{'Ss'[row % 2]}ource {row % 20 // 2}" for row in range(60)]
    held_out = hold_out([write_pairs(tmp_path / "pairs.parquet", sources, references)], 6)
    assert len({text.lower() for text in held_out.references}) == len(held_out.sources) == 6


def test_the_held_out_part_does_not_depend_on_order_or_files(tmp_path: Path) -> None:
    whole = pq.read_table(write_pairs(tmp_path / "whole.parquet", *toy_pairs()))
    order = pa.array([(row * 7) % whole.num_rows for row in range(whole.num_rows)])
    for name, part in (("a", whole.take(order[:100])), ("b", whole.take(order[100:]))):
        pq.write_table(part, tmp_path / f"{name}.parquet")
    split = hold_out([tmp_path / "a.parquet", tmp_path / "b.parquet"], 20)
    assert split == hold_out([tmp_path / "whole.parquet"], 20)
    assert len(split.sources) == 20


@pytest.mark.parametrize("most", [100, 1_000_000])
def test_the_subwords_depend_on_the_texts_alone(
    tmp_path: Path, monkeypatch: Patch, most: int
) -> None:
    """Not on chance, although only some lines of large texts are read, and not on the folder."""
    monkeypatch.setattr(training_data, "_SENTENCES_FOR_PIECES", most)
    models = []
    for name in ("one", "other"):
        (folder := tmp_path / name).mkdir()
        for side, lines in zip(("source", "reference"), toy_pairs(), strict=True):
            (folder / side).write_text("\n".join(lines))
        texts = [folder / "source", folder / "reference"]
        train_subwords(texts, folder, NmtTrainingOptions(pieces=90))
        models.append((folder / "sentencepiece.model").read_bytes())
    assert models[0] == models[1]


def test_fewer_pieces_where_the_text_has_fewer(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("\n".join(toy_pairs()[0]))
    subwords = train_subwords([text], tmp_path, NmtTrainingOptions(pieces=5000))
    assert (tmp_path / "sentencepiece.model").is_file()
    write_dictionary(subwords, tmp_path / "dict.txt")
    pieces = [subwords.id_to_piece(row) for row in range(subwords.get_piece_size())]
    assert pieces[:3] == ["<unk>", "<s>", "</s>"]  # fairseq adds its own
    assert (tmp_path / "dict.txt").read_text("utf-8") == "".join(f"{p} 1\n" for p in pieces[3:])
