"""What thresholds keep, against plain counts; the made run is smaller than a sample."""

from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pytest

from paraloom.beam_jobs.engine.shards import Shard
from paraloom.beam_jobs.transforms.conditions import Predicate
from paraloom.beam_jobs.transforms.equal_texts import normalised
from paraloom.beam_jobs.transforms.shares import Deciles
from paraloom.pipeline.cli import main
from paraloom.pipeline.config.selection import SelectOptions
from paraloom.pipeline.judging.judgments import Judgment
from paraloom.pipeline.pages import tradeoffs
from paraloom.pipeline.pages.tradeoffs import TEXTS, Sample, draw, regions, thresholds
from paraloom.pipeline.run.folder import shards_of
from paraloom.pipeline.run.records import RunRecord
from tests.pipeline.pages.made_run import SCORERS, MadeRun
from tests.run_helpers import Capsys, Patch, changed_manifest, refusal


def select_of(**keys: Any) -> SelectOptions:
    """A selection of all pairs but for these keys."""
    return SelectOptions(**{"deciles": None, "max_tokens": None, "per_source": "all", **keys})


SELECT = select_of(by="unigram_f1", deciles=[4, 5, 6, 7, 8], max_tokens=11)
SELECT = SELECT.replace(where=["trigram_overlap <= 0.6"])


@pytest.fixture(scope="module")
def shards(made_run: MadeRun) -> list[Shard]:
    return shards_of(str(made_run.folder), "bucket")


@pytest.fixture(scope="module")
def record(made_run: MadeRun) -> RunRecord:
    return RunRecord.model_validate(made_run.record)


@pytest.fixture(scope="module")
def rows(made_run: MadeRun) -> list[dict[str, Any]]:
    sides = (made_run.pairs[side].combine_chunks() for side in ("reference", "translation"))
    differ = pc.not_equal(*map(normalised, sides))
    return list(made_run.pairs.filter(differ).to_pylist())


@pytest.fixture(scope="module")
def sample(made_run: MadeRun, shards: list[Shard], record: RunRecord) -> Sample:
    """Every pair is judged; long ones are good."""
    judgments = [
        Judgment(
            judge="Anna",
            id=row["id"],
            reference=row["reference"],
            translation=row["translation"] if i % 2 else "changed",
            score=100.0 * (row["reference_tokens"] > 7),
        )
        for i, row in enumerate(made_run.pairs.to_pylist())
    ]
    return Sample.read(shards, record, SCORERS, judgments)


def short(row: dict[str, Any]) -> bool:
    return bool(max(row["reference_tokens"], row["translation_tokens"]) <= 11)


def test_few_rows_of_few_files(made_run: MadeRun, shards: list[Shard], monkeypatch: Patch) -> None:
    drawn = draw(shards, 50, 1, TEXTS)
    assert drawn.equals(draw(shards, 50, 1, TEXTS))
    assert not drawn.equals(draw(shards, 50, 2, TEXTS))
    order = [row["id"] for row in made_run.pairs.to_pylist()]
    places = [order.index(id) for id in drawn["id"].to_pylist()]
    assert places == sorted(set(places)) and len(places) == 50
    assert {place // 120 for place in places} == {0, 1, 2}
    assert draw(shards, 1000, 1, ["id"])["id"].to_pylist() == order
    assert draw([], 5, 1, TEXTS).to_pylist() == []
    monkeypatch.setattr(tradeoffs, "_PART_FILES", 2)
    assert len(draw(shards, 1000, 1, ["id"])) == 240


def test_a_threshold_keeps_what_a_count_keeps(sample: Sample, rows: list[dict[str, Any]]) -> None:
    found = thresholds(SELECT.criteria())
    names = ["trigram_overlap <= 0.6", "unigram_f1_decile >= 4", "unigram_f1_decile <= 8"]
    assert [str(predicate) for predicate, _ in found] == names
    free = [r for r in rows if short(r) and 4 <= r["unigram_f1_decile"] <= 8]
    curve = sample.curve(*found[0])
    assert len(curve.points) > 10
    for point in (*curve.points, curve.chosen):
        (bound,) = point.bounds
        kept = [r for r in free if r["trigram_overlap"] <= np.float32(bound)]
        assert point.rows == len(kept)
        assert point.share == pytest.approx(len(kept) / len(free))
        differences = [1 - r["unigram_f1"] for r in kept]
        assert point.difference == (pytest.approx(median(differences)) if len(kept) >= 20 else None)
        # Every second judgment is of a text that changed.
        judged = [r for r in kept if int(r["id"][2:]) % 2]
        good = sum(r["reference_tokens"] > 7 for r in judged)
        assert (point.good, point.judged) == (good, len(judged))
        assert (point.precision is None) == (len(judged) < 20)
    assert curve.chosen.judged >= 20


def test_a_range_has_two_thresholds_and_tokens_have_none() -> None:
    select = select_of(where=["word_order in 0.1..0.9", "reference_tokens <= 9"])
    found = thresholds(select.criteria())
    assert [str(each) for each, _ in found] == ["word_order >= 0.1", "word_order <= 0.9"]
    assert [str(p) for p in found[0][1].where] == ["word_order <= 0.9", "reference_tokens <= 9"]
    two = select_of(by="word_order", deciles=[1, 2, 5])
    assert thresholds(two.criteria()) == []


def test_pairs_that_just_missed_say_why(sample: Sample) -> None:
    select = select_of(where=["trigram_overlap <= 0.4", "unigram_f1 >= 0.6"], max_tokens=11)
    found = sample.missed(select.criteria(), 9, 1)
    for pair in found:
        tokens = max(pair["reference_tokens"], pair["translation_tokens"])
        overlap, f1 = (np.float32(pair[name]) for name in ("trigram_overlap", "unigram_f1"))
        why = {
            f"more tokens than max_tokens: {tokens}": tokens > 11,
            f"not trigram_overlap <= 0.4: {overlap!s}": overlap > np.float32(0.4),
            f"not unigram_f1 >= 0.6: {f1!s}": f1 < np.float32(0.6),
        }
        assert [reason for reason, fails in why.items() if fails] == [pair["why"]]
    assert len({pair["why"].partition(":")[0] for pair in found}) == 3 == len(found) / 3


def test_the_frontier_keeps_as_many_as_selected(sample: Sample, rows: list[dict[str, Any]]) -> None:
    where = ["trigram_overlap <= 0.5", "translation_score >= -0.5"]
    select = select_of(where=where, max_tokens=11)
    found = sample.frontier(select.criteria(), SCORERS)
    assert found is not None
    free = [r for r in rows if short(r)]
    selected = [r for r in free if r["trigram_overlap"] <= 0.5 and r["translation_score"] >= -0.5]
    assert found.chosen.rows == len(selected)
    bounds = [point.bounds[0] for point in found.points]
    assert bounds == sorted(bounds) and len(bounds) > 5
    for point in found.points:
        wording, meaning = point.bounds
        inside = [r for r in free if r["trigram_overlap"] <= wording]
        best = sorted((r["translation_score"] for r in inside), reverse=True)
        assert meaning == best[len(selected) - 1]
        assert point.rows == len(selected)  # no two pairs have the same score
        assert point.meaning == pytest.approx(median(best[: len(selected)]))
        most, least = map(np.float32, found.shown_bounds(point))
        assert wording <= most < wording + 0.001 and meaning - 0.001 < least <= meaning
    nothing = select_of(where=["trigram_overlap >= 2"]).criteria()
    assert sample.frontier(nothing, SCORERS) is None
    assert sample.frontier(select.criteria(), ["word_order", "translation_score"]) is None


def test_samples_stand_for_all(shards: list[Shard], record: RunRecord, monkeypatch: Patch) -> None:
    monkeypatch.setattr(tradeoffs, "PAIRS", 90)
    sample = Sample.read(shards, record, SCORERS, [])
    assert (len(sample.pairs), sample.scale, len(sample.rows)) == (90, 4.0, 90)
    free = sample.meet(select_of().criteria())
    kept = sample.keep(free, Predicate.parse("unigram_f1 >= 0.5"))
    assert kept.rows == 4 * np.count_nonzero(free & (sample.pairs["unigram_f1"].to_numpy() >= 0.5))
    assert (kept.precision, kept.judged) == (None, 0)


@pytest.mark.parametrize(
    ("chosen", "where"),
    [
        ([8, 9], []),
        ([0, 1], ["translation_score > -1"]),
        (None, ["translation_score_decile in 3..5", "translation_score <= -0.2"]),
        (None, ["translation_score_decile > 4"]),
        (None, ["reference_tokens >= 5"]),
        ([7, 8], ["translation_score_decile >= 7"]),
    ],
)
def test_the_region_holds_what_the_conditions_hold_for(
    made_run: MadeRun, chosen: list[int] | None, where: list[str]
) -> None:
    select = select_of(by="translation_score", deciles=chosen, where=where)
    table, found = made_run.pairs, made_run.record["stages"]["bucket"]["deciles"]
    meets = np.ones(table.num_rows, bool)
    if chosen is not None:
        meets &= np.isin(table["translation_score_decile"].to_numpy(), chosen)
    for condition in map(Predicate.parse, where):
        if condition.column != "reference_tokens":
            meets &= condition.holds(table[condition.column].to_numpy())
    deciles = {name: Deciles.model_validate(of) for name, of in found.items()}
    region = regions(select.criteria(), deciles)
    low, high = region.pop("translation_score", (-np.inf, np.inf))
    values = table["translation_score"].to_numpy()
    # A condition may be strict, an interval has its ends: no value of these pairs is on one.
    assert (((values >= low) & (values <= high)) == meets).all() and not region


def test_the_command_shows_the_frontier(a_run: Path, capsys: Capsys) -> None:
    run = str(a_run / "run")
    assert main(["frontier", run]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "trigram_overlap <= ┃ translation_score >= ┃ pairs" in out
    assert "run's selection" in out
    with changed_manifest(a_run) as content:
        content["config"]["select"]["where"] = ["trigram_overlap >= 1", "trigram_overlap <= 0"]
    line = refusal(capsys, "frontier", run)
    assert "needs 20 selected pairs in a sample of up to 20,000, and score" in line
