from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from beam_jobs import score
from beam_jobs.io import schema
from beam_jobs.io.part_files import encode
from beam_jobs.io.shards import receipts, units, write_shard
from beam_jobs.score import score_table
from models.errors import UserError
from models.scorers import PairScorer
from models.scorers.pair_scorer import Scores
from models.scorers.plugins import FileScorer

ONE = ["--direct_num_workers", "1"]
PAIRS = [
    ("a dog runs on the grass .", "a dog runs on grass ."),
    ("a man sleeps .", "a man is asleep ."),
    ("two women talk .", "two women talk ."),
]
SCORERS = ("translation_score", "trigram_overlap")


def table(pairs: list[tuple[str, str]] = PAIRS, scores: list[float] | None = None) -> pa.Table:
    return pa.table(
        {
            "id": [f"id-{i}" for i in range(len(pairs))],
            "source": ["zdroj"] * len(pairs),
            "reference": pa.array([a for a, _ in pairs], pa.string()),
            "translation": pa.array([b for _, b in pairs], pa.string()),
            "translation_score": scores or [-0.5] * len(pairs),
            "translation_subwords": [5] * len(pairs),
        }
    ).cast(schema.BACK_TRANSLATE)


def test_scores_stand_beside_their_rows() -> None:
    scored, rejected = score_table(table(), PairScorer(["trigram_overlap"]), SCORERS)
    assert scored.schema == schema.scored(SCORERS)
    assert scored.select(schema.BACK_TRANSLATE.names).equals(table())
    assert scored["reference_tokens"].to_pylist() == [7, 4, 4]
    assert scored["translation_tokens"].to_pylist() == [6, 5, 4]
    assert np.allclose(scored["trigram_overlap"].to_numpy(), [2 / 4, 0, 1])
    assert rejected.num_rows == 0


def test_scored_rows_get_only_what_they_lack() -> None:
    class Two(PairScorer):
        def score(
            self,
            reference: pa.StringArray,
            translation: pa.StringArray,
            source: pa.StringArray | None = None,
            ids: pa.StringArray | None = None,
        ) -> Scores:
            return Scores({"unigram_f1": np.array([0.25, np.nan, 0.5], np.float32)})

    once, _ = score_table(table(), PairScorer(["trigram_overlap"]), SCORERS)
    twice, rejected = score_table(once, Two(["unigram_f1"]), (*SCORERS, "unigram_f1"))
    assert twice.schema == schema.scored((*SCORERS, "unigram_f1"))
    assert twice.select(once.column_names).equals(once.take([0, 2]))
    assert twice["unigram_f1"].to_pylist() == [0.25, 0.5]
    assert rejected.select(once.column_names).equals(once.slice(1, 1))


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
def test_a_score_that_is_no_number_sets_the_row_apart(bad: float) -> None:
    rows = table(scores=[-0.5, bad, -0.7])
    scored, rejected = score_table(rows, PairScorer(["trigram_overlap"]), SCORERS)
    assert scored["id"].to_pylist() == ["id-0", "id-2"]
    assert rejected.schema == schema.rejected(schema.BACK_TRANSLATE)
    assert rejected["id"].to_pylist() == ["id-1"]
    assert rejected["reason"].to_pylist() == ["translation_score is not finite"]


def test_a_scorer_that_fails_is_named() -> None:
    class Failing(PairScorer):
        def score(
            self,
            reference: pa.StringArray,
            translation: pa.StringArray,
            source: pa.StringArray | None = None,
            ids: pa.StringArray | None = None,
        ) -> Scores:
            counts = np.ones(len(reference), np.int16)
            values = np.array([0.5, np.nan, np.inf], np.float32)
            return Scores(
                {
                    "reference_tokens": counts,
                    "translation_tokens": counts,
                    "trigram_overlap": values,
                }
            )

    rows = table(scores=[-0.5, float("nan"), -0.7])
    scored, rejected = score_table(rows, Failing(["trigram_overlap"]), SCORERS)
    assert scored["id"].to_pylist() == ["id-0"]
    assert rejected["reason"].to_pylist() == [
        "translation_score is not finite",  # the first one that is not
        "trigram_overlap is not finite",
    ]


def test_no_rows() -> None:
    scored, rejected = score_table(table([]), PairScorer(["trigram_overlap"]), SCORERS)
    assert scored.schema == schema.scored(SCORERS)
    assert (scored.num_rows, rejected.num_rows) == (0, 0)


def test_the_job_gives_what_the_function_gives(tmp_path: Path) -> None:
    tables = [table(), table([]), table(PAIRS[:1], [float("nan")])]
    shards = [write_shard(f"{tmp_path}/in/part-{i}.parquet", t) for i, t in enumerate(tables)]
    out = f"{tmp_path}/score"
    result = score.run(units(shards, "key"), out, SCORERS, None, ONE)
    scorer = PairScorer(["trigram_overlap"])
    for rows, receipt in zip(tables, result.receipts, strict=True):
        wanted, _ = score_table(rows, scorer, SCORERS)
        assert pq.read_table(receipt.shards[0].path).equals(wanted)
        assert Path(receipt.shards[0].path).read_bytes() == encode(wanted)
    assert [r.rejected for r in receipts(out)] == [{}, {}, {"translation_score is not finite": 1}]


def test_the_job_asks_a_scorer_only_for_what_the_units_lack(tmp_path: Path) -> None:
    once, _ = score_table(table(), PairScorer(["trigram_overlap"]), SCORERS)
    shard = write_shard(str(tmp_path / "in" / "part-0.parquet"), once)
    names = (*SCORERS, "length_ratio")
    score.run(units([shard], "k"), str(tmp_path / "out"), names, None, ONE)
    found = pq.read_table(tmp_path / "out" / "part-0.parquet")
    assert found.schema == schema.scored(names)
    assert found.select(once.column_names).equals(once)
    assert found["length_ratio"].to_pylist() == pytest.approx([6 / 7, 4 / 5, 1])
    at_once, _ = score_table(table(), PairScorer(names[1:]), names)
    assert (tmp_path / "out" / "part-0.parquet").read_bytes() == encode(at_once)


def test_columns_that_the_job_does_not_know_are_left_out(tmp_path: Path) -> None:
    more = table().append_column("extra", pa.array([1, 2, 3]))
    shard = write_shard(str(tmp_path / "in" / "part-0.parquet"), more)
    score.run(units([shard], "k"), str(tmp_path / "out"), SCORERS, None, ONE)
    found = pq.read_table(tmp_path / "out" / "part-0.parquet")
    assert found.equals(score_table(table(), PairScorer(["trigram_overlap"]), SCORERS)[0])


REASONS = """
import numpy as np
from models.scorers import Outcome, Scorer

def function(pairs):
    reasons = ["", "no verb,\\n no noun", ""][: len(pairs)]
    return Outcome([0.5, 9, float("nan")][: len(pairs)], reasons)

verbs = Scorer(function=function, meaning="verbs", unit="")
short = Scorer(function=lambda pairs: Outcome([0.5] * len(pairs), [""]), meaning="", unit="")
"""


def test_a_scorer_gives_reasons_for_pairs_without_a_value() -> None:
    scorer = PairScorer(["verbs"], sources=[FileScorer("verbs", "verbs.py", REASONS)])
    scored, rejected = score_table(table(), scorer, ("verbs",))
    assert scored["verbs"].to_pylist() == [0.5]
    assert rejected["id"].to_pylist() == ["id-1", "id-2"]
    assert rejected["reason"].to_pylist() == ["verbs: no verb, no noun", "verbs is not finite"]
    scorer = PairScorer(["short"], sources=[FileScorer("short", "verbs.py", REASONS)])
    with pytest.raises(UserError, match=r"short: the scorer gave reasons of shape \[1\] for 3"):
        score_table(table(), scorer, ("short",))
