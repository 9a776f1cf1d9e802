import json
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from shutil import copytree

import ctranslate2
import pytest
import torch

from paraloom.models.files import digest
from paraloom.models.nmt.convert import RECORD, Conversion, convert_once
from paraloom.models.nmt.families.fairseq import FairseqModel, read_state
from tests.run_helpers import Patch, refuses


@pytest.fixture
def fresh(model: Path, tmp_path: Path, monkeypatch: Patch) -> Path:
    """A model folder, and a user whose cache is empty."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return model


def converted(model: Path) -> Conversion:
    return FairseqModel(model).converted()


def test_converted_once_in_the_users_cache(fresh: Path, tmp_path: Path, monkeypatch: Patch) -> None:
    before = sorted(fresh.rglob("*"))
    first = converted(fresh)
    assert first.path.parent == tmp_path / "cache" / "paraloom" / "nmt"
    assert first.digest == digest(first.path, ignored=[RECORD])
    assert (first.source_positions, first.target_positions) == (1024, 1024)
    made = (first.path / "model.bin").stat().st_mtime_ns
    assert converted(fresh) == first
    assert (first.path / "model.bin").stat().st_mtime_ns == made
    assert sorted(fresh.rglob("*")) == before
    # Another version of the converter, and another checkpoint, are other conversions.
    with monkeypatch.context() as patch:
        patch.setattr(ctranslate2, "__version__", "4.999.0")
        assert converted(fresh).path != first.path
    state = read_state(fresh / "checkpoint.pt")
    state["model"]["encoder.layers.0.fc1.bias"] += 1
    torch.save(state, fresh / "checkpoint.pt")
    second = converted(fresh)
    assert second.path != first.path and second.digest != first.digest


def test_after_a_failure_nothing_is_left(fresh: Path, tmp_path: Path, monkeypatch: Patch) -> None:
    def fail(self: object, out: str, **_: object) -> None:
        (Path(out) / "model.bin").write_bytes(b"half")
        raise ValueError("Option --strange is\nnot supported")

    with monkeypatch.context() as patch:
        patch.setattr(ctranslate2.converters.FairseqConverter, "convert", fail)
        with refuses(r"CTranslate2 cannot convert it \(.* --strange is not supported"):
            converted(fresh)
    assert not [path for path in (tmp_path / "cache/paraloom/nmt").iterdir() if path.is_dir()]
    assert converted(fresh).path.is_dir()


def test_workers_that_start_together_convert_once(fresh: Path, monkeypatch: Patch) -> None:
    calls = []
    convert_really = FairseqModel.convert

    def slow(self: FairseqModel, place: Path) -> tuple[int, int]:
        calls.append(place)
        time.sleep(0.2)
        return convert_really(self, place)

    monkeypatch.setattr(FairseqModel, "convert", slow)
    with ThreadPoolExecutor(3) as pool:
        assert len({*pool.map(converted, [fresh] * 3)}) == len(calls) == 1


def test_a_cached_conversion_needs_neither_torch_nor_fairseq(fresh: Path) -> None:
    converted(fresh)
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


HARM: dict[str, Callable[[Path], object]] = {
    "words swapped": _swap_words,
    "weights missing": lambda place: (place / "model.bin").unlink(),
    "record empty": lambda place: (place / RECORD).write_text(""),
}


@pytest.mark.parametrize("harm", HARM.values(), ids=HARM)
def test_a_changed_conversion_is_made_again(
    toy_model: Path, fresh: Path, cache: Path, tmp_path: Path, harm: Callable[[Path], object]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(cache))
        original = converted(toy_model).path
    place = tmp_path / original.relative_to(cache.parent)
    copytree(original, place)
    written = digest(place)
    harm(place)
    assert converted(fresh).path == place
    assert digest(place) == written
    again = (place / "model.bin").stat().st_mtime_ns
    converted(fresh)
    assert (place / "model.bin").stat().st_mtime_ns == again  # once


@pytest.mark.parametrize("damaged", [None, "5", 0, True, 5.5, "[1]", "{}", "", "\0" * 90])
def test_a_damaged_record_is_not_believed(
    tmp_path: Path, monkeypatch: Patch, damaged: object
) -> None:
    """A value in place of the number of positions, or a text in place of all."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    made = []

    def convert(out: Path) -> tuple[int, int]:
        made.append((out / "model.bin").write_bytes(b"weights"))
        return 5, 6

    first = convert_once("model", convert)
    record = first.path / RECORD
    values = {**json.loads(record.read_text()), "source_positions": damaged}
    text = isinstance(damaged, str) and damaged != "5"
    record.write_text(str(damaged) if text else json.dumps(values))
    assert [convert_once("model", convert) for _ in range(2)] == [first, first]
    assert len(made) == 2
