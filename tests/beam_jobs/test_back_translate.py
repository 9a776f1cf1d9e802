"""Back-translation: one translation or several of each source, and each source once or every time.

Where it does not matter what a translation says, a translator that reverses stands for the model.
"""

import random
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import paraloom.models.nmt.translate
from paraloom.beam_jobs import back_translate
from paraloom.beam_jobs.back_translate import TranslationJob
from paraloom.beam_jobs.engine import launch, schema
from paraloom.beam_jobs.engine.crash_recovery import begin, note_death, unfinished
from paraloom.beam_jobs.engine.launch import Result
from paraloom.beam_jobs.engine.shards import Unit, read_shard, units, write_shard
from paraloom.beam_jobs.transforms.translations import COUNTERS, TranslatorFactory
from paraloom.models.errors import UserError
from paraloom.models.nmt import gpu, gpu_processes
from paraloom.models.nmt.engine import Engine, Hypothesis, Ranked
from paraloom.models.nmt.options import NmtOptions, SamplingOptions
from paraloom.models.nmt.translate import SCHEMA, Counters, RetryHints, Translator
from tests.run_helpers import Patch
from tests.shards import rows_of, shards_of
from tests.small_model import new_pairs

FAST = NmtOptions(beam=1)
N_BEST = NmtOptions(beam=4, candidates=3)
SAMPLED = NmtOptions(candidates=3, sampling=SamplingOptions(top_k=5))


class Reversing:
    """A translator that reverses, and rejects what begins with x; it counts its sentences."""

    opened: ClassVar[int] = 0
    hints: ClassVar[list[RetryHints | None]] = []
    seeds: ClassVar[list[int]] = []
    seen: ClassVar[Counter[str]] = Counter()

    converted = compute_type = None
    gpus = under_way = 0

    def __init__(self, model: str, options: NmtOptions, **_: Any) -> None:
        Reversing.opened += 1
        self.candidates = options.candidates

    def translate(
        self, sentences: pa.Array, hints: RetryHints | None = None, *, seed: int = 1
    ) -> tuple[pa.RecordBatch, Counters]:
        texts = sentences.to_pylist()
        self.seen.update(texts)
        self.hints.append(hints)
        self.seeds.append(seed)
        rows = [
            {"reason": "begins with x"}
            if text[0] == "x"
            else {
                "translation": f"{text[::-1]} {number}",
                "translation_score": -number - len(text) / 7,
                "translation_subwords": len(text),
            }
            for text in texts
            for number in range(self.candidates)
        ]
        batch = pa.RecordBatch.from_pylist(rows, SCHEMA)
        return batch, Counters(sentences=len(texts), seconds=0.001 * len(texts))


@pytest.fixture
def reversing(monkeypatch: Patch) -> type[Reversing]:
    """What stands for the model."""
    monkeypatch.setattr(paraloom.models.nmt.translate, "Translator", Reversing)
    Reversing.opened, Reversing.hints, Reversing.seeds, Reversing.seen = 0, [], [], Counter()
    return Reversing


def ingested(folder: Path, *shards: list[str], candidates: int = 1) -> list[Unit]:
    """Shards with these sources."""
    found = []
    for number, sources in enumerate(shards):
        rows = [
            {"id": f"id-{number}-{row}", "source": text, "reference": f"r{number}-{row}"}
            for row, text in enumerate(sources)
        ]
        table = pa.Table.from_pylist(rows, schema.INGEST)
        found.append(write_shard(f"{folder}/ingest/part-00000-{number:05d}.parquet", table))
    return units(found, "key", candidates=candidates)


@pytest.fixture
def shards() -> list[list[str]]:
    """Twelve sentences in shards of four."""
    sentences = [czech for czech, _ in new_pairs(12)]
    return [sentences[start : start + 4] for start in range(0, 12, 4)]


def run(
    work: list[Unit],
    out: Path | str,
    model: Path | str = "model",
    options: NmtOptions = FAST,
    *,
    workers: int = 1,
    arguments: Sequence[str] = (),
    max_rejected: float = 1.0,
    **more: Any,
) -> Result:
    """Translate with one model; `more` is of the job."""
    job = TranslationJob(model=TranslatorFactory(str(model), options), **more)
    beam = ["--direct_num_workers", str(workers), *arguments]
    return back_translate.run(work, str(out), job, beam, max_rejected=max_rejected)


def tables(result: Result) -> list[list[pa.Table]]:
    """The rows of each shard, and the rejected ones."""
    return [
        [read_shard(shard) for shard in (*receipt.shards, *receipt.rejected_shards)]
        for receipt in result.receipts
    ]


def test_rows_are_the_translators(tmp_path: Path, shards: list[list[str]], nmt_model: Path) -> None:
    result = run(ingested(tmp_path, *shards), tmp_path / "out", nmt_model)
    translator = Translator(nmt_model, FAST, threads=1)
    for number, (receipt, sources) in enumerate(zip(result.receipts, shards, strict=True)):
        wanted, _ = translator.translate(sources)
        assert receipt.numbers["converted"] == translator.converted
        assert receipt.numbers["compute_type"] == "float32"
        table = pq.read_table(receipt.shards[0].path)
        assert table.schema == schema.BACK_TRANSLATE
        accepted = pc.is_null(wanted["reason"])  # a small model may not find an end
        ids = pa.array([f"id-{number}-{row}" for row in range(4)])
        assert table["id"].to_pylist() == ids.filter(accepted).to_pylist()
        for name in ("translation", "translation_score", "translation_subwords"):
            assert table[name].to_pylist() == wanted[name].filter(accepted).to_pylist()
    assert result.metrics["sentences"] == 12
    assert result.metrics["rejects"] == 12 - len(rows_of(result)) < 6
    assert result.metrics["tokens"] == sum(row["translation_subwords"] for row in rows_of(result))
    assert set(result.metrics) <= set(COUNTERS)


class Slow(Reversing):
    """Calls that overlap, as on GPUs, and end in any order."""

    under_way = 9
    rows: ClassVar[list[int]] = []  # in calls at the same time
    now, lock = 0, threading.Lock()

    def translate(self, sentences: pa.Array, *more: Any, **named: Any) -> Any:
        with Slow.lock:
            Slow.now += len(sentences)
            Slow.rows.append(Slow.now)
        time.sleep(random.random() / 50)
        made = super().translate(sentences, *more, **named)
        with Slow.lock:
            Slow.now -= len(sentences)
        return made


@pytest.mark.parametrize(("gpus", "streams"), [(1, 9), (2, 9), (3, 1), (8, 20)])
def test_gpus_that_answer_in_any_order_give_the_rows_of_one(
    tmp_path: Path, reversing: type[Reversing], monkeypatch: Patch, gpus: int, streams: int
) -> None:
    """Threads stand for processes; one has no process. Shards of 0 to 6 rows, some rejected."""
    shards = [[f"{'x' * (n % 3 == 0)}a{n} {i}" for i in range(n % 7)] for n in range(60)]
    work = ingested(tmp_path, *shards)
    alone = run(work, tmp_path / "alone")
    serving: list[int] = []

    def start(load: gpu_processes.Load, number: int) -> Sequence[Connection]:
        ours, theirs = zip(*(Pipe() for _ in range(9)), strict=True)
        serving.append(number)
        threading.Thread(
            target=gpu_processes.serve, args=(theirs, load, number), daemon=True
        ).start()
        return list(ours)

    monkeypatch.setattr(gpu_processes, "start", start)
    monkeypatch.setattr(gpu, "chosen", lambda options: [*range(gpus)])
    monkeypatch.setattr(paraloom.models.nmt.translate, "Translator", Slow)
    monkeypatch.setattr(Slow, "under_way", streams)
    Slow.rows.clear()
    at_once = run(work, tmp_path / "out")
    assert serving == ([*range(gpus)] if gpus > 1 else [])
    assert {of.numbers.get("gpus") for of in at_once.receipts} == {gpus if gpus > 1 else None}
    assert tables(at_once) == tables(alone)
    assert at_once.metrics == alone.metrics
    most = gpus * max(2 * streams, 6) if gpus > 1 else 2 * 6  # of one, two shards at least
    assert 6 < max(Slow.rows) <= most


def test_a_shard_at_which_a_worker_died_is_translated_alone(
    tmp_path: Path, reversing: type[Reversing], monkeypatch: Patch
) -> None:
    monkeypatch.setattr(paraloom.models.nmt.translate, "Translator", Slow)
    work, out = ingested(tmp_path, *([f"a{n}"] for n in range(6))), str(tmp_path / "out")
    Slow.rows.clear()
    for unit in work:
        begin(out, unit.name, unit.key)
    note_death(out)
    run(work, tmp_path / "out")
    assert max(Slow.rows) == 1


def test_a_process_loads_the_model_once_and_translates_no_finished_shard(
    tmp_path: Path, reversing: type[Reversing]
) -> None:
    work, out = ingested(tmp_path, ["a", "b"], ["c", "d"], ["e"]), tmp_path / "out"
    first = run(work, out)
    assert reversing.opened == 1
    assert len(set(reversing.seeds)) == 3  # each shard draws for itself
    reversing.seen.clear()
    (out / "_receipts" / "part-00000-00001.json").unlink()  # killed before it was finished
    again = run(work, out)
    assert reversing.seen == Counter("cd")
    assert rows_of(again) == rows_of(first)
    assert [r.seconds for r in again.receipts][::2] == [r.seconds for r in first.receipts][::2]


def test_a_shard_at_which_workers_died_is_tried_with_smaller_batches(
    tmp_path: Path, reversing: type[Reversing], monkeypatch: Patch
) -> None:
    monkeypatch.setattr(launch, "remove_orphans", lambda *_: None)  # it removes records, too
    work, out = ingested(tmp_path, ["a", "b"], ["c"]), str(tmp_path / "out")
    for _ in range(2):
        begin(out, work[0].name, work[0].key).under_way([1])
        assert note_death(out) == " at part-00000-00000 (rows 1)"
    result = run(work, tmp_path / "out")
    assert [hints and hints.smaller for hints in reversing.hints] == [4, None]
    numbers = [receipt.numbers for receipt in result.receipts]
    assert [of["attempts"] for of in numbers] == [3, 1]
    assert unfinished(out) == {}


def test_the_rows_of_an_attempt_count_repeated_sources(
    tmp_path: Path, reversing: type[Reversing], monkeypatch: Patch
) -> None:
    """The error about workers that die names these rows."""
    translate, found = reversing.translate, []

    def noting(self: Reversing, texts: pa.Array, hints: Any, **more: Any) -> Any:
        hints.under_way([1, 2])
        found.append(hints.rows)
        return translate(self, texts, hints, **more)

    monkeypatch.setattr(reversing, "translate", noting)
    work, out = ingested(tmp_path, ["a", "a", "b", "b", "c"]), str(tmp_path / "out")
    begin(out, work[0].name, work[0].key)
    note_death(out)
    run(work, tmp_path / "out", distinct=True)
    assert found == [[2, 4]]


def test_too_many_rejected_rows_end_the_run(tmp_path: Path, reversing: type[Reversing]) -> None:
    work, out = ingested(tmp_path, *(["x1", "x2", "3"] for _ in range(4))), tmp_path / "out"
    message = r"back_translate: .*\(66.7%\).*begins with x \(8 rows\), see "
    with pytest.raises(UserError, match=message):
        run(work, out, max_rejected=0.5)
    assert len(rows_of(run(work, out, max_rejected=0.7))) == 4


def test_an_engine_that_is_broken_ends_the_run_and_rejects_nothing(
    tmp_path: Path, shards: list[list[str]], nmt_model: Path, monkeypatch: Patch
) -> None:
    calls = []

    def submit(self: Engine, batch: list[list[str]], count: int = 1) -> Any:
        calls.append(len(batch))
        works = sum(calls) <= 1 + 4  # a check, and the first shard

        def wait() -> list[Ranked]:
            if not works:
                raise RuntimeError("the device is gone")
            return [[Hypothesis(list(p), -0.5, len(p) + 1, True)] for p in batch]

        return wait

    monkeypatch.setattr(Engine, "submit", submit)
    with pytest.raises(UserError, match=r"does not work .*the device is gone"):
        run(ingested(tmp_path, *shards), tmp_path / "out", nmt_model)
    assert len(list((tmp_path / "out").glob("*.parquet"))) == 1  # the shard before


def test_a_worker_lacks_a_wanted_gpu(tmp_path: Path, nmt_model: Path, monkeypatch: Patch) -> None:
    """It would be slow, and nobody would know why."""
    monkeypatch.setattr(gpu, "devices", list)
    work, accelerator = ingested(tmp_path, ["pes"]), "type:nvidia-l4;count:1"
    with pytest.raises(UserError, match=f"{accelerator}: this worker finds no CUDA device"):
        run(work, tmp_path / "out", nmt_model, accelerator=accelerator)
    here = FAST.replace(device="cpu")  # asked for as plainly
    assert run(work, tmp_path / "out", nmt_model, here, accelerator=accelerator).receipts


@pytest.mark.parametrize("options", [N_BEST, SAMPLED], ids=["n-best", "sampled"])
def test_rows_of_several_candidates_are_conserved(
    tmp_path: Path, shards: list[list[str]], nmt_model: Path, options: NmtOptions
) -> None:
    shards[0][0] = ""
    work = ingested(tmp_path, *shards, candidates=3)
    result = run(work, tmp_path / "out", nmt_model, options)
    rows, rejected = rows_of(result), rows_of(result, rejected=True)
    empty = {(row["id"], row["candidate"]) for row in rejected if row["reason"] == "empty source"}
    assert empty == {("id-0-0", candidate) for candidate in range(3)}
    found = {(row["id"], row["candidate"]) for row in [*rows, *rejected]}
    assert found == {(f"id-{i // 4}-{i % 4}", k) for i in range(12) for k in range(3)}
    assert len(rows) + len(rejected) == 36 == sum(receipt.rows_in for receipt in result.receipts)
    scores: dict[str, list[float]] = {}
    for row in rows:
        scores.setdefault(row["id"], []).append(row["translation_score"])
    assert all(np.all(np.diff(of) <= 1e-6) for of in scores.values())


@pytest.mark.parametrize("distinct", [False, True])
def test_candidates_keep_the_order_of_the_translator(
    tmp_path: Path, reversing: type[Reversing], distinct: bool
) -> None:
    """Also of sources that repeat in their shard."""
    work = ingested(tmp_path, ["ab", "cde", "ab"], ["f", "cde"], candidates=3)
    result = run(work, tmp_path / "out", options=N_BEST, distinct=distinct)
    rows, form = rows_of(result), schema.translated(candidates=True)
    assert all(read_shard(shard).schema == form for shard in shards_of(result))
    ids = ["id-0-0", "id-0-1", "id-0-2", "id-1-0", "id-1-1"]
    assert [(row["id"], row["candidate"]) for row in rows] == [
        (i, k) for i in ids for k in range(3)
    ]
    for row in rows:
        assert row["translation"] == f"{row['source'][::-1]} {row['candidate']}"


def test_the_first_candidate_is_the_only_one_of_a_run_with_one(
    tmp_path: Path, shards: list[list[str]], nmt_model: Path
) -> None:
    work = ingested(tmp_path, *shards, candidates=3)
    single = [replace(unit, candidates=1) for unit in work]
    results = (
        run(work, tmp_path / "several", nmt_model, N_BEST),
        run(single, tmp_path / "one", nmt_model, N_BEST.replace(candidates=1)),
    )
    several, alone = (pa.concat_tables(map(read_shard, shards_of(result))) for result in results)
    assert several.schema == schema.translated(candidates=True)
    assert alone.schema == schema.BACK_TRANSLATE
    best = several.filter(pa.array(several["candidate"].to_numpy() == 0))
    assert best.drop_columns(["candidate"]).equals(alone)


def test_samples_depend_on_the_seed_and_the_shards_alone(
    tmp_path: Path, shards: list[list[str]], nmt_model: Path
) -> None:
    work = ingested(tmp_path, *shards, candidates=3)

    def made(work: list[Unit], place: str, **how: Any) -> list[list[pa.Table]]:
        return tables(run(work, tmp_path / place, nmt_model, SAMPLED, **how))

    whole = made(work, "whole")
    assert made(work[::-1], "again", workers=2)[::-1] == whole
    made(work[1:2], "resumed")
    assert made(work, "resumed") == whole
    assert made(work, "other", seed=2) != whole


def test_distinct_sources_give_the_rows_of_all(tmp_path: Path, reversing: type[Reversing]) -> None:
    draw = random.Random(1)
    texts = ["a", "ab", "abc", "x", "xy", "č", "ab c"]
    shards = [draw.choices(texts, k=draw.randrange(9)) for _ in range(40)]
    work = ingested(tmp_path, *shards)
    plain = run(work, tmp_path / "plain")
    reversing.seen.clear()
    once = run(work, tmp_path / "once", distinct=True)
    assert tables(once) == tables(plain)
    assert reversing.seen == sum((Counter(set(of)) for of in shards), Counter())
    for receipt, of in zip(once.receipts, shards, strict=True):
        saved = receipt.measured(back_translate.Translated).saved["input.unique"]
        assert saved.rows == len(of) - len(set(of))
        assert saved.tokens == sum(
            len(text.split()) for text in (Counter(of) - Counter(set(of))).elements()
        )
