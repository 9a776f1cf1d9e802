import gzip
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paraloom.beam_jobs import select
from paraloom.beam_jobs.engine import schema
from paraloom.beam_jobs.engine.shards import DamagedError, Shard, receipts, units
from paraloom.beam_jobs.transforms import corpus_text
from paraloom.beam_jobs.transforms.conditions import Predicate
from paraloom.beam_jobs.transforms.corpus_text import export_tsv, tsv_path
from paraloom.beam_jobs.transforms.criteria import Criteria, decide, near_misses
from paraloom.beam_jobs.transforms.equal_texts import normalised
from tests.run_helpers import Patch, calls_of
from tests.shards import ONE, cut, filled, rows_of

ALL: dict[str, Any] = {"by": "translation_score", "seed": 1}
ALL |= {"deciles": None, "max_tokens": None, "size": None}
DECILES = "outside the selected deciles of translation_score"


def pair(number: int, **more: Any) -> dict[str, Any]:
    return {"reference": f"reference {number}", "translation": f"translation {number}", **more}


def bucketed(folder: Path, rows: list[dict[str, Any]], shard_rows: int = 4) -> list[Shard]:
    """Pairs as the stage `bucket` leaves them, cut into shards."""
    return cut(folder / "bucket", filled(rows, schema.bucketed((ALL["by"],))), shard_rows)


def run(
    shards: list[Shard], out: Path, key: str = "key", **criteria: Any
) -> tuple[list[dict[str, Any]], dict[str, str]]:
    result = select.run(units(shards, key), str(out), Criteria(**ALL | criteria), ONE)
    assert not list(out.parent.glob(f".{out.name}.*"))  # no file is left behind
    reasons = {row["id"]: row["reason"] for row in rows_of(result, rejected=True)}
    return rows_of(result), reasons


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("A dog barks.", "a dog  barks"), ("It's here", "it s here"),
        ("ﬁve Ångström", "five ångström"), ("café", "café"), ("« 12 »", "12"), ("...", ""),
    ],
)  # fmt: skip
def test_texts_are_the_same_by_their_letters_and_digits(text: str, same: str) -> None:
    assert normalised(pa.array([text])).equals(normalised(pa.array([same])))
    texts = ["cafe", "café", "a 1", "a 2", "ab", "a b", "हिन्दी", "हिनदी"]
    assert len(set(normalised(pa.array(texts)).to_pylist())) == len(texts)


def test_every_reason(tmp_path: Path) -> None:
    rows = [
        pair(0),
        pair(1, translation_score_decile=7),
        pair(2, reference_tokens=31),
        pair(3, translation_tokens=31),
        {"reference": "The same.", "translation": "the same!"},
        pair(0),
        pair(6, reference_tokens=30, translation_tokens=30),
        pair(7, translation_score_decile=7, reference_tokens=31),  # the first reason stands
        {"reference": "REFERENCE 0!", "translation": "translation 0"},
        {"reference": "translation 0", "translation": "reference 0"},  # the other way round
        pair(1),  # repeats only one that was rejected
        {"reference": "reference 0", "translation": "translation 1"},
    ]
    shards = bucketed(tmp_path, rows, 3)
    kept, reasons = run(shards, tmp_path / "corpus", deciles=(0,), max_tokens=30)
    assert [row["id"] for row in kept] == ["id-0", "id-6", "id-9", "id-10", "id-11"]
    assert reasons == {
        "id-1": DECILES,
        "id-2": "more tokens than max_tokens",
        "id-3": "more tokens than max_tokens",
        "id-4": "both sides are the same",
        "id-5": "repeats an earlier pair",
        "id-7": DECILES,
        "id-8": "repeats an earlier pair",
    }


WHERE = ("trigram_overlap <= 0.5", "unigram_f1_decile in 2..7", "reference_tokens >= 6")


def test_a_row_is_rejected_for_the_first_condition_that_fails() -> None:
    random = np.random.default_rng(3)
    tokens = random.integers(2, 14, (2, 400)).astype(np.int16)
    table = pa.table(
        {
            "id": [f"id-{i}" for i in range(400)],
            "reference": [f"reference {i}" for i in range(400)],
            "translation": [f"translation {i}" for i in range(400)],
            "reference_tokens": tokens[0],
            "translation_tokens": tokens[1],
            "trigram_overlap": random.random(400).astype(np.float32),
            "unigram_f1_decile": random.integers(0, 10, 400).astype(np.int8),
        }
    )
    options = {"by": "unigram_f1", "deciles": (1, 2, 3, 5), "max_tokens": 11}
    where = tuple(map(Predicate.parse, WHERE))
    reasons, hashes = decide(table, Criteria(**{**ALL, **options, "where": where}))

    def plainly(row: dict[str, Any]) -> str:
        if row["unigram_f1_decile"] not in (1, 2, 3, 5):
            return "outside the selected deciles of unigram_f1"
        if max(row["reference_tokens"], row["translation_tokens"]) > 11:
            return "more tokens than max_tokens"
        if not row["trigram_overlap"] <= 0.5:
            return "not trigram_overlap <= 0.5"
        if not 2 <= row["unigram_f1_decile"] <= 7:
            return "not unigram_f1_decile in 2..7"
        return "" if row["reference_tokens"] >= 6 else "not reference_tokens >= 6"

    assert reasons.tolist() == [plainly(row) for row in table.to_pylist()]
    assert len(set(reasons)) == 6
    assert len(hashes) == (reasons == "").sum()


def test_a_check_that_fails_says_what_it_found() -> None:
    found = ((1, 5), (0, 5), (1, 3))
    rows = [{"same_numbers": same, "reference_tokens": tokens} for same, tokens in found]
    table = filled(rows, schema.bucketed(("same_numbers",)))

    def reasons(*where: str) -> list[str]:
        criteria = {**ALL, "by": "same_numbers", "where": tuple(map(Predicate.parse, where))}
        return list(decide(table, Criteria(**criteria))[0])

    few = "not reference_tokens >= 4"
    assert reasons("same_numbers == 1", "reference_tokens >= 4") == ["", "numbers differ", few]
    assert reasons("same_numbers < 1") == ["not same_numbers < 1", "", "not same_numbers < 1"]


def test_a_draw_is_exact_and_the_same_for_any_shards_in_any_order(tmp_path: Path) -> None:
    rows = [pair(i, id=f"id-{i}", translation_score_decile=i % 2) for i in range(80)]
    drawn = []
    for name, some, n in (("one", rows, 80), ("many", rows[::-1], 11)):
        shards = bucketed(tmp_path / f"in-{name}", some, n)
        kept, reasons = run(shards, tmp_path / name, deciles=(0,), size=7)
        drawn.append({row["id"] for row in kept})
        assert len(kept) == 7
        assert Counter(reasons.values()) == {DECILES: 40, "not drawn": 33}
    assert drawn[0] == drawn[1]


def test_a_draw_depends_on_the_seed_and_is_fair(tmp_path: Path) -> None:
    shards = bucketed(tmp_path, [pair(i) for i in range(1000)], 250)
    found = (run(shards, tmp_path / name, size=500, seed=i)[0] for i, name in enumerate("ab", 1))
    first, other = ({row["id"] for row in rows} for rows in found)
    assert len(first) == len(other) == 500
    assert 200 < len(first & other) < 300  # of 1,000: half of a half, 250 give or take 16
    halves = np.array([int(name[3:]) < 500 for name in first])
    assert 200 < halves.sum() < 300


def test_the_text_form_equals_the_shards_with_any_number_of_threads(tmp_path: Path) -> None:
    scores = [-0.5, -1e-6, -1.1754944e-38, -0.333333343, 0.0, -123.25]
    rows = [pair(i, translation_score=scores[i % 6]) for i in range(23)]
    rows[2]["reference"] = "žluťoučký kůň"
    shards = bucketed(tmp_path, rows, 4)
    result = select.run(units(shards, "key"), str(tmp_path / "out"), Criteria(**ALL), ONE)
    kept = rows_of(result)
    assert kept == [row for s in shards for row in pq.read_table(s.path).to_pylist()]
    text = Path(tsv_path(str(tmp_path / "out"))).read_bytes()
    assert text[4:8] == bytes(4)  # when it was written
    lines = [line.split("\t") for line in gzip.decompress(text).decode().splitlines()]
    assert len(lines) == len(kept) == len(rows)
    for (reference, translation, score), row in zip(lines, kept, strict=True):
        assert [reference, translation] == [row["reference"], row["translation"]]
        assert np.float32(score) == np.float32(row["translation_score"])
    for threads in (1, 3, 9):  # without the parts that the workers had written
        Path(tsv_path(str(tmp_path / "out"))).unlink()
        export_tsv(str(tmp_path / "out"), result.receipts, "translation_score", threads)
        assert Path(tsv_path(str(tmp_path / "out"))).read_bytes() == text


@pytest.mark.parametrize(
    ("damage", "made"),
    [(Path.exists, 0), (Path.unlink, 1), (lambda part: part.write_bytes(b"another"), 1)],
)
def test_workers_compress_the_text_and_the_launcher_appends_it(
    tmp_path: Path, monkeypatch: Patch, damage: Callable[[Path], object], made: int
) -> None:
    shards, out = bucketed(tmp_path, [pair(i) for i in range(23)]), str(tmp_path / "again")
    run(shards, tmp_path / "corpus")
    text = Path(tsv_path(str(tmp_path / "corpus"))).read_bytes()
    assert not list(tmp_path.glob("corpus/_text/*"))
    monkeypatch.setattr(select, "export_tsv", lambda *_: None)  # as if killed there
    run(shards, tmp_path / "again")
    parts = sorted(tmp_path.glob("again/_text/*"))
    assert b"".join(part.read_bytes() for part in parts) == text and len(parts) > 1
    damage(parts[1])
    read = calls_of(monkeypatch, corpus_text, "read_shard")
    export_tsv(out, receipts(out), "translation_score")
    assert (Path(tsv_path(out)).read_bytes(), len(read)) == (text, made)
    assert not list(tmp_path.glob("again/_text/*"))


def test_pairs_that_repeat_others_are_not_drawn(tmp_path: Path, monkeypatch: Patch) -> None:
    """The criteria, which may need a model, are applied once: what was decided is read again."""
    shards = bucketed(tmp_path, [pair(i % 20) for i in range(60)], 30)
    decided = calls_of(monkeypatch, select, "decide")
    kept, reasons = run(shards, tmp_path / "corpus", size=15)
    assert len({row["reference"] for row in kept}) == len(kept) == 15
    assert Counter(reasons.values()) == {"repeats an earlier pair": 40, "not drawn": 5}
    assert [len(table) for table in decided] == [30, 30]


def test_a_selection_that_fails_leaves_no_text_of_another(tmp_path: Path) -> None:
    shards = bucketed(tmp_path, [pair(i) for i in range(5)])
    run(shards, tmp_path / "corpus")
    Path(shards[0].path).write_bytes(b"damaged")
    with pytest.raises(DamagedError):
        run(shards, tmp_path / "corpus", key="another")
    assert not Path(tsv_path(str(tmp_path / "corpus"))).exists()


def test_nothing_stands(tmp_path: Path) -> None:
    shards = bucketed(tmp_path, [pair(i) for i in range(5)])
    kept, _ = run(shards, tmp_path / "corpus", deciles=(9,), size=3)
    assert kept == []
    written = Path(tsv_path(str(tmp_path / "corpus"))).read_bytes()
    assert (gzip.decompress(written), written[4:8]) == (b"", bytes(4))  # no text, no time


def test_near_misses_fail_one_condition() -> None:
    rows = np.random.default_rng(2)
    table = pa.table(
        {
            "reference_tokens": rows.integers(1, 12, 200),
            "translation_tokens": rows.integers(1, 12, 200),
            "translation_score": rows.normal(size=200).astype(np.float32),
            "translation_score_decile": rows.integers(0, 10, 200),
            "reference": ["A dog."] * 200,
            "translation": ["a DOG", *["a cat"] * 9] * 20,
        }
    )
    where = ("translation_score in -0.5..0.75", "reference_tokens > 3")
    of = {"deciles": (2, 6), "max_tokens": 9, "where": tuple(map(Predicate.parse, where))}
    found = zip(*near_misses(table, Criteria(**ALL | of)), strict=True)
    counts = Counter[int]()
    for row, (which, away) in zip(table.to_pylist(), found, strict=True):
        score, decile = row["translation_score"], row["translation_score_decile"]
        tokens = max(row["reference_tokens"], row["translation_tokens"])
        distances = [
            min(abs(decile - 2), abs(decile - 6)),
            max(tokens - 9, 0),
            max(-0.5 - score, score - 0.75, 0),
            abs(3 - row["reference_tokens"]) if row["reference_tokens"] <= 3 else -1,
        ]
        fails = [decile not in (2, 6), tokens > 9, distances[2] > 0, distances[3] >= 0]
        once = sum(fails) == 1 and row["translation"] == "a cat"
        assert which == (fails.index(True) if once else -1)
        if which >= 0:
            assert away == pytest.approx(distances[which])
        counts[which] += 1
    assert set(counts) == {-1, 0, 1, 2, 3}
