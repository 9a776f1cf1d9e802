"""Judgments joined with a run's scores."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import permutations, product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest, pearsonr, spearmanr

from paraloom.beam_jobs.engine.shards import read_shard
from paraloom.beam_jobs.transforms.conditions import Predicate
from paraloom.models.errors import UserError
from paraloom.models.scorers import PairScorer
from paraloom.pipeline.config.selection import SelectOptions
from paraloom.pipeline.judging import agreement
from paraloom.pipeline.judging.agreement import (
    JudgedPairs,
    corpus_counts,
    corpus_precisions,
    default_names,
    join,
    measure,
    score_labels,
)
from paraloom.pipeline.judging.cuts import (
    ENOUGH,
    Cut,
    ScoreAgreement,
    pearson_interval,
    recommend,
    spearman,
    wilson,
)
from paraloom.pipeline.judging.describe import alpha, counts_line, describe_judges, select_lines
from paraloom.pipeline.judging.judgments import Action, JudgeFile, Judgment
from paraloom.pipeline.judging.sampling import ScoredRun
from paraloom.pipeline.run.records import PairsRecord, ScorerRecord
from paraloom.pipeline.stages import folder_of
from tests.run_helpers import Patch, WriteConfig, calls_of
from tests.shards import accepted


def rows_of(run: ScoredRun) -> list[dict[str, Any]]:
    return [row for shard in run.shards() for row in read_shard(shard).to_pylist()]


def judged(row: dict[str, Any], score: float, judge: str = "Anna", **other: Any) -> Judgment:
    values = {name: row.get(name) for name in ("id", "candidate", "reference", "translation")}
    return Judgment(judge=judge, score=score, **{**values, **other})


def joined(run: ScoredRun, judgments: list[Judgment]) -> JudgedPairs:
    return join(judgments, run.shards(), run.scores, own={})


def test_a_pair_has_its_scores_and_deciles_and_the_mean_label(write_run: WriteConfig) -> None:
    run = ScoredRun(str(write_run()))
    rows = rows_of(run)
    two = judged(rows[7], 80), judged(rows[7], 50, "Ben"), judged(rows[300], 10)
    pairs = joined(run, list(two))
    found = {row["id"]: i for i, row in enumerate((rows[300], rows[7]))}  # sorted by id
    assert list(found) == sorted(found)
    assert pairs.labels.tolist() == [10, 65]
    assert pairs.references.tolist() == [rows[300]["reference"], rows[7]["reference"]]
    for name in run.scores:
        assert pairs.scores[name].tolist() == [rows[300][name], rows[7][name]]
        assert pairs.deciles[name].tolist() == [rows[i][f"{name}_decile"] for i in (300, 7)]
    assert pairs.counts["judges"] == 2


def test_changed_and_gone_pairs_and_copies_are_counted_and_left_out(write_run: WriteConfig) -> None:
    run = ScoredRun(str(write_run(equal=3)))
    rows = rows_of(run)
    judgments = [
        judged(rows[0], 100),
        judged(rows[1], 100, translation="another"),  # it is a copy now
        judged(rows[6], 70, reference="another"),
        judged(rows[6], 30, "Ben"),
        judged(rows[7], 70, id="of an earlier day"),
        judged(rows[7], 90, "Ben", candidate=1),
    ]
    own = {"length_ratio": ScorerRecord(meaning="", unit="", higher_is_better=False)}
    pairs = join(judgments, run.shards(), run.scores, own=own)
    assert pairs.labels.tolist() == [30, 80]
    assert pairs.higher_is_better == {"unigram_f1": True, "length_ratio": False}
    found = measure(pairs, good=70, precisions=[0.9])
    assert (found.judges, found.judgments, found.copies, found.gone) == (2, 6, 1, 2)
    assert found.alpha == alpha(judgments)
    said = counts_line(found)
    assert ", 2 judges" in said
    gone = "2 judgment(s) of texts that are not in the run"
    assert said.endswith(f"; not counted: 1 pair(s) with equal sides, {gone}")
    for name in run.scores:
        others = Counter(row[f"{name}_decile"] for row in rows[3:])  # those that are no copies
        assert pairs.rows[name] == [others[decile] for decile in range(10)]


def test_under_conditions_only_pairs_that_meet_them_count(write_run: WriteConfig) -> None:
    run = ScoredRun(str(write_run(equal=9)))
    rows = rows_of(run)
    judgments = [judged(row, 100 * (row["unigram_f1"] > 0.3)) for row in rows[::4]]
    where = [*map(Predicate.parse, ("unigram_f1 <= 0.6", "length_ratio_decile in 1..8"))]
    pairs = join(judgments, run.shards(), run.scores, own={}, where=where)
    meets = [r for r in rows if r["unigram_f1"] <= 0.6 and 1 <= r["length_ratio_decile"] <= 8]
    counted = [r for r in meets if r["reference"] != r["translation"]]
    for name in run.scores:
        deciles = Counter(row[f"{name}_decile"] for row in counted)
        assert pairs.rows[name] == [deciles[d] for d in range(10)]
    ids = {row["id"] for row in rows[::4]} & {row["id"] for row in counted}
    assert len(pairs.labels) == len(ids) > 0
    copies = sum(row["reference"] == row["translation"] for row in rows[::4])
    assert pairs.counts["outside"] == 100 - copies - len(ids)
    assert pairs.counts["gone"] == 0
    found = measure(pairs, good=70, precisions=[0.5])
    assert f"with {where[0]} and {where[1]}" in counts_line(found)
    assert found.cuts[0].good == sum(
        row["unigram_f1"] > 0.3 and row[f"{found.cuts[0].score}_decile"] in found.cuts[0].deciles
        for row in counted
        if row["id"] in ids
    )


def test_precision_is_that_of_the_judged_pairs(write_run: WriteConfig, monkeypatch: Patch) -> None:
    """The cards and the report, which ask for it each, read each corpus once."""
    folder = str(write_run())
    run = ScoredRun(folder)
    table = read_shard(run.shards()[0])
    stages = {"select": 60, "selections/strict/select": 20}
    for stage, size in stages.items():
        accepted(f"{folder}/{folder_of(stage)}", "part-0", table.slice(0, size))
    select = SelectOptions.of({"named": {"strict": {"good": 40.0}, "none": {}}})
    config = run.record.config.model_copy(update={"select": select})
    update = {"config": config, "stages": dict.fromkeys(stages, PairsRecord())}
    record = run.record.model_copy(update=update)
    assert corpus_precisions(folder, record) == {}

    rows = rows_of(run)
    texts = "id", "reference", "translation"
    scores = [50.0] * 10 + [80.0] * 30 + [20.0] * 40  # of the rows from the 10th on
    judged = zip(scores, rows[10:], strict=False)
    actions = [Action(score=s, **{n: r[n] for n in texts}) for s, r in judged]
    JudgeFile(folder, "Anna").append(actions)
    JudgeFile(folder, "Ben").append([actions[20].model_copy(update={"score": 10.0})])  # mean 45
    scanned = calls_of(monkeypatch, agreement, "read_shard")
    assert corpus_precisions(folder, record) == {
        "": "Precision of the corpus: 29 of 50, 95% interval 0.44 to 0.71",
        "selections/strict": "Precision of the corpus strict: 10 of 10, 95% interval 0.72 to 1.00",
    }
    assert corpus_counts(folder, record, good=40) == {"": (40, 50), "selections/strict": (10, 10)}
    places = sorted(str(Path(shard.path).parent.relative_to(folder)) for shard in scanned)
    assert places == ["corpus", "selections/strict/corpus"]


def labelled(folder: Path, *first: str) -> str:
    """40 pairs of different sentences, labelled 0 to 5."""
    path = folder / "labels.tsv"
    lines = [f"{i % 6}\tthe dog runs {i}\tthe dog ran {i * 7 % 40}" for i in range(40)]
    path.write_text("".join(f"{line}\n" for line in (*first, *lines)), encoding="utf-8")
    return str(path)


def test_labelled_pairs_have_the_scorers_scores_and_copies_are_left_out(tmp_path: Path) -> None:
    pairs = score_labels(labelled(tmp_path, "5\tsame\tsame"))
    assert list(pairs.scores) == default_names()
    assert pairs.counts == {"copies": 1, "where": [], "outside": 0}
    assert pairs.labels.tolist() == [20 * (i % 6) for i in range(40)]
    assert pairs.references.tolist() == [f"the dog runs {i}" for i in range(40)]
    texts = [pa.array([f"the dog {w} {i}" for i in range(40)]) for w in ("runs", "ran")]
    shuffled = texts[1].take(pa.array([i * 7 % 40 for i in range(40)]))
    expected = PairScorer(["unigram_f1"]).score(texts[0], shuffled)["unigram_f1"]
    assert pairs.scores["unigram_f1"].tolist() == expected.tolist()
    deciles = pairs.deciles["unigram_f1"]
    assert pairs.rows["unigram_f1"] == [4] * 10 == np.bincount(deciles).tolist()
    order = np.lexsort((np.arange(40), expected))  # ties by position
    assert (np.diff(deciles[order]) >= 0).all()
    less = {name for name, higher in pairs.higher_is_better.items() if not higher}
    assert "edit_distance" in less and not {"unigram_f1", "translation_score"} & less


def test_judgments_and_sick_as_labels(tmp_path: Path) -> None:
    path = tmp_path / "labels.tsv"
    path.write_text("reference\tparaphrase\tscore\na\tb\t98.8\na\tc\t0\n")
    found = score_labels(str(path), ["unigram_f1"])
    assert (found.labels.tolist(), found.references.tolist()) == ([98.8, 0], ["a", "a"])
    head = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\n"
    path.write_text(head + "1\ta\tb\t1\n2\ta\tc\t4\n")
    assert score_labels(str(path), ["unigram_f1"]).labels.tolist() == [0, 75]


def test_labelled_pairs_that_do_not_meet_a_condition_do_not_count(tmp_path: Path) -> None:
    path, names = labelled(tmp_path), ["unigram_f1", "edit_distance"]
    where = ["unigram_f1 <= 0.5", "edit_distance_decile in 2..9"]
    every, some = score_labels(path, names), score_labels(path, names, where=where)
    meets = (every.scores["unigram_f1"] <= 0.5) & (every.deciles["edit_distance"] >= 2)
    assert some.labels.tolist() == every.labels[meets].tolist()
    assert some.deciles["edit_distance"].tolist() == every.deciles["edit_distance"][meets].tolist()
    assert 0 < sum(some.rows["edit_distance"]) == meets.sum() < 40
    assert some.counts["outside"] == 40 - meets.sum()
    with pytest.raises(UserError, match="--where: bleu is not a column of the pairs"):
        score_labels(path, names, where=["bleu <= 1"])
    with pytest.raises(UserError, match="needs word vectors"):
        score_labels(path, ["paragram_similarity"])


HIGHER = {"a": True, "b": False}
PLUS_MINUS = np.array([-1, 1])
ROWS = {"a": [100] * 10, "b": [100] * 10}


def recommended(
    deciles: Mapping[str, Any], good: Any, wanted: float, rows: Mapping[str, Sequence[int]] = ROWS
) -> Cut | None:
    """The cut of scores with these deciles of judged pairs, and the pairs that are good."""
    scores = {
        name: ScoreAgreement(
            spearman=None,
            interval=None,
            good=np.bincount(of[good], minlength=10).tolist(),
            judged=np.bincount(of, minlength=10).tolist(),
            rows=[*rows[name]],
            higher_is_better=HIGHER[name],
        )
        for name, of in deciles.items()
    }
    return recommend(scores, wanted)


row = st.tuples(st.integers(-3, 3), st.integers(0, 4), st.integers(0, 5))
few_values = st.lists(row, min_size=2, max_size=40)


@given(few_values)
def test_the_correlation_is_scipys_with_ties(rows: list[tuple[int, int, int]]) -> None:
    scores, labels, references = (np.array(column) for column in zip(*rows, strict=True))
    found = spearman({"s": scores}, labels, len({*references}))["s"]
    if np.ptp(scores) == 0 or np.ptp(labels) == 0:
        assert found[0] is None
    else:
        assert found[0] == pytest.approx(spearmanr(scores, labels).statistic, abs=1e-12)


def test_the_interval_is_bonett_and_wrights() -> None:
    """Of references, not of pairs: those of one reference resemble each other."""
    scores, labels = np.arange(60.0), np.random.default_rng(2).permutation(60).astype(float)
    value, interval = spearman({"s": scores, "less": -scores}, labels, 30)["s"]
    assert value is not None and interval is not None
    error = np.sqrt((1 + value**2 / 2) / 27)
    assert np.arctanh(interval) == pytest.approx(np.arctanh(value) + 1.959964 * error * PLUS_MINUS)


def test_nothing_and_one_reference_have_no_interval() -> None:
    empty = np.array([])
    assert spearman({"s": empty}, empty, 0)["s"] == (None, None)
    one = spearman({"s": np.array([1.0, 1.0])}, np.array([1.0, 2.0]), 1)["s"]
    assert one == (None, None)


@given(st.integers(1, 2000), st.data())
def test_wilson_is_scipys(pairs: int, data: st.DataObject) -> None:
    good = data.draw(st.integers(0, pairs))
    expected = binomtest(good, pairs).proportion_ci(method="wilson")
    assert wilson(good, pairs) == pytest.approx((expected.low, expected.high), abs=1e-9)
    assert wilson(0, pairs)[0] >= 0 and wilson(pairs, pairs)[1] <= 1


@given(
    st.lists(
        st.tuples(st.integers(0, 9), st.integers(0, 9), st.booleans()),
        min_size=1,
        max_size=150,
    ),
    st.sampled_from([0.2, 0.5, 0.8]),
)
@settings(max_examples=60)
def test_no_other_cut_is_better(rows: list[tuple[int, int, bool]], wanted: float) -> None:
    a, b, good = (np.array(column) for column in zip(*rows, strict=True))
    kept = {n: np.bincount(of, minlength=10).tolist() for n, of in (("a", a), ("b", b))}
    found = recommended({"a": a, "b": b}, good.astype(bool), wanted, kept)
    candidates: list[tuple[bool, float, float]] = []
    for deciles, size in product((9 - a, b), range(1, 11)):
        inside = deciles < size
        if inside.any():
            interval = binomtest(int(good[inside].sum()), int(inside.sum()))
            low = interval.proportion_ci(method="wilson").low
            percent, share = 100 * inside.sum() // len(good), good[inside].mean()
            is_sure = low >= wanted and inside.sum() >= ENOUGH
            candidates.append((True, percent, share) if is_sure else (False, low, 0))
    assert found is not None
    reached, best, share = max(candidates)
    assert found.reached == reached
    inside = np.isin(a if found.score == "a" else b, found.deciles)
    assert found.rows == found.judged == inside.sum()
    assert found.good == good[inside].sum()
    assert found.precision == pytest.approx(good[inside].mean())
    whole = binomtest(int(good[inside].sum()), int(inside.sum())).proportion_ci(method="wilson")
    assert found.wilson == pytest.approx((whole.low, whole.high))
    if reached:
        assert 100 * found.rows // len(good) == best
        assert found.precision == pytest.approx(share)
        assert found.wilson[0] >= wanted
    else:
        assert found.wilson[0] == pytest.approx(best)


def cut_of(
    deciles: Mapping[str, Any], good: Any, wanted: float, rows: Mapping[str, Sequence[int]] = ROWS
) -> Cut:
    cut = recommended(deciles, good, wanted, rows)
    assert cut is not None
    return cut


def test_deciles_without_judgments_end_a_cut() -> None:
    deciles, every = np.repeat([9, 7, 6], 50), np.ones(150, bool)
    assert cut_of({"a": deciles}, every, 0.8).deciles == (9,)
    assert recommended({"b": deciles}, every, 0.8) is None
    nothing = np.array([], int)
    assert recommended({"a": nothing}, nothing > 0, 0.8) is None
    assert recommend({}, 0.8) is None
    # But the best two deciles may consist of copies, which nobody judges and nothing keeps.
    eight = np.repeat(np.arange(8), 20)
    cut = cut_of({"a": eight}, eight >= 5, 0.9, {"a": [100] * 8 + [0, 0]})
    assert cut.reached
    assert (cut.deciles, cut.rows, cut.precision) == ((5, 6, 7, 8, 9), 300, 1.0)


@pytest.mark.parametrize("pairs", [4, 19, 20])
def test_few_judgments_are_certain_of_nothing(pairs: int) -> None:
    many = pairs >= ENOUGH
    cut = cut_of({"a": 9 - np.arange(pairs) % 10}, np.ones(pairs, bool), 0.5)
    assert cut.reached == many and cut.wilson[0] < 1
    scores, labels = np.arange(pairs, dtype=float), np.arange(pairs) * 5.0
    value, interval = spearman({"s": scores}, labels, pairs)["s"]
    assert value == pytest.approx(1)
    assert interval == (pytest.approx((1, 1)) if many else None)


def test_a_few_pairs_of_many_recommend_no_cut() -> None:
    """Nine good ones in the best decile, whatever was judged elsewhere."""
    deciles = np.repeat([9, *range(9)], [9, *[20] * 9])
    cut = cut_of({"a": deciles}, deciles == 9, 0.6)
    assert not cut.reached and cut.wilson[0] > 0.6
    where = ["unigram_f1 <= 0.7", 'domain != "a, b: c"']
    selection = {"by": "a", "deciles": [*cut.deciles], "where": where}
    assert yaml.safe_load(select_lines(cut, where)) == {"select": selection}


def test_the_interval_of_a_correlation_is_scipys() -> None:
    random = np.random.default_rng(3)
    first = random.normal(size=50)
    found = pearsonr(first, first + random.normal(size=50))
    interval = pearson_interval(100 * found.statistic, 50)
    assert interval == pytest.approx([100 * end for end in found.confidence_interval()])
    assert (pearson_interval(50, 19), pearson_interval(100, 50)) == (None, None)


SCORES = {"a": [10, 20, None, 70, 100, 5], "b": [15, 20, 30, 60, None, 95]}
SCORES["c"] = [None, 25, None, 80, 90, 0]


def judgments(scores: dict[str, list[int | None]]) -> list[Judgment]:
    return [
        Judgment(judge=judge, id=f"{i}", reference=f"r {i}", translation="t", score=s)
        for judge, values in scores.items()
        for i, s in enumerate(values)
        if s is not None
    ]


def test_alpha_is_its_definition() -> None:
    """1 − observed / expected disagreement (Krippendorff 2004), of squared differences."""
    units = [[v for v in unit if v is not None] for unit in zip(*SCORES.values(), strict=True)]
    units = [unit for unit in units if len(unit) > 1]
    values = [value for unit in units for value in unit]
    squares = (sum((a - b) ** 2 for a, b in permutations(u, 2)) / (len(u) - 1) for u in units)
    observed = sum(squares) / len(values)
    expected = sum((a - b) ** 2 for a, b in product(values, repeat=2))
    defined = 1 - observed / (expected / (len(values) * (len(values) - 1)))
    np.testing.assert_allclose(alpha(judgments(SCORES)) or 0, defined, rtol=1e-12)


def test_alpha_that_is_not_defined() -> None:
    found: list[dict[str, list[int | None]]] = [{"a": [1, 2]}, {"a": [3], "b": [3]}]
    for scores in (*found, {"a": [1, None], "b": [None, 2]}):
        assert alpha(judgments(scores)) is None
    first, second, *others = judgments({"a": [1, 2], "b": [1, 2]})
    assert alpha([first, second, *others]) == 1
    for change in ({"reference": "x"}, {"translation": "x"}):
        changed = [found.model_copy(update=change) for found in others]  # judged another pair
        assert alpha([first, second, *changed]) is None
    renamed = [of.model_copy(update={"id": "x", "candidate": 1}) for of in others]
    assert alpha([first, second, *renamed]) == 1


def test_the_lines_of_judges() -> None:
    assert describe_judges([]) == []
    assert describe_judges(judgments({"a": [1]})) == ["pairs judged by a: 1"]
    *lines, last = describe_judges(judgments(SCORES)[::-1])
    assert lines == [f"pairs judged by {name}" for name in ("a: 5", "b: 5", "c: 4")]
    value = f"{alpha(judgments(SCORES)):.2f}"
    assert last == f"agreement on 5 pairs with several judges: Krippendorff's alpha {value}"
