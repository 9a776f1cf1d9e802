import json
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import ctranslate2
import pytest

from paraloom.models.errors import UserError
from paraloom.models.files import digest
from paraloom.models.nmt import convert
from paraloom.models.nmt.convert import convert_once
from paraloom.models.nmt.families.fairseq import FairseqModel


@pytest.fixture
def fresh(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model folder, and a user whose cache is empty."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return model


def test_converted_once_in_the_users_cache(fresh: Path, tmp_path: Path) -> None:
    before = sorted(fresh.rglob("*"))
    first = convert_once(FairseqModel(fresh))
    assert first.path.parent == tmp_path / "cache" / "paraloom" / "nmt"
    assert first.digest == digest(first.path, ignored=[convert._RECORD])
    assert (first.source_positions, first.target_positions) == (1024, 1024)
    made = (first.path / "model.bin").stat().st_mtime_ns
    second = convert_once(FairseqModel(fresh))
    assert second == first
    assert (second.path / "model.bin").stat().st_mtime_ns == made
    assert sorted(fresh.rglob("*")) == before


def test_what_a_model_folder_brings_along_is_not_used(
    fresh: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Conversions with other words, under every name that conversions have or had."""
    model = FairseqModel(fresh)
    ours = convert_once(model)
    name = ours.path.name
    for planted in (fresh / n for n in (f".ctranslate2-4-{model.digest[:16]}", name, f".{name}")):
        shutil.copytree(ours.path, planted)
        _swap_words(planted)
        files = {path.name: digest(path) for path in planted.iterdir()}
        del files[convert._RECORD]
        record = {"source_positions": 1024, "target_positions": 1024}
        digests = {"files": files, "digest": digest(planted, ignored=[convert._RECORD])}
        (planted / convert._RECORD).write_text(json.dumps(record | digests))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "another user"))
    found = convert_once(FairseqModel(fresh))
    assert found.path.is_relative_to(tmp_path / "another user")
    assert (found.digest, digest(found.path)) == (ours.digest, digest(ours.path))


def test_another_version_of_the_converter_converts_anew(
    fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = convert_once(FairseqModel(fresh))
    monkeypatch.setattr(ctranslate2, "__version__", "4.999.0")
    assert convert_once(FairseqModel(fresh)).path != first.path


def test_another_checkpoint_is_another_conversion(fresh: Path) -> None:
    first = convert_once(FairseqModel(fresh))
    weights = (first.path / "model.bin").read_bytes()
    from paraloom.models.nmt.checkpoint import read_state

    state = read_state(fresh / "checkpoint.pt")
    state["model"]["encoder.layers.0.fc1.bias"] += 1
    import torch

    torch.save(state, fresh / "checkpoint.pt")
    second = convert_once(FairseqModel(fresh))
    assert second.path != first.path
    assert (second.path / "model.bin").read_bytes() != weights


def test_a_failed_conversion_leaves_nothing(
    fresh: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: object, out: str, **_: object) -> None:
        (Path(out) / "model.bin").write_bytes(b"half")
        raise ValueError("Option --strange is\nnot supported")

    with monkeypatch.context() as patch:
        patch.setattr(ctranslate2.converters.FairseqConverter, "convert", fail)
        with pytest.raises(UserError, match="--strange is not supported"):
            convert_once(FairseqModel(fresh))
    assert not [path for path in (tmp_path / "cache/paraloom/nmt").iterdir() if path.is_dir()]
    assert convert_once(FairseqModel(fresh)).path.is_dir()


def test_an_unfinished_conversion_is_made_again(fresh: Path) -> None:
    place = convert_once(FairseqModel(fresh)).path
    (place / convert._RECORD).unlink()
    (place / "model.bin").write_bytes(b"half")
    again = convert_once(FairseqModel(fresh)).path
    assert again == place
    assert (again / "model.bin").stat().st_size > 1000


def test_a_cache_that_cannot_be_written_is_one_line(fresh: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("no folder")
    told = r"\.lock: cannot be written \(.*\); XDG_CACHE_HOME names another place for conversions$"
    with pytest.raises(UserError, match=told):
        convert_once(FairseqModel(fresh))


def test_workers_that_start_together_convert_once(
    fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []
    convert_really = FairseqModel.convert

    def slow(self: FairseqModel, place: Path) -> tuple[int, int]:
        calls.append(place)
        time.sleep(0.2)
        return convert_really(self, place)

    monkeypatch.setattr(FairseqModel, "convert", slow)
    workers = [threading.Thread(target=convert_once, args=(FairseqModel(fresh),)) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(calls) == 1


def test_a_cached_conversion_needs_neither_torch_nor_fairseq(fresh: Path) -> None:
    convert_once(FairseqModel(fresh))
    program = (
        "import sys; import paraloom.models.nmt;"
        "heavy = {'torch', 'fairseq', 'ctranslate2'};"
        "assert not heavy & set(sys.modules), 'the package';"
        f"translator = paraloom.models.nmt.Translator({str(fresh)!r}, threads=1);"
        "rows, _ = translator.translate(['Muž vidí dům.']);"
        "assert rows['translation'][0].is_valid;"
        "assert not {'torch', 'fairseq'} & set(sys.modules), 'the engine'"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def _swap_words(place: Path) -> None:
    path = place / "shared_vocabulary.json"
    words = json.loads(path.read_text())
    words[-1], words[-2] = words[-2], words[-1]
    path.write_text(json.dumps(words))


def _truncate(place: Path) -> None:
    weights = (place / "model.bin").read_bytes()
    (place / "model.bin").write_bytes(weights[: len(weights) // 2])


def _record_without_digests(place: Path) -> None:
    record = {"source_positions": 1024, "target_positions": 1024}
    (place / convert._RECORD).write_text(json.dumps(record))


HARM: dict[str, Callable[[Path], object]] = {
    "words swapped": _swap_words,
    "weights truncated": _truncate,
    "weights missing": lambda place: (place / "model.bin").unlink(),
    "a file added": lambda place: (place / "source_vocabulary.json").write_text("[]"),
    "record empty": lambda place: (place / convert._RECORD).write_text(""),
    "record is a list": lambda place: (place / convert._RECORD).write_text("[]"),
    "record nested": lambda place: (place / convert._RECORD).write_text("[" * 100_000),
    "record of an earlier version": _record_without_digests,
}


@pytest.mark.parametrize("harm", HARM.values(), ids=HARM)
def test_a_changed_conversion_is_made_again(
    toy_model: Path, fresh: Path, cache: Path, tmp_path: Path, harm: Callable[[Path], object]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(cache))
        original = convert_once(FairseqModel(toy_model)).path
    place = tmp_path / original.relative_to(cache.parent)
    shutil.copytree(original, place)
    written = digest(place)
    harm(place)
    assert convert_once(FairseqModel(fresh)).path == place
    assert digest(place) == written
    again = (place / "model.bin").stat().st_mtime_ns
    convert_once(FairseqModel(fresh))
    assert (place / "model.bin").stat().st_mtime_ns == again  # once
