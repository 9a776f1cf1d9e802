import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import paraloom.models.nmt.translate
from paraloom.beam_jobs import back_translate
from paraloom.beam_jobs.back_translate import TranslationJob
from paraloom.beam_jobs.io import schema
from paraloom.beam_jobs.io.shards import Unit, units
from paraloom.beam_jobs.runners.launch import Result
from paraloom.beam_jobs.transforms.translations import COUNTERS, TranslatorFactory
from paraloom.models.errors import UserError
from paraloom.models.nmt import gpu
from paraloom.models.nmt.engine import Engine, Hypothesis, Ranked
from paraloom.models.nmt.options import NmtOptions
from paraloom.models.nmt.translate import RetryHints, Translator
from tests.run_helpers import Patch
from tests.shards import ONE, cut, rows_of
from tests.small_model import new_pairs

FAST = NmtOptions(beam=1)


@pytest.fixture
def sentences() -> list[str]:
    return [czech for czech, _ in new_pairs(12)]


@pytest.fixture
def work(tmp_path: Path, sentences: list[str]) -> Callable[..., list[Unit]]:
    def write(texts: list[str] = sentences, shard_rows: int = 4) -> list[Unit]:
        rows = [{"id": f"id-{i}", "source": s, "reference": "r"} for i, s in enumerate(texts)]
        table = pa.Table.from_pylist(rows, schema.INGEST)
        return units(cut(tmp_path / "ingest", table, shard_rows), "key")

    return write


def run(work: list[Unit], out: Path, model: Path, options: NmtOptions = FAST) -> Result:
    job = TranslationJob(model=TranslatorFactory(str(model), options))
    return back_translate.run(work, str(out), job, ONE)


def test_rows_are_those_of_the_translator(
    tmp_path: Path, work: Callable[..., list[Unit]], sentences: list[str], nmt_model: Path
) -> None:
    result = run(work(), tmp_path / "out", nmt_model)
    translator = Translator(nmt_model, FAST, threads=1)
    for receipt, start in zip(result.receipts, range(0, 12, 4), strict=True):
        wanted, _ = translator.translate(sentences[start : start + 4])
        assert receipt.numbers.converted == translator.converted
        assert receipt.numbers.compute_type == "float32"
        table = pq.read_table(receipt.shards[0].path)
        assert table.schema == schema.BACK_TRANSLATE
        assert table["id"].to_pylist() == [f"id-{i}" for i in range(start, start + 4)]
        for name in ("translation", "translation_score", "translation_subwords"):
            assert table[name].to_pylist() == wanted[name].to_pylist()
    assert result.metrics["sentences"] == 12
    assert result.metrics["rejects"] == 0
    assert result.metrics["tokens"] == sum(row["translation_subwords"] for row in rows_of(result))
    assert set(result.metrics) <= set(COUNTERS)


def test_a_process_loads_the_model_once(
    tmp_path: Path, work: Callable[..., list[Unit]], nmt_model: Path, monkeypatch: Patch
) -> None:
    loads = []

    class Counting(Translator):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            loads.append(os.getpid())
            super().__init__(*args, **kwargs)

    monkeypatch.setattr(paraloom.models.nmt.translate, "Translator", Counting)
    result = run(work(shard_rows=1), tmp_path / "out", nmt_model)
    assert len(result.receipts) == 12
    assert loads == [os.getpid()]


def test_an_engine_that_is_broken_ends_the_run_and_rejects_nothing(
    tmp_path: Path, work: Callable[..., list[Unit]], nmt_model: Path, monkeypatch: Patch
) -> None:
    calls = []

    def submit(self: Engine, batch: list[list[str]], count: int = 1) -> Any:
        calls.append(len(batch))
        works = len(calls) <= 2  # a check, and the first shard

        def wait() -> list[Ranked]:
            if not works:
                raise RuntimeError("the device is gone")
            return [[Hypothesis(list(p), -0.5, len(p) + 1, True)] for p in batch]

        return wait

    monkeypatch.setattr(Engine, "submit", submit)
    with pytest.raises(UserError, match=r"does not work .*the device is gone"):
        run(work(), tmp_path / "out", nmt_model)
    assert len(list((tmp_path / "out").glob("*.parquet"))) == 1  # the shard before


def test_finished_shards_are_not_translated_twice(
    tmp_path: Path, work: Callable[..., list[Unit]], nmt_model: Path, monkeypatch: Patch
) -> None:
    out = tmp_path / "out"
    first = run(work(), out, nmt_model)
    texts = []

    class Watching(Translator):
        def translate(
            self, sentences: pa.StringArray, hints: RetryHints | None = None, *, seed: int = 1
        ) -> pa.Table:
            texts.extend(sentences.to_pylist())
            return super().translate(sentences, hints)

    monkeypatch.setattr(paraloom.models.nmt.translate, "Translator", Watching)
    (out / "_receipts" / "part-00000-00001.json").unlink()  # killed before it was finished
    again = run(work(), out, nmt_model)
    assert texts == [row["source"] for row in rows_of(first)[4:8]]
    assert rows_of(again) == rows_of(first)
    assert [r.seconds for r in again.receipts][::2] == [r.seconds for r in first.receipts][::2]


def test_a_worker_without_the_gpu_that_was_asked_for(
    tmp_path: Path, work: Callable[..., list[Unit]], nmt_model: Path, monkeypatch: Patch
) -> None:
    """It would be slow, and nobody would know why."""
    monkeypatch.setattr(gpu, "devices", list)

    def hinted(options: NmtOptions) -> Result:
        model = TranslatorFactory(str(nmt_model), options)
        job = TranslationJob(model=model, accelerator="type:nvidia-l4;count:1")
        return back_translate.run(work(), str(tmp_path / "out"), job, ONE)

    with pytest.raises(UserError, match="type:nvidia-l4;count:1: this worker finds no CUDA device"):
        hinted(FAST)
    assert hinted(FAST.replace(device="cpu")).receipts  # asked for as plainly
