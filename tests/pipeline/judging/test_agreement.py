"""Judgments joined with a run's scores."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from paraloom.beam_jobs.engine.shards import Shard, read_shard
from paraloom.beam_jobs.transforms.conditions import Predicate
from paraloom.models.errors import UserError
from paraloom.models.scorers import PairScorer
from paraloom.pipeline.config.selection import SelectOptions
from paraloom.pipeline.judging import agreement
from paraloom.pipeline.judging.agreement import (
    JudgedPairs,
    corpus_precisions,
    default_names,
    join,
    measure,
    score_labels,
)
from paraloom.pipeline.judging.cuts import recommend, spearman
from paraloom.pipeline.judging.describe import alpha, counts_line
from paraloom.pipeline.judging.judgments import Action, JudgeFile, Judgment
from paraloom.pipeline.judging.sampling import ScoredRun
from paraloom.pipeline.run.records import PairsRecord, ScorerRecord
from paraloom.pipeline.stages import folder_of
from tests.run_helpers import WriteConfig
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
        judged(rows[7], 70, id="no such pair"),
        judged(rows[8], 70, candidate=1),
    ]
    own = {"length_ratio": ScorerRecord(meaning="", unit="", higher_is_better=False)}
    pairs = join(judgments, run.shards(), run.scores, own=own)
    assert pairs.labels.tolist() == [30]
    assert pairs.higher_is_better == {"unigram_f1": True, "length_ratio": False}
    found = measure(pairs, good=70, precisions=[0.9])
    assert (found.judges, found.judgments, found.copies, found.gone) == (2, 6, 1, 4)
    assert found.alpha == alpha(judgments)
    said = counts_line(found)
    assert ", 2 judges" in said
    assert said.endswith("pairs not counted: 1 of equal sides, 4 that the run does not have")
    for name in run.scores:
        others = Counter(row[f"{name}_decile"] for row in rows[3:])  # those that are no copies
        assert pairs.rows[name] == [others[decile] for decile in range(10)]


def made_pairs() -> JudgedPairs:
    """60 judged pairs of 30 references; `less` is better where it is less."""
    random = np.random.default_rng(1)
    labels = (10 * random.integers(0, 11, 60)).astype(np.float64)
    scores = {"more": labels + random.normal(0, 20, 60), "less": -labels + random.normal(0, 9, 60)}
    return JudgedPairs(
        labels=labels,
        references=np.array([f"reference {i // 2}" for i in range(60)], object),
        scores=scores,
        deciles={name: of.argsort().argsort() // 6 for name, of in scores.items()},
        rows={"more": [100] * 10, "less": [50] * 5 + [150] * 5},
        higher_is_better={"more": True, "less": False},
    )


def test_every_number_is_that_of_its_definition() -> None:
    pairs = made_pairs()
    found = measure(pairs, good=70, precisions=[0.9, 0.5])
    good = pairs.labels >= 70
    assert (pairs.labels == 70).any()
    assert (found.pairs, found.references, found.rows) == (60, 30, 1000)
    assert found.good_pairs == good.sum()
    correlations = spearman(pairs.scores, pairs.labels, 30)
    for name, of in found.scores.items():
        assert (of.spearman, of.interval) == correlations[name]
        assert of.judged == [6] * 10
        deciles = pairs.deciles[name]
        assert of.good == [int(good[deciles == decile].sum()) for decile in range(10)]
        assert of.rows == pairs.rows[name]
    given = pairs.deciles, pairs.higher_is_better, good, pairs.rows
    assert found.cuts == [recommend(*given, wanted) for wanted in (0.9, 0.5)]


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


def test_the_precision_of_each_corpus_is_that_of_its_judged_pairs(
    write_run: WriteConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    actions = [
        Action(score=s, **{n: r[n] for n in texts}) for s, r in zip(scores, rows[10:], strict=False)
    ]
    JudgeFile(folder, "Anna").append(actions)
    JudgeFile(folder, "Ben").append([actions[20].model_copy(update={"score": 10.0})])  # mean 45
    scanned = list[str]()

    def scan(shard: Shard, columns: list[str]) -> pa.Table:
        scanned.append(shard.path.removeprefix(folder))
        return read_shard(shard, columns)

    monkeypatch.setattr(agreement, "read_shard", scan)
    assert corpus_precisions(folder, record) == {
        "": "Precision of the corpus: 29 of 50, 95% interval 0.44 to 0.71",
        "selections/strict": "Precision of the corpus strict: 10 of 10, 95% interval 0.72 to 1.00",
    }
    assert corpus_precisions(folder, record, good=40)[""].startswith("Precision of the corpus: 40")
    assert sorted(Path(path).parent.as_posix() for path in scanned) == [
        "/corpus",
        "/selections/strict/corpus",
    ]


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
    with pytest.raises(UserError, match="--where: bleu is no column of the pairs"):
        score_labels(path, names, where=["bleu <= 1"])
    with pytest.raises(UserError, match="needs word vectors"):
        score_labels(path, ["paragram_similarity"])
