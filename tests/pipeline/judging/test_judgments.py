"""The judges' files: what is read from them, undoing, half-written lines, the lock."""

import os
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from paraloom.beam_jobs.engine import schema
from paraloom.beam_jobs.transforms.conditions import Predicate
from paraloom.beam_jobs.transforms.criteria import Criteria
from paraloom.models.chat.options import NmtGenerator
from paraloom.models.errors import UserError
from paraloom.pipeline.judging import sampling
from paraloom.pipeline.judging.judgments import (
    Action,
    JudgeFile,
    judging,
    judgments_digest,
    read_judgments,
)
from paraloom.pipeline.judging.sampling import Pair, ScoredRun, sample_corpus, sample_pairs
from tests.pipeline.judging.conftest import SCORES
from tests.run_helpers import Patch, WriteConfig, changed_record


def action(id: str, score: float | None = 50, *, undone: bool = False) -> Action:
    if undone:
        return Action(id=id, undone=True)
    return Action(id=id, reference=f"r {id}", translation=f"t {id}", score=score)


def scores(run: Path) -> dict[str, float]:
    return {f"{found.judge} {found.id}": found.score for found in read_judgments(str(run))}


def test_lines_are_on_the_disk_when_append_returns(tmp_path: Path, monkeypatch: Patch) -> None:
    flushed: list[int] = []
    monkeypatch.setattr("os.fsync", lambda file: flushed.append(os.fstat(file).st_size))
    file = JudgeFile(str(tmp_path), "a")
    path = tmp_path / "judgments" / "a.jsonl"
    file.append([action("1"), action("2")])
    assert flushed == [path.stat().st_size]
    file.append([action("3")])
    assert flushed[1:] == [path.stat().st_size]


def test_the_last_action_counts(tmp_path: Path) -> None:
    file = JudgeFile(str(tmp_path), "a")
    file.append([action("1", 10), action("2", 20), action("3", 30), action("4", 0)])
    before = judgments_digest(str(tmp_path))
    file.append([action("1", 100), action("2", undone=True), action("3", None)])
    JudgeFile(str(tmp_path), "b").append([action("2", 70)])
    assert scores(tmp_path) == {"a 1": 100, "a 4": 0, "b 2": 70}
    assert [id for id, *_ in file.actions] == ["4", "1", "3"]
    assert JudgeFile(str(tmp_path), "a").actions == file.actions
    assert judgments_digest(str(tmp_path)) != before


def test_a_pair_judged_under_two_ids_counts_once_for_a_judge(tmp_path: Path) -> None:
    file = JudgeFile(str(tmp_path), "a")
    renamed = action("1", 90).model_copy(update={"id": "new"})
    file.append([action("1", 10), action("2", 20), renamed])
    assert scores(tmp_path) == {"a 2": 20, "a new": 90}


def test_pairs_with_the_same_id_count_by_their_texts(tmp_path: Path) -> None:
    """Judgments made elsewhere may have any ids."""
    file = JudgeFile(str(tmp_path), "a")
    made = [Action(id="x", reference=of, translation="t", score=50) for of in ("1", "2", "1", "3")]
    file.append([*made, Action(id="x", undone=True)])
    assert [of.reference for of in read_judgments(str(tmp_path))] == ["2", "1"]
    assert [of.reference for of in JudgeFile(str(tmp_path), "a").actions.values()] == ["2", "1"]


def test_judgments_are_sorted_by_judge_id_and_candidate(tmp_path: Path) -> None:
    for judge in "ba":
        actions = [action("2"), action("1")]
        numbers = ({"candidate": n, "translation": f"t {n}"} for n in (2, 10, 1))
        actions += [action("3").model_copy(update=of) for of in numbers]
        JudgeFile(str(tmp_path), judge).append(actions)
    found = [(j.judge, j.id, j.candidate) for j in read_judgments(str(tmp_path))]
    keys: list[tuple[str, int | None]] = [("1", None), ("2", None), ("3", 1), ("3", 2), ("3", 10)]
    assert found == [(judge, *key) for judge in "ab" for key in keys]


def test_the_digest_depends_on_all_that_was_said(tmp_path: Path) -> None:
    texts = [{"reference": "x"}, {"translation": "x"}]
    changes: list[dict[str, Any]] = [{}, {"id": "2"}, {"candidate": 1}, *texts, {"score": 51.0}]
    digests = set()
    for number, change in enumerate([*changes, {"fluency": 1}]):
        (tmp_path / str(number)).mkdir()
        made = action("1").model_copy(update=change)
        JudgeFile(str(tmp_path / str(number)), "Anna").append([made])
        digests.add(judgments_digest(str(tmp_path / str(number))))
    assert len(digests) == 7


def test_a_half_written_line_is_ignored_and_cut(tmp_path: Path) -> None:
    JudgeFile(str(tmp_path), "a").append([action("1"), action("2")])
    path = tmp_path / "judgments" / "a.jsonl"
    whole = path.read_bytes()
    for end in range(len(whole) // 2 + 1, len(whole) - 1):
        path.write_bytes(whole[:end])
        assert scores(tmp_path) == {"a 1": 50}
        JudgeFile(str(tmp_path), "a").append([action("3")])
        assert scores(tmp_path) == {"a 1": 50, "a 3": 50}


@pytest.mark.parametrize("before", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("end", [b"", b"\r", b" ", b"\n", b"\r\n"])
def test_a_whole_line_counts_however_it_ends(tmp_path: Path, before: bytes, end: bytes) -> None:
    """As files end that were made elsewhere."""
    JudgeFile(str(tmp_path), "a").append([action("1"), action("2")])
    path = tmp_path / "judgments" / "a.jsonl"
    lines = before + path.read_bytes().removesuffix(b"\n") + end
    path.write_bytes(lines)
    assert scores(tmp_path) == {"a 1": 50, "a 2": 50}
    file = JudgeFile(str(tmp_path), "a")  # as the page opens it
    assert path.read_bytes().startswith(lines)
    file.append([action("3")])
    assert scores(tmp_path) == {"a 1": 50, "a 2": 50, "a 3": 50}


ONE, TWO = b'{"id": "1", "score": 50}', b'{"id": "2", "score": 60}'


@pytest.mark.parametrize(
    ("data", "whole"),
    [
        (ONE + b"\n" + TWO[:-1], {"a 1": 50}),
        (ONE + b"\n" + TWO[:8] + bytes(9), {"a 1": 50}),  # as a machine without power leaves it
        (ONE + bytes(9), {"a 1": 50}),
        (ONE + b"\n\n" + TWO + b"\n \n" + bytes(9), {"a 1": 50, "a 2": 60}),
        (bytes(9), {}),
        (b"\xef\xbb\xbf", {}),
        (ONE + b"\n" + '{"id": "2", "reference": "é'.encode()[:-1], {"a 1": 50}),
    ],
)
def test_what_a_crash_left(tmp_path: Path, data: bytes, whole: dict[str, float]) -> None:
    (tmp_path / "judgments").mkdir()
    (tmp_path / "judgments" / "a.jsonl").write_bytes(data)
    assert scores(tmp_path) == whole
    JudgeFile(str(tmp_path), "a").append([action("3")])
    assert scores(tmp_path) == {**whole, "a 3": 50}


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (ONE + b"\n" + TWO.replace(b"60", b"101"), 2),
        (ONE + b"\n" + TWO[:-1] + b', "remark": "good"}', 2), (ONE + b"\r" + TWO, 1),
        (ONE + b" " + TWO, 1), (b"[" + ONE + b", " + TWO + b"]", 1),
        ((ONE + b"\n" + TWO).decode().encode("utf-16"), 1), (ONE + b"\n2\tgood", 2),
        (bytes(9) + ONE, 1), (ONE + b"\n{\n", 2), (ONE + b'\n{"id": "a", "score": 101}\n', 2),
    ],
)  # fmt: skip
def test_what_is_no_judgment_stays_on_the_disk(tmp_path: Path, data: bytes, line: int) -> None:
    """Whatever it is, a process that died did not leave it."""
    path = tmp_path / "judgments" / "a.jsonl"
    path.parent.mkdir()
    path.write_bytes(data)
    for opens in (lambda: JudgeFile(str(tmp_path), "a"), lambda: read_judgments(str(tmp_path))):
        with pytest.raises(UserError, match=rf"a\.jsonl: line {line} is not a judgment"):
            opens()
    assert path.read_bytes() == data


def test_a_write_that_fails_leaves_the_file_as_it_was(tmp_path: Path, monkeypatch: Patch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    file = JudgeFile(str(tmp_path), "a")
    file.append([action("1")])
    path = tmp_path / "judgments" / "a.jsonl"
    before = path.read_bytes()
    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        file.append([action("2")])
    assert path.read_bytes() == before
    assert [id for id, *_ in file.actions] == ["1"]


@pytest.mark.parametrize("name", ["अमित", "วิชัย", "Jose\u0301 B."])
def test_names_with_marks_are_names(tmp_path: Path, name: str) -> None:
    JudgeFile(str(tmp_path), name).append([action("1")])
    assert scores(tmp_path) == {f"{name} 1": 50}


@pytest.mark.parametrize("name", ["", "\u0301a", "a ", "../../x", ".a", "a\n", "a" * 61, "𠀀" * 51])
def test_names_that_are_no_file(tmp_path: Path, name: str) -> None:
    with pytest.raises(UserError, match="cannot be a judge's name"):
        JudgeFile(str(tmp_path), name)
    assert list(tmp_path.iterdir()) == []


def test_one_judging_process_a_run(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no run here"), judging(str(tmp_path)):
        pass
    (tmp_path / "run.json").write_text("{}")
    with (
        judging(str(tmp_path)),
        pytest.raises(UserError, match="another paraloom judge"),
        judging(str(tmp_path)),
    ):
        pass
    with judging(str(tmp_path)):
        assert read_judgments(str(tmp_path)) == []
        assert judgments_digest(str(tmp_path)) == ""
    with pytest.raises(UserError, match="need a run on this machine"), judging("s3://bucket/run"):
        pass


def counts(run: ScoredRun, pairs: list[Pair]) -> np.ndarray:
    """Pairs in each decile of each score."""
    ids = [pair.id for pair in pairs]
    found = np.zeros((len(run.scores), 10), int)
    for table in run.tables([schema.decile(score) for score in run.scores]):
        table = table.filter(pc.is_in(table["id"], pc.cast(ids, "string")))
        for row, score in zip(found, run.scores, strict=True):
            row += np.bincount(table[schema.decile(score)].to_numpy(), minlength=10)
    return found


def test_any_first_part_is_even(write_run: WriteConfig) -> None:
    run = ScoredRun(str(write_run(2000)))
    pairs = sample_pairs(run, 200)
    assert len({pair.id for pair in pairs}) == 200
    for first in (20, 50, 100, 200):
        found = counts(run, pairs[:first])
        assert found.sum() == first * len(SCORES)
        assert np.abs(found - first / 10).max() <= 1


def test_few_pairs_begin_the_order_of_many(write_run: WriteConfig) -> None:
    """The pairs among which the next one is chosen are there however few are taken."""
    orders = []
    for seed in (1, 2, 3):
        order = sample_pairs(ScoredRun(str(write_run(400, seed=seed))), 40)
        assert sample_pairs(ScoredRun(str(write_run(400, shards=7, seed=seed))), 40) == order
        for pairs in range(1, 13):
            assert sample_pairs(ScoredRun(str(write_run(400, seed=seed))), pairs) == order[:pairs]
        orders.append({pair.id for pair in order})
    assert len(orders[0] & orders[1]) < 20


def test_a_repeated_pair_is_drawn_once() -> None:
    texts = ["one"] * 99 + ["two", "three"]
    sides = {"reference": ["r"] * 101, "translation": texts}
    table = pa.table({"id": [f"{number}" for number in range(101)], **sides})
    for tables in ([table], [table.slice(0, 50), table.slice(50)]):
        found = sampling.sample_rows(tables, None, 3, 1)["translation"].to_pylist()
        assert sorted(found) == ["one", "three", "two"]


@pytest.mark.parametrize("name", ["distance", "turn", "hash"])
def test_kept_columns_may_have_any_name(name: str) -> None:
    numbers = range(9)
    table = pa.table({"id": [*map(str, numbers)], name: pa.array(numbers)})
    table = table.append_column("reference", pa.array(["r"] * 9))
    table = table.append_column("translation", pa.array([f"t {number}" for number in numbers]))
    for side in ("reference", "translation"):
        table = table.append_column(f"{side}_tokens", pa.array([2] * 9, pa.int16()))
    where = (Predicate.parse(f"{name} >= 5"),)
    missed = Criteria(by="", deciles=None, max_tokens=None, size=None, seed=1, where=where)
    found = sampling.sample_rows([table], missed, 3, 1)["translation"].to_pylist()
    assert sorted(found) == ["t 2", "t 3", "t 4"]  # those nearest to the bound


def test_the_pairs_are_those_of_the_round_that_is_kept(write_run: WriteConfig) -> None:
    folder = write_run(100)
    with changed_record(folder) as values:
        values["config"] |= {"loop": {"rounds": 2}}
        values["config"]["select"]["labelled"] = "a.tsv"
        stages = values["stages"]
        stages |= {"rounds/2/bucket": stages.pop("bucket"), "rounds/2/select": {}}
        stages["select"] = {"round": 2}
        (folder / "rounds/2").mkdir(parents=True)
        shutil.copytree(folder / "bucket", folder / "rounds/2/bucket")
    assert len(sample_pairs(ScoredRun(str(folder)), 100)) == 100
    with changed_record(folder) as values:
        values["stages"]["bucket"] = values["stages"]["rounds/2/bucket"]
        values["outdated"] = ["rounds/2/bucket", "select"]  # an earlier one had two rounds
    assert len(sample_pairs(ScoredRun(str(folder)), 100)) == 100


def test_equal_sides_are_left_out(write_run: WriteConfig) -> None:
    pairs = sample_pairs(ScoredRun(str(write_run(100, equal=60))), 200)
    assert sorted(pair.id for pair in pairs) == [f"p-{i}" for i in range(60, 100)]
    assert sample_pairs(ScoredRun(str(write_run(40, equal=40))), 200) == []
    several = sample_pairs(ScoredRun(str(write_run(60, candidates=3))), 200)
    assert len({pair.key for pair in several}) == 60  # the translations of 20 sources


def test_few_rows_are_kept(write_run: WriteConfig, monkeypatch: Patch) -> None:
    kept: list[int] = []
    lowest = sampling._lowest

    def counted(*arguments: Any) -> pa.Table:
        kept.append((found := lowest(*arguments)).num_rows)
        return found

    monkeypatch.setattr(sampling, "_lowest", counted)
    sample_pairs(ScoredRun(str(write_run(6000, shards=12))), 20)
    assert len(kept) == 12
    assert max(kept) <= 30 * 10 * len(SCORES)


def test_what_cannot_be_sampled(write_run: WriteConfig, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no run here"):
        ScoredRun(str(tmp_path))
    run = write_run()
    with changed_record(run) as values:
        values["outdated"] = ["bucket"]
    with pytest.raises(UserError, match="bucket is outdated, because an earlier configuration"):
        ScoredRun(str(run))
    with changed_record(run) as values:
        values["stages"] = {}
    with pytest.raises(UserError, match="run `paraloom bucket` first"):
        ScoredRun(str(run))


def test_it_is_even_over_generators_and_deciles(write_run: WriteConfig, monkeypatch: Patch) -> None:
    run = ScoredRun(str(write_run(1200)))
    with pytest.raises(UserError, match=r"--generators: .* has only one generator"):
        sample_pairs(run, 10, generators=True)
    generators = [NmtGenerator(kind="nmt")]
    run.record.config = run.record.config.model_copy(update={"generators": generators})
    tables = list(run.tables(["source", "reference", "translation", *map(schema.decile, SCORES)]))
    of = {f"p-{i}": "nmt" if i % 4 else "rare" for i in range(1200)}
    columns = (pa.array([of[id] for id in table["id"].to_pylist()]) for table in tables)
    named = [t.append_column("generator", c) for t, c in zip(tables, columns, strict=True)]
    monkeypatch.setattr(run, "tables", lambda columns: iter(named))
    pairs = sample_pairs(run, 120, generators=True)
    found = Counter(of[pair.id] for pair in pairs)
    assert abs(found["nmt"] - found["rare"]) <= 12  # not 90 and 30
    monkeypatch.undo()
    assert np.abs(counts(run, pairs) - 12).max() <= 3


def test_pairs_of_a_corpus_are_random_and_any_first_part_of_them(write_run: WriteConfig) -> None:
    """Over many seeds each pair is drawn equally often."""
    drawn = Counter[str]()
    for seed in range(30):
        run = ScoredRun(str(write_run(40, seed=seed)))
        order = sample_corpus(run, 40, "bucket")
        other = ScoredRun(str(write_run(40, shards=2, seed=seed)))
        assert sample_corpus(other, 9, "bucket") == order[:9]
        assert len({pair.id for pair in order}) == 40
        drawn.update(pair.id for pair in order[:20])
    assert len(drawn) == 40
    assert 10 < np.std([*drawn.values()]) ** 2 + 10 < 20  # of 30 draws, each with a chance of 1/2


def test_pairs_that_just_missed_come_in_turns_the_nearest_first(write_run: WriteConfig) -> None:
    run = ScoredRun(str(write_run(400, equal=30)))
    where = (Predicate.parse("length_ratio <= 0.3"),)
    given: dict[str, Any] = {"deciles": (7, 8), "max_tokens": None, "size": None, "seed": 1}
    criteria = Criteria(by="unigram_f1", where=where, **given)
    rows = [row for table in run.tables(criteria.columns) for row in table.to_pylist()]
    rows = [row for row in rows if row["reference"] != row["translation"]]
    decile = [(r["unigram_f1_decile"] in (7, 8), r["length_ratio"] <= 0.3, r) for r in rows]
    by_score = [(r["length_ratio"], r["id"]) for inside, low, r in decile if inside and not low]
    outside = [r for inside, low, r in decile if low and not inside]
    away = {r["id"]: min(abs(r["unigram_f1_decile"] - d) for d in (7, 8)) for r in outside}

    found = [pair.id for pair in sample_corpus(run, 20, "select", criteria)]
    assert found[::2] == [id for _, id in sorted(by_score)[:10]]
    assert [away[id] for id in found[1::2]] == sorted(away.values())[:10]
    every = [pair.id for pair in sample_corpus(run, 400, "select", criteria)]
    assert sorted(every) == sorted([*away, *(id for _, id in by_score)])
    assert every[:20] == found
