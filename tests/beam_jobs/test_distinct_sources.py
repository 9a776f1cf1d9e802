"""`distinct`: every distinct source is translated once, and the rows are those of a run without."""

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
from paraloom.beam_jobs.back_translate import TranslationJob, distinct_folder
from paraloom.beam_jobs.io import schema
from paraloom.beam_jobs.io.shards import Unit, receipts, units, write_shard
from paraloom.beam_jobs.runners.launch import Result
from paraloom.beam_jobs.transforms.translations import TranslatorFactory
from paraloom.models.nmt.options import NmtOptions
from paraloom.models.nmt.translate import SCHEMA, Counters, RetryHints
from tests.run_helpers import part_file
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


class Drawing(Reversing):
    """A translator whose translations depend on the seed, too."""

    def translate(
        self, sentences: pa.Array, hints: RetryHints | None = None, *, seed: int = 1
    ) -> tuple[pa.RecordBatch, Counters]:
        batch, counters = super().translate(sentences, hints, seed=seed)
        drawn = [text and f"{seed} {text}" for text in batch["translation"].to_pylist()]
        return batch.set_column(0, SCHEMA.field(0), pa.array(drawn, pa.string())), counters


@pytest.fixture
def drawing(reversing: Counter[str], monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    monkeypatch.setattr(paraloom.models.nmt.translate, "Translator", Drawing)
    return reversing


def write(folder: Path, shards: Sequence[Sequence[str]], reference: str = "r") -> list[Unit]:
    found = []
    for number, sources in enumerate(shards):
        rows = [
            {"id": f"{number}-{row}", "source": text, "reference": f"{reference}{number}-{row}"}
            for row, text in enumerate(sources)
        ]
        table = pa.Table.from_pylist(rows, schema.INGEST)
        found.append(write_shard(f"{folder}/ingest/part-00000-{number:05d}.parquet", table))
    return units(found, "key")


def run(work: list[Unit], out: Path, distinct: str | None = "base", *beam: str) -> Result:
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


@pytest.mark.parametrize("count", [3, 40])
def test_rows_are_those_of_a_run_without_and_survive_a_kill(
    tmp_path: Path, reversing: Counter[str], count: int
) -> None:
    draw = random.Random(count)
    texts = ["a", "ab", "abc", "x", "xy", "č", "ab c"]
    shards = [draw.choices(texts, k=draw.randrange(9)) for _ in range(count)]
    work = write(tmp_path, shards)
    plain = run(work, tmp_path / "plain", None)
    reversing.clear()
    once = run(work, tmp_path / "once")
    assert tables(once) == tables(plain)
    assert reversing == Counter(dict.fromkeys({text for of in shards for text in of}, 1))
    saved = [receipt.numbers.saved["input.unique"] for receipt in once.receipts]
    assert sum(s.rows for s in saved) == sum(map(len, shards)) - len(reversing)

    for folder in ("once/receipts", "once/distinct/receipts"):
        for path in sorted((tmp_path / folder).iterdir()):
            if draw.random() < 0.4:
                path.unlink()
    kept = {r.name for r in receipts(distinct_folder(str(tmp_path / "once")))}
    reversing.clear()
    assert tables(run(work, tmp_path / "once")) == tables(plain)
    assert reversing.total() == sum(
        r.rows_in for r in receipts(distinct_folder(str(tmp_path / "once"))) if r.name not in kept
    )


def test_more_input_translates_only_what_is_new(tmp_path: Path, reversing: Counter[str]) -> None:
    shards = [["a", "b", "a"], ["b", "c"], ["a", "d"]]
    first = run(write(tmp_path, shards[:2]), tmp_path / "out")
    reversing.clear()
    both = run(write(tmp_path, shards), tmp_path / "out")
    assert reversing == {"d": 1}
    assert both.receipts[:2] == first.receipts
    assert tables(both) == tables(run(write(tmp_path, shards), tmp_path / "plain", None))


def test_another_model_translates_everything_again(tmp_path: Path, reversing: Counter[str]) -> None:
    work = write(tmp_path, [["a", "b"], ["b", "c"]])
    run(work, tmp_path / "out", "one")
    reversing.clear()
    run(units([unit.shard for unit in work], "other"), tmp_path / "out", "two")
    assert reversing == {"a": 1, "b": 1, "c": 1}


def test_a_damaged_translation_is_made_again(tmp_path: Path, reversing: Counter[str]) -> None:
    work = write(tmp_path, [["a", "b"], ["b", "c"]])
    whole = tables(run(work, tmp_path / "out"))
    damaged = part_file(tmp_path / "out" / "distinct", "part-00000-00001")
    damaged.write_bytes(damaged.read_bytes()[:-9] + b"123456789")
    reversing.clear()
    assert tables(run(work, tmp_path / "out")) == whole
    assert reversing == {"c": 1}


def test_samples_depend_on_the_sources_alone(tmp_path: Path, drawing: Counter[str]) -> None:
    """Corrected references are other shards, with the same sources."""
    shards = [["a", "b", "a"], ["b", "c"]]
    run(write(tmp_path, shards), tmp_path / "out")
    corrected = write(tmp_path, shards, "corrected ")
    fresh = tables(run(corrected, tmp_path / "fresh"))
    drawing.clear()
    assert tables(run(corrected, tmp_path / "out")) == fresh
    assert not drawing


def test_samples_of_later_units_follow_a_change_of_an_earlier_one(
    tmp_path: Path, drawing: Counter[str]
) -> None:
    run(write(tmp_path, [["a", "b"], ["a", "c"], ["c"]]), tmp_path / "out")
    changed = write(tmp_path, [["b", "d"], ["a", "c"], ["c"]])  # the second unit owns `a` now
    fresh = tables(run(changed, tmp_path / "fresh"))
    assert tables(run(changed, tmp_path / "out")) == fresh


def test_workers_make_the_same_rows(tmp_path: Path, nmt_model: Path) -> None:
    texts = [czech for czech, _ in new_pairs(40)]
    draw = random.Random(1)
    work = write(tmp_path, [draw.choices(texts, k=12) for _ in range(20)])

    def translated(folder: str, distinct: str | None, *beam: str) -> Any:
        model = TranslatorFactory(str(nmt_model), NmtOptions(beam=2))
        job = TranslationJob(model=model, distinct=distinct)
        return tables(back_translate.run(work, str(tmp_path / folder), job, beam))

    one = translated("one", "base", *ONE)
    two = translated("two", "base", "--direct_num_workers", "2")
    assert two == one
    plain = translated("plain", None, *ONE)
    for ours, others in zip(one, plain, strict=True):
        for row, other in zip(*(part[0][0] for part in (ours, others)), strict=True):
            assert row.pop("translation_score") == pytest.approx(
                other.pop("translation_score"), abs=1e-5
            )
            assert row == other
