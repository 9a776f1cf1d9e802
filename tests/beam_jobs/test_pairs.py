"""The transforms give what the functions that a run uses give, in a pipeline of the user's."""

import re
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pytest
from apache_beam.metrics.metric import MetricsFilter
from apache_beam.testing.util import assert_that, equal_to

from paraloom.beam_jobs.pairs import BackTranslate, ExactDeciles, ScorePairs
from paraloom.models.nmt.options import NmtOptions
from paraloom.models.nmt.translate import Translator
from paraloom.models.scorers import PairScorer
from tests.shards import deciles_by_a_sort
from tests.small_model import new_pairs

PAGE = Path(__file__).resolve().parents[2] / "docs" / "beam.md"


def test_all_three_in_one_pipeline(nmt_model: Path) -> None:
    texts = new_pairs(8)
    given = [(f"id-{i}", *pair, i) for i, pair in enumerate([*texts, ("", "nothing")])]
    sources, references = zip(*texts, strict=True)
    options = NmtOptions(beam=2)
    expected, _ = Translator(nmt_model, options, threads=1).translate(sources)
    scores = PairScorer(["unigram_f1"]).score(pa.array(references), expected["translation"])
    f1 = scores["unigram_f1"].tolist()
    wanted = [
        (*row, text, pytest.approx(score), pytest.approx(overlap), decile)
        for row, text, score, overlap, decile in zip(
            given[:8],
            expected["translation"].to_pylist(),
            expected["translation_score"].to_pylist(),
            f1,
            deciles_by_a_sort([row[0] for row in given[:8]], f1),
            strict=True,
        )
    ]
    names = ("id", "source", "reference", "line", "translation", "translation_score")

    def check(rows: list[Any]) -> None:
        columns = (*names, "unigram_f1", "unigram_f1_decile")
        assert sorted(tuple(getattr(row, name) for name in columns) for row in rows) == wanted

    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        rows = [beam.Row(id=i, source=s, reference=r, line=n) for i, s, r, n in given]
        translated = pipeline | beam.Create(rows) | BackTranslate(str(nmt_model), options)
        scored = translated.pairs | ScorePairs(["unigram_f1"])
        deciles = scored.pairs | ExactDeciles(["unigram_f1"])
        assert_that(deciles.pairs, check)
        lost = translated.rejected | "Lost" >> beam.Map(lambda row: (row.id, row.line, row.reason))
        assert_that(lost, equal_to([("id-8", 8, "empty source")]), "lost")
    query = pipeline.result.metrics().query(MetricsFilter().with_name("sentences"))
    assert [counter.committed for counter in query["counters"]] == [9]


@pytest.mark.parametrize("rows", [0, 5000])
def test_deciles_are_those_of_a_sort(rows: int) -> None:
    scores = np.random.default_rng(2).integers(0, 40, rows).astype(np.float32)
    ids = [f"row-{i}" for i in range(rows)]
    expected = sorted(zip(ids, deciles_by_a_sort(ids, scores), strict=True))

    def check(found: list[Any]) -> None:
        assert sorted((row.id, row.score_decile) for row in found) == expected

    given = [*zip(ids, scores.tolist(), strict=True), ("not a number", np.nan)]
    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        pairs = (
            pipeline
            | beam.Create(given)
            | beam.Select(id=lambda row: str(row[0]), score=lambda row: np.float32(row[1]))
        )
        pairs.element_type = beam.typehints.row_type.RowTypeConstraint.from_fields(
            [("id", str), ("score", np.float32)]
        )
        deciles = pairs | ExactDeciles(["score"])
        assert_that(deciles.pairs, check)
        lost = deciles.rejected | "Lost" >> beam.Map(lambda row: (row.id, row.reason))
        assert_that(lost, equal_to([("not a number", "score is not finite")]), "lost")


def test_the_examples_of_the_page(
    nmt_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "cs-en").symlink_to(nmt_model)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for block in re.findall(r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.M | re.S):
        exec(block, names)
    shown = capfd.readouterr().out.splitlines()
    assert sorted(shown)[-1] == "('3', 'empty source')"
    assert len(shown) == 3
