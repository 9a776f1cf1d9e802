"""Selection among several translations of a source, of one generator or of several."""

from collections import Counter
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paraloom.beam_jobs import bucket, select
from paraloom.beam_jobs.diff import diff_shards
from paraloom.beam_jobs.engine import schema
from paraloom.beam_jobs.engine.shards import Shard, read_shard, units, write_shard
from paraloom.beam_jobs.transforms.criteria import (
    Criteria,
    PerSource,
    best_candidates,
    decide,
    diverse_candidates,
    preview,
)
from paraloom.beam_jobs.transforms.shares import quotas
from paraloom.models.scorers import PairScorer
from tests.shards import ONE, cut, filled, rows_of, shards_of

SCORE = ("translation_score",)
ALL = Criteria(by=SCORE[0], deciles=None, max_tokens=None, size=None, seed=1)
WORDS = ["dog", "cat", "runs", "sits", "fast", "here"]


def scored(folder: Path, sources: int, candidates: int, shard_rows: int, seed: int) -> list[Shard]:
    """Pairs as `score` leaves them, with several translations of each source."""
    random = np.random.default_rng(seed)
    rows = [
        {
            "id": f"id-{source}",
            "reference": f"reference {source}",
            "translation": " ".join(random.choice(WORDS, 4)),
            "translation_score": np.float32(-candidate // 2),  # ties
            "candidate": candidate,
        }
        for source in range(sources)
        for candidate in range(candidates)
    ]
    table = filled(rows, schema.scored(SCORE, candidates=True))
    return cut(folder, table, shard_rows * candidates)


def bucketed(shards: list[Shard], folder: Path) -> list[Shard]:
    return shards_of(bucket.run(units(shards, "b"), str(folder), SCORE, ONE))


def test_shards_make_no_difference_and_rows_are_conserved(tmp_path: Path) -> None:
    criteria = replace(ALL, deciles=(2, 3, 4, 5, 6, 7, 8, 9), size=9)
    criteria = replace(criteria, per_source="diverse", max_overlap=0.4)
    found = []
    for number in (4, 100):
        made = scored(tmp_path / f"in-{number}", 23, 4, number, seed=1)
        shards = bucketed(made, tmp_path / f"bucket-{number}")
        result = select.run(units(shards, "s"), str(tmp_path / f"out-{number}"), criteria, ONE)
        found.append(result)
        lost = rows_of(result, rejected=True)
        left = {(row["id"], row["candidate"]) for row in [*rows_of(result), *lost]}
        assert left == {(f"id-{i}", k) for i in range(23) for k in range(4)}
        outside = f"outside the selected deciles of {SCORE[0]}"
        assert {row["reason"] for row in lost} >= {"not drawn", outside}
    assert rows_of(found[0]) == rows_of(found[1])
    assert len(rows_of(found[0])) == 9
    assert not diff_shards(*map(shards_of, found))


LINES = ["l'homme", "homme", "Homme.", "l'homme court vite", "homme", "un chat", "L'homme", "chat"]


def by_source(kind: PerSource, max_overlap: float, language: str) -> list[str]:
    """Why `decide` rejects the candidates of two sources; the texts of some are the reference's."""
    table = pa.table(
        {
            "id": ["a"] * 4 + ["b"] * 4,
            "candidate": [*range(4), *range(4)],
            "reference": ["homme"] * 4 + ["un chat"] * 4,
            "translation": LINES,
            "reference_tokens": [1] * 8,
            "translation_tokens": [2] * 8,
        }
    )
    criteria = replace(ALL, per_source=kind, max_overlap=max_overlap, language=language)
    reasons, hashes = decide(table, criteria)
    accepted = table.filter(pa.array(reasons == ""))
    assert np.array_equal(hashes, decide(accepted, ALL)[1])
    return list(reasons)


def test_one_source_at_a_time_after_the_other_conditions() -> None:
    same, best = "both sides are the same", "not the best translation of its source"
    similar = "too similar to another translation of its source"
    copies = ["", same, same, "", "", same, "", ""]
    assert by_source("all", 0.0, "fr") == copies
    assert by_source("best", 0.0, "fr") == ["", same, same, best, "", same, best, best]
    assert by_source("diverse", 1.0, "fr") == copies
    # In French l' is a word of its own: homme is in both, and l'homme in the longer one.
    assert by_source("diverse", 0.5, "fr") == ["", same, same, similar, "", same, similar, ""]
    assert by_source("diverse", 0.5, "en") == ["", same, same, similar, "", same, "", ""]


def test_runs_are_compared_by_candidate(tmp_path: Path) -> None:
    (shard,) = scored(tmp_path / "a", 3, 3, 100, 1)
    table = pq.read_table(shard.path)
    rows = table.filter(pa.array([True, False] + [True] * 7))
    without = write_shard(f"{tmp_path}/b/part.parquet", rows)
    (row,) = diff_shards([shard], [without]).values()
    assert row.rows == 1


def test_a_pair_repeats_only_pairs_that_are_in_the_corpus(tmp_path: Path) -> None:
    (shard,) = scored(tmp_path / "in", 2, 2, 100, 1)
    table = pq.read_table(shard.path)
    texts = ["a dog runs", "a dog sits", "a dog sits", "one dog sits"]
    for name, column in (("reference", ["a dog"] * 4), ("translation", texts)):
        table = table.set_column(table.column_names.index(name), name, pa.array(column))
    shards = [write_shard(f"{tmp_path}/new/part.parquet", table)]
    criteria = replace(ALL, per_source="best")
    result = select.run(units(shards, "s"), str(tmp_path / "out"), criteria, ONE)
    assert [row["translation"] for row in rows_of(result)] == ["a dog runs", "a dog sits"]


def sources(*translations: list[str]) -> pa.Table:
    """The translations of each source, the best first."""
    rows = [
        {"id": f"s{i}", "candidate": k, "translation": text}
        for i, texts in enumerate(translations)
        for k, text in enumerate(texts)
    ]
    form = pa.schema([("id", pa.string()), ("candidate", pa.int8()), ("translation", pa.string())])
    return pa.Table.from_pylist(rows, form)


def overlap(first: str, second: str) -> float:
    sides = pa.array([first]), pa.array([second])
    scores = PairScorer(["trigram_overlap", "unigram_f1"]).score(*sides)
    short = min(len(first.split()), len(second.split())) < 3
    return float(scores["unigram_f1" if short else "trigram_overlap"][0])


def greedy(texts: list[str], bound: float) -> list[bool]:
    """As the issue says it, one source at a time."""
    kept = [0] if texts else []
    while True:
        rest = [k for k in range(len(texts)) if k not in kept]
        nearest = {k: max(overlap(texts[k], texts[j]) for j in kept) for k in rest}
        if not rest or min(nearest.values()) > bound:
            return [k in kept for k in range(len(texts))]
        kept.append(min(rest, key=lambda k: (nearest[k], k)))


def test_the_best_is_the_first_that_is_left() -> None:
    table = sources(["a b c", "a b d"], ["x"], [], ["y", "z"])
    assert best_candidates(table).tolist() == [True, False, True, True, False]
    assert best_candidates(table.slice(1)).tolist() == [True, True, True, False]
    assert best_candidates(table.slice(0, 0)).tolist() == []


@settings(max_examples=60)
@given(
    seed=st.integers(0, 10_000),
    counts=st.lists(st.integers(1, 5), max_size=5),
    bound=st.sampled_from([0.0, 0.3, 0.5, 1.0]),
)
def test_diverse_candidates_are_those_of_a_loop(seed: int, counts: list[int], bound: float) -> None:
    random = np.random.default_rng(seed)
    texts = [
        [" ".join(random.choice(list("abc"), random.integers(1, 7))) for _ in range(count)]
        for count in counts
    ]
    found = diverse_candidates(sources(*texts), bound)
    assert found.tolist() == [kept for each in texts for kept in greedy(each, bound)]


PAIRS = 60


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> list[Shard]:
    """Each pair has a candidate of nmt, two of a; every third has one of b, the best."""
    rng = np.random.default_rng(3)
    rows: list[dict[str, Any]] = []
    for i in range(PAIRS):
        makers = ["nmt", "a", "a", *(["b"] if i % 3 == 0 else [])]
        for number, name in enumerate(makers):
            score = -0.01 if name == "b" else -float(rng.uniform(0.1, 2))
            words = {"reference": f"dog {i}", "translation": f"{name} says {i} {number} things"}
            of = {"id": f"pair-{i}", "candidate": number, "generator": name}
            rows.append({**of, **words, "translation_score": score})
    table = filled(rows, schema.bucketed(SCORE, generators=True))
    return cut(tmp_path_factory.mktemp("bucket"), table, 100)


def run(shards: list[Shard], folder: Path, **options: Any) -> pa.Table:
    criteria = replace(ALL, generators=True, rank=SCORE[0], **options)
    result = select.run(units(shards, "key"), str(folder), criteria, ONE)
    found = pa.concat_tables(map(read_shard, shards_of(result)))
    rejected = sum((Counter(of.rejected) for of in result.receipts), Counter[str]())
    assert preview(shards, criteria).counts == {**rejected, "selected": len(found)}
    return found


def test_the_best_candidate_may_be_of_any_generator(shards: list[Shard], tmp_path: Path) -> None:
    found = run(shards, tmp_path, per_source="best").to_pylist()
    rows = [row for shard in shards for row in read_shard(shard).to_pylist()]
    best: dict[str, Any] = {}
    for row in rows:
        if row["id"] not in best or row["translation_score"] > best[row["id"]]["translation_score"]:
            best[row["id"]] = row
    assert found == [best[f"pair-{i}"] for i in range(PAIRS)]
    assert Counter(row["generator"] for row in found)["b"] == PAIRS // 3


@pytest.mark.parametrize(
    ("share", "size", "expected"),
    [
        (0.4, None, {"nmt": 40, "a": 40, "b": 20}),
        (0.5, None, {"nmt": 60, "a": 80, "b": 20}),
        (0.5, 40, {"nmt": 15, "a": 20, "b": 5}),
        (0.9, None, {"nmt": 60, "a": 120, "b": 20}),
    ],
)
def test_shares_are_exact(
    shards: list[Shard], tmp_path: Path, share: float, size: int | None, expected: dict[str, int]
) -> None:
    found = run(shards, tmp_path, per_generator=share, size=size)
    counts = Counter(found["generator"].to_pylist())
    assert max(counts.values()) <= share * counts.total()
    assert counts == expected


def test_who_stays_depends_on_the_seed_alone(shards: list[Shard], tmp_path: Path) -> None:
    seeds = enumerate((1, 1, 2))
    found = [run(shards, tmp_path / f"{i}", per_generator=0.4, seed=seed) for i, seed in seeds]
    first, again, other = found
    assert first.equals(again)
    assert not first.equals(other)
    assert Counter(first["generator"].to_pylist()) == Counter(other["generator"].to_pylist())


FEW = st.lists(st.integers(0, 9), min_size=1, max_size=3)


def largest(rows: list[int], share: float, size: int) -> int:
    """By trying everything: a total T is possible if some counts add up to it."""
    found = 0
    for counts in product(*(range(n + 1) for n in rows)):
        total = sum(counts)
        if total <= size and all(n <= share * total + 1e-9 for n in counts):
            found = max(found, total)
    return found


@given(FEW, st.sampled_from([0.1, 0.4, 0.5, 0.6, 0.7, 0.75, 0.9]), st.integers(1, 30))
def test_the_total_is_the_largest_possible(rows: list[int], share: float, size: int) -> None:
    found = quotas({str(i): n for i, n in enumerate(rows)}, share, size)
    total = sum(found.values())
    assert total == largest(rows, share, size)
    assert all(found[str(i)] <= n for i, n in enumerate(rows))
    assert all(n <= share * total + 1e-9 for n in found.values())


def test_what_is_left_out_is_in_proportion() -> None:
    assert quotas({"sample": 10}, None, 4) == {"sample": 4}
    assert quotas({"sample": 3}, None, 4) == {"sample": 3}
    assert quotas({"a": 600, "b": 400, "c": 200}, 0.9, 100) == {"a": 50, "b": 33, "c": 17}
