"""Which devices CTranslate2 is asked for: all GPUs of a machine, and never a list of CPUs."""

from pathlib import Path
from typing import Any

import ctranslate2
import pytest

from models.nmt import NmtOptions
from models.nmt.engines import ctranslate2 as ctranslate2_engine
from models.nmt.engines.base import Sampling
from models.nmt.engines.ctranslate2 import CTranslate2Engine
from models.nmt.families.registry import open_model


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The arguments with which translators are loaded; none is."""
    found: list[dict[str, Any]] = []
    monkeypatch.setattr(ctranslate2, "Translator", lambda path, **options: found.append(options))
    return found


def load(model: Path, monkeypatch: pytest.MonkeyPatch, gpus: int, **options: Any) -> Any:
    monkeypatch.setattr(ctranslate2, "get_cuda_device_count", lambda: gpus)
    monkeypatch.setattr(ctranslate2_engine, "_load_cublas", lambda: gpus > 0)
    return CTranslate2Engine(open_model(model), NmtOptions(**options), threads=3)


@pytest.mark.parametrize("gpus", [1, 4])
def test_one_process_serves_all_gpus(
    nmt_model: Path, loaded: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch, gpus: int
) -> None:
    engine = load(nmt_model, monkeypatch, gpus, compute_type="int8")
    (options,) = loaded
    assert (options["device"], options["device_index"]) == ("cuda", list(range(gpus)))
    assert (options["inter_threads"], options["compute_type"]) == (1, "int8_float16")
    assert (engine.device, engine.parallel) == ("cuda", gpus)
    engine.sampler(Sampling())  # with one GPU, because the order of batches decides what is drawn
    assert loaded[1]["device_index"] == 0


def test_samples_are_drawn_by_one_thread(
    nmt_model: Path, loaded: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With several, the last bits of scores depend on their number, but in large models only."""
    load(nmt_model, monkeypatch, gpus=0).sampler(Sampling())
    assert (loaded[1]["inter_threads"], loaded[1]["intra_threads"]) == (1, 1)


@pytest.mark.parametrize(("gpus", "device"), [(0, "auto"), (4, "cpu")])
def test_a_cpu_gets_no_list(
    nmt_model: Path,
    loaded: list[dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
    gpus: int,
    device: str,
) -> None:
    engine = load(nmt_model, monkeypatch, gpus, device=device)
    (options,) = loaded
    assert (options["device"], options["device_index"]) == ("cpu", 0)
    assert (options["inter_threads"], options["intra_threads"]) == (3, 1)
    assert (engine.device, engine.parallel) == ("cpu", 3)


def test_the_real_library_refuses_a_list_on_a_cpu(nmt_model: Path) -> None:
    """Why the test before this one is there."""
    converted = open_model(nmt_model).converted().path
    with pytest.raises((ValueError, RuntimeError)):
        ctranslate2.Translator(str(converted), device="cpu", device_index=[0, 1])
