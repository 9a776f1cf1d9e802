"""Drawing: the same whatever the shards and the workers, no pair twice, none that is rejected."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paraloom.beam_jobs.analysis.sampling import DecileSample, run
from paraloom.beam_jobs.io.shards import Shard, units
from paraloom.beam_jobs.select import Criteria
from tests.shards import Write

ALL = Criteria(by="", deciles=None, max_tokens=None, size=None, seed=1)
ROWS = 600


@pytest.fixture
def rows() -> list[dict[str, Any]]:
    """Every pair that is a multiple of 7 repeats the one before, every 10th has equal sides."""
    made = []
    for i in range(ROWS):
        n = i - 1 if i % 7 == 0 and i else i
        made.append(
            {
                "reference": f"Sentence {n}.",
                "translation": f"sentence {n}" if n % 10 == 9 else f"phrase {n}",
                "reference_tokens": 3 + n % 30,
                "translation_score_decile": i * 10 // ROWS,
            }
        )
    return made


def draw(
    shards: list[Shard],
    tmp_path: Path,
    *,
    most: int = ROWS,
    seeds: tuple[int, ...] = (1, 2),
    criteria: Criteria = ALL,
    workers: int = 1,
) -> DecileSample:
    arguments = [f"--direct_num_workers={workers}"]
    scorers = ["translation_score"]
    work = units(shards, "key")
    place = str(tmp_path / f"draw{workers}")
    return run(work, place, criteria, scorers, arguments, most=most, seeds=seeds)


def test_everything_where_there_is_little(
    bucketed: Write, rows: list[dict[str, Any]], tmp_path: Path
) -> None:
    drawn = draw(bucketed(rows, 100), tmp_path, most=ROWS)
    texts, _ = drawn.texts(drawn.rows(1))
    numbers = [int(text.strip(".").split()[1]) for text in texts.to_pylist()]
    wanted = {n for i in range(ROWS) if (n := i - 1 if i % 7 == 0 and i else i) % 10 != 9}
    assert sorted(numbers) == sorted(wanted)
    assert np.array_equal(drawn.rows(1), drawn.rows(2))


def test_conditions_are_those_of_the_selection(
    bucketed: Write, rows: list[dict[str, Any]], tmp_path: Path
) -> None:
    criteria = Criteria(by="x", deciles=(3,), max_tokens=12, size=5, seed=1)
    drawn = draw(bucketed(rows, 100), tmp_path, most=ROWS, criteria=criteria)
    ids = {f"id-{i}" for i, row in enumerate(rows) if row["reference_tokens"] <= 12}
    found = set(drawn.table["id"].to_pylist())
    assert found < ids and len(found) > 0.8 * len(ids)
    assert set(drawn.table["translation_score_decile"].to_pylist()) == set(range(10))


def test_the_same_for_other_shards_and_workers(
    bucketed: Write, rows: list[dict[str, Any]], tmp_path: Path
) -> None:
    one = draw(bucketed(rows, 100), tmp_path, most=10)
    two = draw(bucketed(rows, 61, "other"), tmp_path, most=10, workers=2)
    assert one.table.equals(two.table)
    for seed in (1, 2):
        assert 100 <= len(one.rows(seed)) < 300
        assert one.digest(one.rows(seed)) == two.digest(two.rows(seed))
    assert set(one.rows(1)) != set(one.rows(2))
    assert set(one.rows(1)) | set(one.rows(2)) == set(range(len(one.table))) - repeats(one)


def test_a_decile_with_few_rows_that_stand_is_drawn_on(bucketed: Write, tmp_path: Path) -> None:
    """Of 12,000 rows 1,200 are in each decile; of decile 8 a tenth stands, of decile 9 five."""
    tokens = {8: lambda i: 3 if i % 10 == 0 else 40, 9: lambda i: 3 if i % 240 == 0 else 40}
    made = [
        {
            "reference": f"Sentence {i}.",
            "translation": f"phrase {i}",
            "reference_tokens": tokens.get(i // 1200, lambda i: 3)(i),
            "translation_score_decile": i // 1200,
        }
        for i in range(12_000)
    ]
    criteria = Criteria(by="", deciles=None, max_tokens=30, size=None, seed=1)
    shards = bucketed(made, 4000)
    some, everything = (
        draw(shards, tmp_path / str(most), most=most, criteria=criteria) for most in (60, 12_000)
    )
    name = "translation_score"
    for seed, counts in zip((1, 2), some.counts((1, 2), name), strict=True):
        for decile, standing in enumerate([1200] * 8 + [120, 5]):
            found = len(some.rows(seed, name, (decile,)))
            assert min(60, standing) <= found < 300
            assert counts[decile] == found
            assert found / some.shares(name)[decile] == pytest.approx(standing, rel=0.4)
        # the same as if all had been drawn, also where shares differ
        for deciles in ((7, 8, 9), (8, 9), tuple(range(10))):
            of = [d.texts(d.rows(seed, name, deciles, most=60))[0] for d in (some, everything)]
            assert of[0].equals(of[1]) and len(of[0]) == 60
    assert len(some.table) < 4000


def repeats(drawn: DecileSample) -> set[int]:
    """Rows whose texts an earlier one has."""
    seen: Counter[str] = Counter()
    found = set()
    for row, text in enumerate(drawn.table["reference"].to_pylist()):
        seen[text] += 1
        if seen[text] > 1:
            found.add(row)
    return found


def test_of_some_deciles_so_many_at_most(
    bucketed: Write, rows: list[dict[str, Any]], tmp_path: Path
) -> None:
    drawn = draw(bucketed(rows, 100), tmp_path, most=ROWS)
    deciles = drawn.table["translation_score_decile"].to_numpy()
    chosen = drawn.rows(1, "translation_score", (2, 3))
    assert set(deciles[chosen]) == {2, 3}
    few = drawn.rows(1, "translation_score", (2, 3), most=20)
    assert len(few) == 20 and set(few) < set(chosen)
    assert set(few) < set(drawn.rows(1, "translation_score", (2, 3), most=30))
    other = drawn.rows(2, "translation_score", (2, 3), most=20)
    assert 0 < len(set(few) & set(other)) < 20
    assert len(drawn.rows(1, "translation_score", (2, 3), most=10_000)) == len(chosen)


def test_the_digest_is_that_of_the_texts(
    bucketed: Write, rows: list[dict[str, Any]], tmp_path: Path
) -> None:
    before = draw(bucketed(rows, 100), tmp_path, most=ROWS)
    rows[1]["reference"] = "Sentence 1!"  # normalised it is as before
    after = draw(bucketed(rows, 100, "other"), tmp_path, most=ROWS)
    assert before.table["hash"].equals(after.table["hash"])
    assert before.digest(before.rows(1)) != after.digest(after.rows(1))
