"""Generation: whose candidates stand where, what is asked again, and what ends a job."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from paraloom.beam_jobs import generate
from paraloom.beam_jobs.engine import schema
from paraloom.beam_jobs.engine.rejections import Limit
from paraloom.beam_jobs.engine.shards import Receipt, read_shard, write_shard
from paraloom.beam_jobs.generate import GenerationJob, GenerationUnit
from paraloom.beam_jobs.transforms.answer_files import AnswerFiles, GenerateMeasurements
from paraloom.models.chat.answers import Answer
from paraloom.models.chat.options import ChatGenerator
from paraloom.models.errors import UserError
from tests.chat_server import chat_server, reworded
from tests.models.test_files import small_files
from tests.run_helpers import Patch, needs
from tests.shards import ONE

pytestmark = needs("openai")
ROWS = 30
PAIRS = pa.table(
    {
        "domain": ["news"] * ROWS,
        "id": [f"pair-{i}" for i in range(ROWS)],
        "source": [f"Pes číslo {i} běží ve sněhu." for i in range(ROWS)],
        "reference": [f"The dog number {i} runs in the snow." for i in range(ROWS)],
    },
    pa.schema([("domain", pa.string()), *schema.INGEST]),
)


def chat(name: str, address: str, **options: Any) -> ChatGenerator:
    values = {"kind": "chat", "name": name, "base_url": address, "model": "good", **options}
    return ChatGenerator(**values)


def job(*generators: ChatGenerator, nmt: str | None = None, share: float = 1.0) -> GenerationJob:
    return GenerationJob(
        generators=[(of, of.template()) for of in generators],
        first=1 if nmt else 0,
        nmt=nmt,
        model=None,
        languages=("cs", "en"),
        limit=Limit(share=share),
    )


def unit(folder: Path, job: GenerationJob, pairs: pa.Table = PAIRS, **more: Any) -> GenerationUnit:
    shard = write_shard(str(folder / "in" / "part-0.parquet"), pairs)
    n = sum(of.n for of, _ in job.generators)
    return GenerationUnit(index=0, key="key", shard=shard, candidates=n, **more)


def run(folder: Path, job: GenerationJob, unit: GenerationUnit) -> tuple[pa.Table, Receipt]:
    (receipt,) = generate.run([unit], str(folder / "out"), job, ONE).receipts
    return read_shard(receipt.shards[0]), receipt


def test_candidates_of_a_pair_stand_together_and_are_numbered_through(tmp_path: Path) -> None:
    with chat_server() as (_, url):
        work = job(chat("a", url, n=2), chat("b", url, prompt="translate"))
        table, receipt = run(tmp_path, work, unit(tmp_path, work))
    assert table["id"].to_pylist() == [f"pair-{i // 3}" for i in range(3 * ROWS)]
    assert table["candidate"].to_pylist() == [0, 1, 2] * ROWS
    assert table["generator"].to_pylist() == ["a", "a", "b"] * ROWS
    assert table["translation"][1].as_py() == reworded("The dog number 0 runs in the snow.", 1)
    assert table["translation"][5].as_py() == reworded("Pes číslo 1 běží ve sněhu.")
    names = ["domain", *schema.translated(candidates=True, generators=True, nmt=False).names]
    assert table.column_names == names
    used = receipt.measured(GenerateMeasurements).generators
    counts = used["a"].requests, used["a"].tokens_in, used["b"].tokens_out
    assert counts == (ROWS, 10 * ROWS, 5 * ROWS)


def test_rejected_candidates_have_reasons_and_the_others_stay(tmp_path: Path) -> None:
    with chat_server() as (_, url):
        work = job(chat("a", url), chat("b", url, model="refuses"), chat("c", url, model="czech"))
        table, receipt = run(tmp_path, work, unit(tmp_path, work))
    assert {*table["generator"].to_pylist()} == {"a"} and len(table) == ROWS
    assert receipt.rejected == {"b: refused": ROWS, "c: not in the language en": ROWS}
    rejected = read_shard(receipt.rejected_shards[0])
    assert Counter(rejected["candidate"].to_pylist()) == {1: ROWS, 2: ROWS}
    assert rejected.column_names == [*PAIRS.column_names, "candidate", "generator", "reason"]


def test_what_was_answered_is_not_asked_again(tmp_path: Path) -> None:
    with chat_server() as (server, url):
        work = job(chat("a", url))
        expected, _ = run(tmp_path, work, unit(tmp_path, work))
        (kept,) = (tmp_path / "out/_answers/part-0").iterdir()
        lines = kept.read_bytes().splitlines(keepends=True)
        kept.write_bytes(b"".join(lines[:20]) + lines[20][:15])  # killed in the middle of a line
        (tmp_path / "out/_receipts/part-0.json").unlink()
        table, receipt = run(tmp_path, work, unit(tmp_path, work))
        assert table.equals(expected)
        assert receipt.measured(GenerateMeasurements).generators["a"].requests == ROWS
        assert len(server.answered) == ROWS + len(lines[20:])
        # Another generator and another key: only the new one is asked.
        both = job(chat("a", url), chat("b", url, model="reversed"))
        again = replace(unit(tmp_path, both), key="other")
        table, _ = run(tmp_path, both, again)
        assert Counter(model for model, _ in server.answered)["reversed"] == ROWS
        assert len(server.answered) == 2 * ROWS + len(lines[20:])
    own = table.filter(pa.compute.equal(table["generator"], "a"))
    assert own["translation"].equals(expected["translation"])


def test_a_full_disk_is_one_line(tmp_path: Path) -> None:
    answers, folder = AnswerFiles(str(tmp_path), "unit"), f"{tmp_path}/_answers/unit"
    with small_files(10), pytest.raises(UserError, match=rf"^{folder}: cannot be written \(File"):
        for number in range(9):
            answers.add(Answer(key=str(number)))


def test_prompts_are_asked_once(tmp_path: Path) -> None:
    """Equal ones of a shard, and those of an earlier configuration."""
    same = pa.concat_tables([PAIRS.slice(0, 1)] * 3)
    same = same.set_column(1, PAIRS.field("id"), pa.array(["x", "y", "z"]))
    with chat_server() as (server, url):
        for prompt in ("paraphrase", "reword", "paraphrase"):
            work = job(chat("a", url, prompt=prompt))
            table, _ = run(tmp_path, work, replace(unit(tmp_path, work, same), key=prompt))
            assert len(table) == 3
    assert len(server.answered) == 2


@pytest.mark.parametrize("n", [1, 2])
def test_a_broken_server_ends_the_job_at_once(tmp_path: Path, monkeypatch: Patch, n: int) -> None:
    monkeypatch.setattr("paraloom.beam_jobs.engine.rejections.ENOUGH_ROWS", 10)
    with chat_server() as (server, url):
        work = job(chat("a", url, model="refuses", concurrency=2, n=n), share=0.5)
        with pytest.raises(UserError, match=r"generate: none of 10 rows can be used.*a: refused"):
            run(tmp_path, work, unit(tmp_path, work))
    assert len(server.answered) <= 14
    kept = b"".join(path.read_bytes() for path in (tmp_path / "out/_answers/part-0").iterdir())
    assert len(kept.splitlines()) >= 10 // n
    assert all(json.loads(line)["choices"] for line in kept.splitlines())


def test_what_failed_is_asked_again(tmp_path: Path) -> None:
    with chat_server() as (server, url):
        for key in ("one", "two"):
            work = job(chat("a", url, model="400"))
            _, receipt = run(tmp_path, work, replace(unit(tmp_path, work), key=key))
            assert receipt.rejected == {"a: no answer: HTTP 400: prompt too long": ROWS}
    assert len(server.requests) == 2 * ROWS
