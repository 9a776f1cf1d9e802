"""The pairs that people judge: even over deciles, the same for everybody, few in memory."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pytest

from beam_jobs.io import schema
from models.errors import UserError
from pipeline.judging.sampling import Pair, ScoredRun, sample_pairs
from tests.pipeline.judging.conftest import SCORES


def counts(run: ScoredRun, pairs: list[Pair]) -> np.ndarray:
    """Pairs in each decile of each score."""
    ids = [pair.id for pair in pairs]
    found = np.zeros((len(run.scores), 10), int)
    for table in run.tables([schema.decile(score) for score in run.scores]):
        table = table.filter(pc.is_in(table["id"], pc.cast(ids, "string")))
        for row, score in zip(found, run.scores, strict=True):
            row += np.bincount(table[schema.decile(score)].to_numpy(), minlength=10)
    return found


def test_any_first_part_is_even(write_run: Callable[..., Path]) -> None:
    run = ScoredRun(str(write_run(2000)))
    pairs = sample_pairs(run, 200)
    assert len({pair.id for pair in pairs}) == 200
    for first in (20, 50, 100, 200):
        found = counts(run, pairs[:first])
        assert found.sum() == first * len(SCORES)
        assert np.abs(found - first / 10).max() <= 1
    one = sample_pairs(run, 200, ["length_ratio"])
    assert counts(run, one)[1].tolist() == [20] * 10


def test_everybody_gets_the_same_order(write_run: Callable[..., Path]) -> None:
    pairs = sample_pairs(ScoredRun(str(write_run(2000))), 100)
    assert sample_pairs(ScoredRun(str(write_run(2000, shards=7))), 100) == pairs
    assert sample_pairs(ScoredRun(str(write_run(2000))), 60) == pairs[:60]
    assert sample_pairs(ScoredRun(str(write_run(2000))), 300)[:100] == pairs
    other = sample_pairs(ScoredRun(str(write_run(2000, seed=2))), 100)
    assert len({pair.id for pair in other} & {pair.id for pair in pairs}) < 30
    places = [int(pair.id.removeprefix("p-")) for pair in pairs]
    assert 700 < np.mean(places) < 1300


def test_equal_sides_are_left_out(write_run: Callable[..., Path]) -> None:
    pairs = sample_pairs(ScoredRun(str(write_run(100, equal=60))), 200)
    assert sorted(pair.id for pair in pairs) == [f"p-{i}" for i in range(60, 100)]
    assert sample_pairs(ScoredRun(str(write_run(40, equal=40))), 200) == []


def test_several_translations_of_a_source(write_run: Callable[..., Path]) -> None:
    run = ScoredRun(str(write_run(60, candidates=3)))
    pairs = sample_pairs(run, 200)
    assert len({pair.key for pair in pairs}) == 60
    assert {pair.candidate for pair in pairs} == {0, 1, 2}
    assert {pair.candidate for pair in sample_pairs(ScoredRun(str(write_run(60))), 2)} == {None}


def test_few_rows_are_kept(write_run: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    from pipeline.judging import sampling

    kept: list[int] = []
    add = sampling._LowestHashes.add

    def counted(self: sampling._LowestHashes, table: object) -> None:
        add(self, table)
        assert self.table is not None
        kept.append(self.table.num_rows)

    monkeypatch.setattr(sampling._LowestHashes, "add", counted)
    sample_pairs(ScoredRun(str(write_run(6000, shards=12))), 20)
    assert len(kept) == 12
    assert max(kept) <= 30 * 10 * len(SCORES)


def test_what_cannot_be_sampled(write_run: Callable[..., Path], tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no run here"):
        ScoredRun(str(tmp_path))
    run = write_run()
    with pytest.raises(UserError, match="'bleu' has no deciles in this run; choose from unigram"):
        sample_pairs(ScoredRun(str(run)), 10, ["length_ratio", "bleu"])
    (run / "manifest.json").write_text('{"config": {}, "stages": {}}')
    with pytest.raises(UserError, match="run `paraloom bucket` first"):
        ScoredRun(str(run))
