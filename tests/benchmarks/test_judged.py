"""The benchmarks on judgments: rewordings, and precisions on references that chose no cut."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.judged_precision import main, split
from benchmarks.judged_rewordings import (
    BASELINE,
    LEARNED,
    Judged,
    chosen,
    combined,
    measure,
    precision,
)
from paraloom.pipeline.judging.agreement import score_labels
from tests.run_helpers import Patch
from tests.sample import real_data


@given(st.lists(st.tuples(st.integers(0, 50), st.booleans(), st.integers(0, 3)), min_size=4))
@settings(max_examples=50)
def test_precision_is_that_of_the_highest_quarter(rows: list[tuple[int, bool, int]]) -> None:
    values = np.array([value + i / 1e6 for i, (value, _, _) in enumerate(rows)])
    good = np.array([row[1] for row in rows])
    times = np.array([4 * row[2] for row in rows])
    if not times.any():
        return
    repeated = sorted(np.repeat(np.arange(len(rows)), times), key=lambda i: -values[i])
    expected = np.mean(good[repeated[: len(repeated) // 4]])
    assert precision(values, good, times[None].astype(float))[0] == pytest.approx(expected)


def judged(seed: int = 0) -> Judged:
    random = np.random.default_rng(seed)
    labels = random.uniform(0, 100, 400)
    scores = {
        "unigram_f1": random.uniform(0, 1, 400),
        BASELINE: labels + random.normal(0, 40, 400),
        "edit_distance": random.normal(size=400),
        "translation_score": labels + random.normal(0, 40, 400),
    }
    group = np.arange(400) // 8
    return Judged(labels, group, group % 2 == 0, scores)


def test_only_what_a_half_chose_is_reported() -> None:
    pairs = judged()
    combinations = combined(pairs)
    names = chosen(pairs, combinations)
    assert names[0] == BASELINE and names[-1] == LEARNED
    assert "+1 sentence_similarity +0.4 translation_score" in names
    assert len(names) <= 4 < len(combinations)
    values = (pairs.scores[BASELINE], combinations[LEARNED])
    alone, both = (measure(pairs, of, 0.7, chooses=False) for of in values)
    assert alone.lead == [0, 0]
    assert both.interval and both.interval[0] < both.precision < both.interval[1]
    assert both.spearman > alone.spearman


def test_pairs_with_equal_values_are_kept_in_the_same_share() -> None:
    good = np.array([True, True, False, False, True, False, False, False])
    ones = np.ones((1, 8))
    assert precision(np.ones(8), good, ones)[0] == pytest.approx(3 / 8)
    checked = np.array([1.0, 0, 0, 0, 0, 0, 0, 0])  # one is kept, and a seventh of the others
    assert precision(checked, good, ones)[0] == pytest.approx((1 + 2 / 7) / 2)


def test_pairs_that_fail_a_check_rank_last() -> None:
    pairs = judged()
    passes = (np.arange(400) % 4 > 0).astype(float)
    pairs.scores["same_numbers"] = passes
    found = combined(pairs)[f"{BASELINE}, if same_numbers"]
    assert found[passes == 0].max() < found[passes == 1].min()
    order, kept = np.argsort(found), passes == 1
    assert np.array_equal(order[100:], [i for i in np.argsort(pairs.scores[BASELINE]) if kept[i]])


@pytest.fixture(scope="module")
def labels(data: Path) -> str:
    return str(real_data(data / "judgments" / "parabank-even.tsv"))


@pytest.mark.parametrize("wanted", [0.8, 0.9])
def test_half_of_the_references_choose_and_the_others_measure(labels: str, wanted: float) -> None:
    names = ["trigram_overlap", "unigram_f1", "edit_distance"]
    pairs = score_labels(labels, names)
    found = [split(pairs, wanted, seed) for seed in range(50)]
    assert sum(s.wilson[0] <= s.measured <= s.wilson[1] for s in found) < 40, (
        "it does not know of the choice"
    )
    assert all(s.wilson[0] >= wanted for s in found if s.reached)


def test_it_prints_both_precisions(labels: str, monkeypatch: Patch, tmp_path: Path) -> None:
    monkeypatch.setattr("benchmarks.measure.RESULTS", tmp_path)
    main(labels, splits=2)
    figures = json.loads((tmp_path / "judged_precision.json").read_text())["figures"]
    assert {name[:3] for name in figures} == {"0.8", "0.9"}
