from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paraloom.beam_jobs import score, storage
from paraloom.beam_jobs.engine import launch, schema
from paraloom.beam_jobs.engine.launch import Result
from paraloom.beam_jobs.engine.part_files import encode
from paraloom.beam_jobs.engine.shards import receipt_path, receipts, units, write_shard
from paraloom.beam_jobs.engine.unit_dofn import UnitDoFn
from paraloom.beam_jobs.score import Scoring, score_table
from paraloom.models.errors import UserError
from paraloom.models.scorers import PairScorer
from paraloom.models.scorers.fast_networks import FastNetwork
from paraloom.models.scorers.learned import sentence_similarity
from paraloom.models.scorers.plugins import FileScorer
from tests.models.scorers.small_transformers import write_sentence_model
from tests.run_helpers import Patch, part_file
from tests.shards import ONE, filled

PAIRS = [
    ("a dog runs on the grass .", "a dog runs on grass ."),
    ("a man sleeps .", "a man is asleep ."),
    ("two women talk .", "two women talk ."),
]
SCORERS = ("translation_score", "trigram_overlap")


def table(pairs: list[tuple[str, str]] = PAIRS, scores: list[float] | None = None) -> pa.Table:
    rows = [
        {"reference": one, "translation": other, "translation_score": score}
        for (one, other), score in zip(pairs, scores or [-0.5] * len(pairs), strict=True)
    ]
    return filled(rows, schema.BACK_TRANSLATE)


def test_scored_rows_get_only_what_they_lack() -> None:
    text = "from paraloom.models.scorers import Scorer\n"
    text += "s = Scorer(function=lambda pairs: [0.25, float('nan'), 0.5], meaning='', unit='')"
    scorer = PairScorer(["s"], sources=[FileScorer("s", "s.py", text)])
    once, _ = score_table(table(), PairScorer(["trigram_overlap"]), SCORERS)
    twice, rejected = score_table(once, scorer, (*SCORERS, "s"))
    assert twice.schema == schema.scored((*SCORERS, "s"))
    assert twice.select(once.column_names).equals(once.take([0, 2]))
    assert twice["s"].to_pylist() == [0.25, 0.5]
    assert rejected.select(once.column_names).equals(once.slice(1, 1))
    assert rejected["reason"].to_pylist() == ["s is not finite"]


def test_the_job_gives_what_the_function_gives(tmp_path: Path) -> None:
    tables = [table(), table([]), table(scores=[float("nan"), -0.7, float("-inf")])]
    shards = [write_shard(f"{tmp_path}/in/part-{i}.parquet", t) for i, t in enumerate(tables)]
    out = f"{tmp_path}/score"
    result = score.run(units(shards, "key"), out, Scoring(SCORERS), ONE)
    scorer = PairScorer(["trigram_overlap"])
    for rows, receipt in zip(tables, result.receipts, strict=True):
        wanted, rejected = score_table(rows, scorer, SCORERS)
        assert wanted.schema == schema.scored(SCORERS)  # without rows, too
        assert rejected.schema == schema.rejected(schema.BACK_TRANSLATE)
        assert wanted["id"].to_pylist() == [
            row["id"] for row in rows.to_pylist() if np.isfinite(row["translation_score"])
        ]
        assert pq.read_table(receipt.shards[0].path).equals(wanted)
        assert Path(receipt.shards[0].path).read_bytes() == encode(wanted)
    assert [r.rejected for r in receipts(out)] == [{}, {}, {"translation_score is not finite": 2}]


REASONS = """
import numpy as np
from paraloom.models.scorers import Outcome, Scorer

def function(pairs):
    reasons = ["", "no verb,\\n no noun", ""][: len(pairs)]
    return Outcome([0.5, 9, float("nan")][: len(pairs)], reasons)

verbs = Scorer(function=function, meaning="verbs", unit="")
short = Scorer(function=lambda pairs: Outcome([0.5] * len(pairs), [""]), meaning="", unit="")
wide = Scorer(function=lambda pairs: [0.0, 1.5, 1.0], meaning="", unit="")
"""


def test_pairs_without_a_value_have_a_reason() -> None:
    verbs, short, wide = (
        PairScorer([name], sources=[FileScorer(name, "verbs.py", REASONS)])
        for name in ("verbs", "short", "wide")
    )
    scored, rejected = score_table(table(), verbs, ("verbs",))
    assert scored["verbs"].to_pylist() == [0.5]
    assert rejected["id"].to_pylist() == ["id-1", "id-2"]
    assert rejected["reason"].to_pylist() == ["verbs: no verb, no noun", "verbs is not finite"]
    scored, rejected = score_table(table(), wide, ("wide",))
    assert scored["id"].to_pylist() == ["id-0", "id-2"]
    assert rejected["reason"].to_pylist() == ["wide is outside its range 0..1"]
    with pytest.raises(UserError, match=r"short: the scorer gave reasons of shape \[1\] for 3"):
        score_table(table(), short, ("short",))
    long = [("a " * 32_768, "a"), ("a " * 32_767, "a"), ("a", "a " * 32_768)]
    scored, rejected = score_table(table(long), PairScorer(["length_ratio"]), ("length_ratio",))
    assert scored["reference_tokens"].to_pylist() == [32_767]
    assert rejected["reason"].to_pylist() == [
        "reference_tokens: more than 32,767", "translation_tokens: more than 32,767"
    ]  # fmt: skip


CHECKED = """
from paraloom.models.scorers import Outcome, Scorer

def function(pairs):
    words = pairs.translation_text.to_pylist()
    reasons = ["bad" if BAD in word else "" for word in words]
    return Outcome([len(word) / 99 for word in words], reasons)

checked = Scorer(function=function, meaning="", unit="")
"""
NAMES = ("translation_score", "trigram_overlap", "checked")


def checked(folder: Path, words: list[str], bad: str, keys: dict[str, str] | None = None) -> Result:
    """Score two translations of each source; those with `bad` in them are rejected."""
    rows = table([(f"the {word} is here", f"{word} is here") for word in words])
    rows = rows.set_column(0, "id", pa.array([f"id-{i // 2}" for i in range(len(words))]))
    number = pa.array([i % 2 for i in range(len(words))], pa.int8())
    rows = rows.append_column("candidate", number).cast(schema.translated(candidates=True))
    shard = write_shard(f"{folder}/in/part-0.parquet", rows)
    source = FileScorer("checked", "checked.py", CHECKED.replace("BAD", repr(bad)))
    scoring = Scoring(NAMES, sources=[source])
    return score.run(units([shard], bad), f"{folder}/out", scoring, ONE, keys=keys)


def test_scored_rows_keep_columns_and_all_their_order(tmp_path: Path, monkeypatch: Patch) -> None:
    words = ["cat", "dog", "dog", "ox", "hen", "bee"]
    keys = dict.fromkeys(("reference_tokens", "translation_tokens", "trigram_overlap"), "as before")

    def rejected(result: Result) -> dict[str, int]:
        return result.receipts[0].rejected

    first = checked(tmp_path, words, "dog", {**keys, "checked": "1"})
    assert rejected(first) == {"checked: bad": 2}
    given: list[tuple[int, list[str]]] = []

    def spied(*args: Any, **named: Any) -> tuple[pa.Table, pa.Table]:
        given.append((len(args[0]), sorted(args[3].column_names) if args[3:] and args[3] else []))
        return score_table(*args, **named)

    monkeypatch.setattr(score, "score_table", spied)
    again = checked(tmp_path, words, "hen", {**keys, "checked": "2"})
    assert given == [(4, sorted(keys)), (2, [])]  # the others are computed whole
    fresh = checked(tmp_path / "fresh", words, "hen")
    assert rejected(again) == rejected(fresh) == {"checked: bad": 1}
    assert [s.digest for s in again.receipts[0].shards] == [
        s.digest for s in fresh.receipts[0].shards
    ]
    # The keys are of the pairs, too: other pairs with the same keys are computed.
    more = checked(tmp_path, words[::-1], "no", {**keys, "checked": "2"})
    fresh = checked(tmp_path / "fresh", words[::-1], "no")
    assert given[-2:] == [(6, []), (6, [])]
    assert more.receipts[0].shards[0].digest == fresh.receipts[0].shards[0].digest


def test_the_job_takes_the_tokens_of_its_language(tmp_path: Path) -> None:
    rows = table([("l'homme", "homme")])
    shard = write_shard(f"{tmp_path}/in/part-0.parquet", rows)
    for language, shared in (("fr", 1), ("en", 0)):  # l' homme; l 'homme
        out = f"{tmp_path}/{language}"
        score.run(units([shard], "k"), out, Scoring(["unigram_f1"], language=language), ONE)
        found = pq.read_table(part_file(out, "part-0"))
        assert found["unigram_f1"].to_pylist() == pytest.approx([2 * shared / (2 + 1)])


BESIDE = """
import time
from pathlib import Path
from paraloom.models.scorers import Resource, Scorer

class Network:
    def __init__(self, folder):
        self.folder = folder

    def __call__(self, pairs):
        (shard,) = set(pairs.translation_text.to_pylist())
        (self.folder / shard).touch()
        return [int(shard) / 9] * len(pairs)

def model(pairs, network):
    values, deadline = network(pairs), time.monotonic() + 30
    while len([*Path("PLACE").glob("?")]) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return values

network = Resource(name="network", open=Network, remedy="", is_model=True)
plain = Scorer(function=Network(Path("PLACE")), meaning="", unit="")
model = Scorer(function=model, meaning="", unit="", resource=network)
"""


def test_other_scorers_score_a_shard_while_a_model_scores_the_one_before(tmp_path: Path) -> None:
    """The model waits until the other scorer has begun with two shards."""
    text = BESIDE.replace("PLACE", str(tmp_path))
    sources = [FileScorer(name, "beside.py", text) for name in ("plain", "model")]
    tables = [table([("a", str(i))] * 3) for i in range(3)]
    shards = [write_shard(f"{tmp_path}/in/part-{i}.parquet", rows) for i, rows in enumerate(tables)]
    scoring = Scoring(["model", "plain"], {"network": f"{tmp_path}/in"}, sources=sources)
    result = score.run(units(shards, "k"), str(tmp_path / "out"), scoring, ONE)
    for i, receipt in enumerate(result.receipts):
        found = pq.read_table(receipt.shards[0].path)
        assert (
            found["plain"].to_pylist() == found["model"].to_pylist() == pytest.approx([i / 9] * 3)
        )


@pytest.mark.parametrize("int8", [False, True])
def test_progress_moves_with_model_batches(tmp_path: Path, monkeypatch: Patch, int8: bool) -> None:
    monkeypatch.setattr(sentence_similarity, "_BATCH", {"cpu": 2})
    told: list[float] = []
    monkeypatch.setattr(UnitDoFn, "tell", lambda self, unit, rows: told.append(rows))
    pairs = [(f"the {word} is here", f"a {word}") for word in ("cat", "dog", "cat", "ox", "hen")]
    shard = write_shard(f"{tmp_path}/in/part-0.parquet", table(pairs))
    model = write_sentence_model(tmp_path / "model")
    kinds = set[str]()
    load = FastNetwork.__init__

    def recorded(self: FastNetwork, network: Any, kind: str) -> None:
        kinds.add(kind)
        load(self, network, kind)

    monkeypatch.setattr(FastNetwork, "__init__", recorded)
    scoring = Scoring(["sentence_similarity"], {"sentence_model": str(model)}, int8=int8)
    score.run(units([shard], "k"), str(tmp_path / "out"), scoring, ONE)
    # Four distinct texts a side, of five rows.
    assert told == pytest.approx([5 * done / 8 for done in (2, 4, 6, 8)])
    assert kinds == ({"float32", "int8"} if int8 else {"float32"})


def test_the_launcher_counts_rows_of_unfinished_units(tmp_path: Path) -> None:
    shards = [write_shard(f"{tmp_path}/in/part-{i}.parquet", table()) for i in range(3)]
    work, out = units(shards, "k"), str(tmp_path / "out")
    assert launch._under_way(out) == 0
    worker = UnitDoFn(out)
    for unit, rows in zip(work, (2.2, 1.0, 3.0), strict=True):
        worker._told = 0.0
        worker.tell(unit, rows)
        worker.tell(unit, 99)  # within a second
    assert launch._under_way(out) == 2 + 1 + 3
    storage.write_bytes(receipt_path(out, work[2].name), b"{}")
    assert launch._under_way(out) == 2 + 1  # the receipt counts the rows of a finished unit
    score.run(work[:1], out, Scoring(SCORERS), ONE)
    assert launch._under_way(out) == 0
    assert not any((tmp_path / "out" / "_progress").iterdir())
