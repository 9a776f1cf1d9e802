"""Which devices CTranslate2 is asked for: all GPUs of a machine, and never a list of CPUs."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import ctranslate2
import pytest

from paraloom.models.errors import UserError
from paraloom.models.nmt import NmtOptions, gpu
from paraloom.models.nmt.engine import Engine
from paraloom.models.nmt.families import open_model
from paraloom.models.nmt.options import SamplingOptions
from paraloom.models.nmt.translate import Translator
from tests.run_helpers import Patch


@pytest.fixture
def loaded(monkeypatch: Patch) -> list[dict[str, Any]]:
    """The arguments with which translators are loaded; none is."""
    found: list[dict[str, Any]] = []
    monkeypatch.setattr(ctranslate2, "Translator", lambda path, **options: found.append(options))
    return found


def load(model: Path, monkeypatch: Patch, gpus: int, **options: Any) -> Any:
    monkeypatch.setattr(ctranslate2, "get_cuda_device_count", lambda: gpus)
    monkeypatch.setattr(gpu, "load_cublas", lambda: gpus > 0)
    monkeypatch.setattr(gpu, "memory", lambda device: 16 << 30)
    monkeypatch.setattr(
        ctranslate2, "get_supported_compute_types", lambda *_: {"float16", "int8_float16"}
    )
    given = NmtOptions(**{"sampling": SamplingOptions(), **options})
    return Engine(open_model(model), given, threads=3)


@pytest.mark.parametrize("gpus", [1, 4])
def test_one_process_serves_all_gpus(
    nmt_model: Path, loaded: list[dict[str, Any]], monkeypatch: Patch, gpus: int
) -> None:
    engine = load(nmt_model, monkeypatch, gpus, compute_type="int8")
    (options,) = loaded
    assert (options["device"], options["device_index"]) == ("cuda", list(range(gpus)))
    assert (options["inter_threads"], options["compute_type"]) == (8, "int8_float16")
    assert (engine.device, engine.parallel) == ("cuda", 8 * gpus)
    with ExitStack() as samplers:  # each with one GPU: the order of batches decides what is drawn
        for _ in range(gpus):
            samplers.enter_context(engine.sampler(1, 1))
    drawing = sorted(options["device_index"] for options in loaded[1:])
    assert drawing == [*range(gpus)]
    with engine.sampler(1, 1):
        assert len(loaded) == 2 + gpus  # what has drawn is not used again
    # With several threads, the last bits of scores depend on their number.
    assert {(of["inter_threads"], of["intra_threads"]) for of in loaded[1:]} == {(1, 1)}


def test_a_process_of_one_gpu_makes_the_batches_of_all(
    nmt_model: Path, loaded: list[dict[str, Any]], monkeypatch: Patch
) -> None:
    """They fit into the smallest: which GPU translates a shard changes no bit."""
    every = load(nmt_model, monkeypatch, 4)
    monkeypatch.setattr(gpu, "memory", lambda device: (40 - 8 * device) << 30)
    options = NmtOptions()
    engines = [Engine(open_model(nmt_model), options, 3, only) for only in (0, 3)]
    assert [of["device_index"] for of in loaded[1:]] == [[0], [3]]
    for engine in engines:
        assert (engine.device, engine.parallel) == ("cuda", 8)
        sizes = engine.batch_tokens, engine.batch_rows
        assert sizes == (every.batch_tokens, every.batch_rows)


def test_a_gpu_that_is_asked_for_has_no_substitute(
    nmt_model: Path, loaded: list[dict[str, Any]], monkeypatch: Patch
) -> None:
    with pytest.raises(UserError, match=r"nmt.device: cuda needs a CUDA device"):
        load(nmt_model, monkeypatch, 0, device="cuda")
    monkeypatch.setattr(ctranslate2, "get_cuda_device_count", lambda: 1)
    with pytest.raises(UserError, match=r"nmt.device: cuda needs libcublas"):
        Engine(open_model(nmt_model), NmtOptions(device="cuda"), threads=1)
    engine = Engine(open_model(nmt_model), NmtOptions(compute_type="int8"), threads=2)
    assert (engine.device, engine.parallel, loaded[0]["compute_type"]) == ("cpu", 2, "int8")


def test_the_number_type_that_is_loaded(monkeypatch: Patch) -> None:
    both = {"float16", "bfloat16", "int8_float16", "int8_bfloat16"}
    gpus = [both, both, {"float16", "int8_float16"}, {"bfloat16", "int8_bfloat16"}]
    monkeypatch.setattr(ctranslate2, "get_supported_compute_types", lambda _, device: gpus[device])
    for devices, family, chosen, int8 in (
        ([0], "Marian", "float16", "int8_float16"),
        ([0, 1], "MADLAD", "bfloat16", "int8_bfloat16"),
        ([0, 2], "MADLAD", "float32", "int8_float32"),
        ([0, 3], "Marian", "bfloat16", "int8_bfloat16"),
        ([2, 3], "Marian", "float32", "int8_float32"),
        ([], "Marian", "float32", "int8"),
    ):
        assert gpu.precision(NmtOptions(compute_type="auto"), devices, family) == chosen
        assert gpu.precision(NmtOptions(compute_type="int8"), devices, family) == int8


def test_on_gpus_samples_begin_with_the_largest_batch(nmt_model: Path, monkeypatch: Patch) -> None:
    """A larger one would take the seed anew, which may be another call's by then."""
    drawn: list[tuple[int, int]] = []

    class Result:
        hypotheses, scores = (), ()

        def result(self) -> "Result":
            return self

    class Fake:
        def __init__(self, path: str, **options: Any) -> None: ...

        def translate_batch(self, batch: list[Any], *_: Any, **how: Any) -> list[Result]:
            drawn.append((len(batch), how["num_hypotheses"]))
            return [Result()] * len(batch)

    monkeypatch.setattr(ctranslate2, "Translator", Fake)
    with load(nmt_model, monkeypatch, 2).sampler(1, 7) as submit:
        for rows in (2, 7):
            submit([["▁a"]] * rows, 3)()
    assert drawn == [(7, 3), (2, 3), (7, 3)]


@pytest.mark.parametrize("devices", [1, 4])
def test_threads_draw_the_same_samples(nmt_model: Path, czech: list[str], devices: int) -> None:
    options = NmtOptions(candidates=3, batch_tokens=64, sampling=SamplingOptions())
    translator = Translator(nmt_model, options, threads=1)
    alone = [translator.translate(czech[:9], seed=seed)[0] for seed in range(4)]
    assert not alone[0].equals(alone[1])
    engine: Any = translator._engine
    for _ in range(devices - 1):
        engine._idle.put(0)  # CPUs, for want of GPUs
    with ThreadPoolExecutor(4) as threads:
        calls = [threads.submit(translator.translate, czech[:9], seed=seed) for seed in range(4)]
        assert all(call.result()[0].equals(of) for call, of in zip(calls, alone, strict=True))


def test_batches_fit_the_memory_of_the_smallest_gpu(monkeypatch: Patch) -> None:
    sizes = {0: 16 << 30, 1: 139 << 30}
    monkeypatch.setattr(gpu, "memory", sizes.__getitem__)
    small, large = (gpu.batch_size([of], NmtOptions(), 32_000) for of in sizes)
    assert small[0] < large[0] == 32_768
    assert small[1] < large[1] == gpu.MOST_ROWS
    assert gpu.batch_size([1, 0], NmtOptions(), 32_000) == small
    assert gpu.batch_size([1] * 8, NmtOptions(), 32_000) == large
    assert gpu.batch_size([0], NmtOptions(beam=100), 32_000)[0] < small[0]
    assert gpu.batch_size([0], NmtOptions(), 256_000)[1] < small[1]
