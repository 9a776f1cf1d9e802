"""`distinct`: a shard translates each source once, and the rows are those of a run without."""

import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import paraloom.models.nmt.translate
from paraloom.beam_jobs import back_translate
from paraloom.beam_jobs.back_translate import TranslationJob
from paraloom.beam_jobs.io import schema
from paraloom.beam_jobs.io.shards import Unit, units, write_shard
from paraloom.beam_jobs.runners.launch import Result
from paraloom.beam_jobs.transforms.translations import TranslatorFactory
from paraloom.models.nmt.options import NmtOptions
from paraloom.models.nmt.translate import SCHEMA, Counters, RetryHints
from tests.shards import ONE
from tests.small_model import new_pairs


class Reversing:
    """A translator that reverses, and rejects what begins with x; it counts its sentences."""

    seen: ClassVar[Counter[str]] = Counter()

    converted = compute_type = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def translate(
        self, sentences: pa.Array, hints: RetryHints | None = None, *, seed: int = 1
    ) -> tuple[pa.RecordBatch, Counters]:
        texts = sentences.to_pylist()
        self.seen.update(texts)
        rows = [
            {"reason": "begins with x"}
            if text[0] == "x"
            else {
                "translation": text[::-1],
                "translation_score": -len(text) / 7,
                "translation_subwords": len(text),
            }
            for text in texts
        ]
        batch = pa.RecordBatch.from_pylist(rows, SCHEMA)
        return batch, Counters(sentences=len(texts), seconds=0.001 * len(texts))


@pytest.fixture
def reversing(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    monkeypatch.setattr(paraloom.models.nmt.translate, "Translator", Reversing)
    Reversing.seen = Counter()
    return Reversing.seen


def write(folder: Path, shards: Sequence[Sequence[str]]) -> list[Unit]:
    found = []
    for number, sources in enumerate(shards):
        rows = [
            {"id": f"{number}-{row}", "source": text, "reference": f"r{number}-{row}"}
            for row, text in enumerate(sources)
        ]
        table = pa.Table.from_pylist(rows, schema.INGEST)
        found.append(write_shard(f"{folder}/ingest/part-00000-{number:05d}.parquet", table))
    return units(found, "key")


def run(work: list[Unit], out: Path, *beam: str, distinct: bool = True) -> Result:
    model = TranslatorFactory("model", NmtOptions(beam=1))
    job = TranslationJob(model=model, distinct=distinct)
    return back_translate.run(work, str(out), job, beam or ONE)


def tables(result: Result) -> list[tuple[list[Any], list[Any]]]:
    return [
        (
            [pq.read_table(shard.path).to_pylist() for shard in receipt.shards],
            [pq.read_table(shard.path).to_pylist() for shard in receipt.rejected_shards],
        )
        for receipt in result.receipts
    ]


def test_rows_are_those_of_a_run_without(tmp_path: Path, reversing: Counter[str]) -> None:
    draw = random.Random(1)
    texts = ["a", "ab", "abc", "x", "xy", "č", "ab c"]
    shards = [draw.choices(texts, k=draw.randrange(9)) for _ in range(40)]
    work = write(tmp_path, shards)
    plain = run(work, tmp_path / "plain", distinct=False)
    reversing.clear()
    once = run(work, tmp_path / "once")
    assert tables(once) == tables(plain)
    assert reversing == sum((Counter(set(of)) for of in shards), Counter())
    for receipt, of in zip(once.receipts, shards, strict=True):
        saved = receipt.numbers.saved["input.unique"]
        assert saved.rows == len(of) - len(set(of))
        assert saved.tokens == sum(
            len(text.split()) for text in (Counter(of) - Counter(set(of))).elements()
        )


def test_workers_make_the_same_rows(tmp_path: Path, nmt_model: Path) -> None:
    texts = [czech for czech, _ in new_pairs(8)]
    draw = random.Random(1)
    work = write(tmp_path, [draw.choices(texts, k=12) for _ in range(6)])

    def translated(folder: str, *beam: str, distinct: bool = True) -> Any:
        model = TranslatorFactory(str(nmt_model), NmtOptions(beam=2))
        job = TranslationJob(model=model, distinct=distinct)
        return tables(back_translate.run(work, str(tmp_path / folder), job, beam))

    one = translated("one", *ONE)
    assert translated("two", "--direct_num_workers", "2") == one
    plain = translated("plain", *ONE, distinct=False)
    for ours, others in zip(one, plain, strict=True):
        for row, other in zip(*(part[0][0] for part in (ours, others)), strict=True):
            assert row.pop("translation_score") == pytest.approx(
                other.pop("translation_score"), abs=1e-5
            )
            assert row == other
