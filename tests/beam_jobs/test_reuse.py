"""Kept translations: only sentences whose source is new are translated, with the same result."""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import paraloom.models.nmt.translate
from paraloom.beam_jobs import reuse, storage
from paraloom.beam_jobs.back_translate import Translated
from paraloom.beam_jobs.engine import launch, schema
from paraloom.beam_jobs.engine.launch import Result
from paraloom.beam_jobs.engine.options import connect
from paraloom.beam_jobs.engine.shards import (
    Receipt,
    Unit,
    read_receipt,
    receipts,
    units,
)
from paraloom.beam_jobs.transforms import duplicates
from paraloom.beam_jobs.transforms.translations import PIVOT
from paraloom.models.nmt.translate import SCHEMA
from tests.beam_jobs.test_back_translate import FAST, N_BEST, Reversing, run, tables
from tests.beam_jobs.test_back_translate import reversing as reversing  # a fixture
from tests.run_helpers import Capsys, Patch
from tests.shards import cut as shards_of_rows

Rows = Sequence[tuple[str, str]]  # ids and sources
OPTIONS = {1: FAST, 3: N_BEST}
CORPUS = [(f"id-{n}", f"a{n}") for n in range(10)]


def cut(folder: Path | str, rows: Rows, size: int = 4, candidates: int = 1) -> list[Unit]:
    """The units of a corpus."""
    table = pa.table(
        {
            "id": pa.array([name for name, _ in rows], pa.string()),
            "source": pa.array([text for _, text in rows], pa.string()),
            "reference": pa.array([f"r {name}" for name, _ in rows], pa.string()),
        },
        schema=schema.INGEST,
    )
    shards = shards_of_rows(f"{folder}/ingest-{size}", table, size)
    return units(shards, "key", candidates=candidates)


def made(work: list[Unit], out: Path | str, **more: Any) -> Result:
    """The result of a job whose translations have this key."""
    return run(work, out, options=OPTIONS[work[0].candidates], **{"key": "k", **more})


def again(
    work: list[Unit], out: Path | str, reversing: type[Reversing], **more: Any
) -> tuple[Result, Counter[str]]:
    """The result, and the sentences that were translated for it."""
    reversing.seen.clear()
    return made(work, out, **more), Counter(reversing.seen)


def files(out: Path) -> set[str]:
    """All part files, and what only a job under way needs."""
    kinds = ("part-*.parquet", "_earlier/*", "_hashes/*")
    return {str(path) for kind in kinds for path in out.rglob(kind)}


CHANGES: dict[str, Callable[[list[tuple[str, str]]], Rows]] = {
    "a line inserted at the top": lambda rows: [("id-new", "new"), *rows],
    "a line inserted in the middle": lambda rows: [*rows[:5], ("id-new", "new"), *rows[5:]],
    "lines appended": lambda rows: [*rows, ("id-x", "new"), ("id-y", "x new"), ("id-z", "a3")],
    "a mended source": lambda rows: [*rows[:5], ("id-5", "mended"), *rows[6:]],
    "a mended reference": lambda rows: [*rows[:5], ("other id", "a5"), *rows[6:]],
    "other ids": lambda rows: [(f"other {name}", text) for name, text in rows],
    "lines removed": lambda rows: rows[1:7],
    "reversed": lambda rows: rows[::-1],
    "sorted, with copies": lambda rows: sorted([*rows, ("id-a", "a3"), ("id-b", "a3")]),
    "nothing stays": lambda rows: [("id", "other")],
    "nothing is left": lambda rows: [],
}


@pytest.mark.parametrize("change", CHANGES)
def test_only_new_sources_are_translated(
    tmp_path: Path, reversing: type[Reversing], change: str, capsys: Capsys
) -> None:
    out, rows = tmp_path / "out", CHANGES[change](CORPUS)
    made(cut(tmp_path, CORPUS), out)
    result, seen = again(work := cut(tmp_path, rows), out, reversing)
    known = {text for _, text in CORPUS}
    assert seen == Counter(text for _, text in rows if text not in known)
    assert tables(result) == tables(made(work, tmp_path / "fresh"))
    assert files(out) == {path for of in result.receipts for path in of.paths}
    assert f"sentences translated: {sum(seen.values())}; " in capsys.readouterr().err
    saved = [of.measured(Translated).saved for of in result.receipts]
    kept = sum(of["nmt.reuse"].rows for of in saved if of)
    assert kept <= len(rows) - sum(seen.values())
    assert kept == len(rows) or change not in ("reversed", "other ids")


def draw_rows(draw: random.Random) -> list[tuple[str, str]]:
    texts = [f"{'x' * (n % 5 == 0)}{n}" for n in range(30)]
    return [(f"id-{n}", draw.choice(texts)) for n in range(draw.randrange(25))]


@pytest.mark.parametrize("seed", range(4))
def test_random_corpora_have_the_rows_of_a_fresh_run(
    tmp_path: Path, reversing: type[Reversing], monkeypatch: Patch, seed: int
) -> None:
    """Of two corpora before and one other run, with any shard sizes and number of partitions."""
    draw = random.Random(seed)
    monkeypatch.setattr(duplicates, "_ROWS_PER_PARTITION", draw.choice([3, 10, 1000]))
    how: dict[str, Any] = {"distinct": draw.random() < 0.5}
    candidates = draw.choice([1, 3])
    out, other = tmp_path / "out", tmp_path / "other"
    before = [draw_rows(draw) for _ in range(2)]
    for rows, place in zip(before, (out, other), strict=True):
        made(cut(tmp_path, rows, draw.randrange(1, 9), candidates), place, **how)
    new = draw_rows(draw)
    work = cut(tmp_path, new, draw.randrange(1, 9), candidates)
    result, seen = again(work, out, reversing, reuse=[str(other)], **how)
    known = {text for rows in before for _, text in rows}
    assert set(seen) == {text for _, text in new} - known
    assert tables(result) == tables(made(work, tmp_path / "fresh", **how))


def test_another_key_keeps_nothing(tmp_path: Path, reversing: type[Reversing]) -> None:
    """Translations that belong to none, as drawn ones, and those of another model."""
    rows = [("id-new", "new"), *CORPUS]
    for number, (before, key) in enumerate([("k", "other"), ("", "k"), ("k", "")]):
        out = tmp_path / f"out-{number}"
        made(cut(tmp_path, CORPUS), out, key=before)
        _, seen = again(cut(tmp_path, rows), out, reversing, key=key)
        assert seen == Counter(text for _, text in rows)


def test_killed_jobs_lose_no_translation(
    tmp_path: Path, reversing: type[Reversing], monkeypatch: Patch
) -> None:
    """Also if the corpus changes between, and changes back."""
    out = tmp_path / "out"
    first = [*CORPUS, *((f"id-{n}", f"b{n}") for n in range(10))]
    corpora = [first, [("id-x", "new"), *first], [("id-y", "newer"), ("id-x", "new"), *first]]
    made(cut(tmp_path, first), out)
    seen: Counter[str] = Counter()
    whole = Reversing.translate

    def dies(self: Reversing, sentences: pa.Array, *more: Any, **named: Any) -> Any:
        if len(receipts(str(out))) > 1:
            raise KeyError("killed")
        return whole(self, sentences, *more, **named)

    for rows in (*corpora[1:], first, corpora[2]):
        monkeypatch.setattr(Reversing, "translate", dies)
        with pytest.raises(KeyError):
            again(cut(tmp_path, rows), out, reversing)
        seen += Counter(reversing.seen)
    monkeypatch.setattr(Reversing, "translate", whole)
    work = cut(tmp_path, corpora[2])
    result, last = again(work, out, reversing)
    assert (seen + last).keys() == {"new", "newer"}
    assert max((seen + last).values()) == 1
    assert tables(result) == tables(made(work, tmp_path / "fresh"))
    assert files(out) == {path for of in result.receipts for path in of.paths}


def test_a_resumed_job_makes_the_same_batches(tmp_path: Path, reversing: type[Reversing]) -> None:
    """Its own finished shards give no translations, though they have the same sources."""
    work, out = cut(tmp_path, [(f"id-{n}", "a") for n in range(8)]), tmp_path / "out"
    made(work, out)
    (out / "_receipts" / "all.jsonl").unlink()
    (out / "_receipts" / "part-00000-00001.json").unlink()
    assert again(work, out, reversing)[1] == Counter({"a": 4})


@pytest.mark.parametrize(
    ("of", "damage"),
    [("file", "gone"), ("file", "changed"), ("receipt", "gone"), ("list", "changed")],
)
def test_a_damaged_earlier_shard_is_translated_again(
    tmp_path: Path, reversing: type[Reversing], of: str, damage: str
) -> None:
    out, rows = tmp_path / "out", [("id-new", "new"), *CORPUS]
    made(cut(tmp_path, CORPUS), out)
    receipt = read_receipt(str(out), "part-00000-00001")
    assert receipt is not None
    (out / "_receipts" / "all.jsonl").unlink()
    path = receipt.paths[0] if of == "file" else f"{out}/_receipts/part-00000-00001.json"
    if of == "list":
        path = f"{out}/_earlier/list.jsonl"
        Path(path).parent.mkdir()
    Path(path).write_bytes(b"PAR1") if damage == "changed" else Path(path).unlink()
    result, seen = again(work := cut(tmp_path, rows), out, reversing)
    assert seen == Counter(["new", *(["a4", "a5", "a6", "a7"] if of != "list" else [])])
    assert tables(result) == tables(made(work, tmp_path / "fresh"))


def test_another_run_may_change_meanwhile(
    tmp_path: Path, reversing: type[Reversing], monkeypatch: Patch, capsys: Capsys
) -> None:
    """What has been read stays valid, and what is gone is translated; the other run stays."""
    out, other = tmp_path / "out", tmp_path / "other"
    first = made(cut(tmp_path, CORPUS), other)
    kept = files(other)
    work = cut(tmp_path, [*CORPUS[:5], ("id-new", "new")], 3)
    result, seen = again(work, out, reversing, reuse=[str(other)])
    assert seen == Counter(["new"]) and files(other) == kept

    given = receipts

    def removes(folder: str) -> list[Receipt]:
        found = given(folder)
        Path(first.receipts[0].paths[0]).unlink(missing_ok=True)
        return found

    monkeypatch.setattr(reuse, "receipts", removes)
    fresh, seen = again(work, tmp_path / "again", reversing, reuse=[str(other)])
    assert seen == Counter(["new", "a0", "a1", "a2", "a3"])
    assert tables(fresh) == tables(result)
    capsys.readouterr()
    again(work, tmp_path / "third", reversing, key="other", reuse=[str(other)])
    assert "no translations by this model" in capsys.readouterr().err


def test_a_run_under_way_gives_its_earlier_translations(
    tmp_path: Path, reversing: type[Reversing], monkeypatch: Patch
) -> None:
    other = tmp_path / "other"
    made(cut(tmp_path, CORPUS), other)
    monkeypatch.setattr(launch, "watch_pipeline", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        made(cut(tmp_path, CORPUS[1:]), other)
    monkeypatch.undo()
    monkeypatch.setattr(paraloom.models.nmt.translate, "Translator", Reversing)
    assert receipts(str(other)) == []
    _, seen = again(cut(tmp_path, CORPUS, 3), tmp_path / "out", reversing, reuse=[str(other)])
    assert not seen


def test_a_failure_of_the_engine_is_tried_again_and_other_rejections_are_kept(
    tmp_path: Path, reversing: type[Reversing], monkeypatch: Patch
) -> None:
    class Failing(Reversing):
        def translate(self, sentences: pa.Array, *more: Any, **named: Any) -> Any:
            made, counts = super().translate(sentences, *more, **named)
            rows = made.to_pylist()
            if "a5" in (texts := sentences.to_pylist()):
                rows[texts.index("a5") * self.candidates + 1] = {"reason": "engine failed: E"}
            return pa.RecordBatch.from_pylist(rows, SCHEMA), counts

    rows, out = [*CORPUS[:7], ("id-x", "x8")], tmp_path / "out"
    monkeypatch.setattr(paraloom.models.nmt.translate, "Translator", Failing)
    made(cut(tmp_path, rows, candidates=3), out)
    monkeypatch.setattr(paraloom.models.nmt.translate, "Translator", Reversing)
    work = cut(tmp_path, rows[::-1], candidates=3)
    result, seen = again(work, out, reversing)
    assert seen == Counter(["a5"])
    assert tables(result) == tables(made(work, tmp_path / "fresh"))


def test_the_sources_of_plain_text_are_kept(tmp_path: Path, reversing: type[Reversing]) -> None:
    def plain(rows: list[str]) -> list[Unit]:
        table = pa.table(
            {"id": [f"id-{n}" for n in range(len(rows))], "reference": rows}, schema=schema.TEXT
        )
        return units(shards_of_rows(f"{tmp_path}/text", table, 3), "key")

    made(plain(["a", "b", "xc", "d"]), tmp_path / "out", direction=PIVOT)
    work = plain(["new", "a", "b", "xc", "d"])
    result, seen = again(work, tmp_path / "out", reversing, direction=PIVOT)
    assert seen == Counter(["new"])
    assert tables(result) == tables(made(work, tmp_path / "fresh", direction=PIVOT))


def test_a_little_after_a_large_corpus_reads_only_what_changed(
    tmp_path: Path, reversing: type[Reversing], monkeypatch: Patch
) -> None:
    out = tmp_path / "out"
    made(cut(tmp_path, CORPUS, 2), out)
    monkeypatch.setattr(reuse, "_WORTH", 1)
    rows = [*CORPUS[:-1], ("id-9", "mended"), ("id-x", "a0"), ("id-y", "a8")]
    work = cut(tmp_path, rows, 2)
    assert len(reuse.earlier(work, str(out), "k", [])) == 1
    _, seen = again(work, out, reversing)
    assert seen == Counter(["mended", "a0"])  # two shards of two rows after four
    _, seen = again(cut(tmp_path, rows[::-1], 2), out, reversing)
    assert not seen


@pytest.mark.parametrize("stored", ["s3"], indirect=True)
def test_in_an_object_store(
    stored: tuple[str, list[str]], tmp_path: Path, reversing: type[Reversing]
) -> None:
    place, options = stored
    connect(options, [place])
    out = f"{place}/out"
    made(cut(place, CORPUS), out, arguments=options)
    work = cut(place, [("id-new", "new"), *CORPUS])
    fresh = tables(made(work, tmp_path / "fresh", arguments=options))
    for where, others, new in ((out, [], ["new"]), (f"{place}/beside", [out], [])):
        result, seen = again(work, where, reversing, reuse=others, arguments=options)
        assert seen == Counter(new)
        assert tables(result) == fresh
        assert storage.names(f"{where}/_earlier") == storage.names(f"{where}/_hashes") == []
