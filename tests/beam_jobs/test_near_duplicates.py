from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from paraloom.beam_jobs import ingest, near_duplicates, select
from paraloom.beam_jobs.bitext import find_bitext
from paraloom.beam_jobs.engine import schema
from paraloom.beam_jobs.engine.shards import as_counted, receipts, units
from paraloom.beam_jobs.near_duplicates import (
    band_keys,
    bands,
    candidates,
    jaccard,
    near_copies,
)
from paraloom.beam_jobs.transforms import duplicates
from paraloom.beam_jobs.transforms.conditions import Predicate
from paraloom.beam_jobs.transforms.criteria import Criteria, preview
from paraloom.beam_jobs.transforms.equal_texts import normalised
from tests.run_helpers import Patch
from tests.shards import ONE, cut, filled, rows_of

WORDS = ["dog", "barks", "the old man", "plays guitar", "near", "štěká", "犬", "が", "😀", "ñ"]


def plainly(one: str, other: str) -> Fraction:
    first, second = (
        {text[i : i + 4] for i in range(max(len(text) - 3, 1))} for text in (one, other)
    )
    return Fraction(len(first & second), len(first | second))


def sentence(random: Random, most: int = 12) -> str:
    return " ".join(random.choices(WORDS, k=random.randrange(most)))


def changed(text: str, random: Random, words: int) -> str:
    parts = text.split()
    for _ in range(min(words, len(parts))):
        parts[random.randrange(len(parts))] = random.choice(WORDS)
    return " ".join(parts)


def test_jaccard_against_sets_of_substrings() -> None:
    random = Random(1)
    one = ["", "", "ab", "abcd", "aaaaaaaa", *(sentence(random) for _ in range(400))]
    other = ["", "a", "ab", "abc", "aaaa", *(changed(t, random, 2) for t in one[5:])]
    found = jaccard(pa.array(one), pa.array(other)).tolist()
    assert found == [float(plainly(*pair)) for pair in zip(one, other, strict=True)]
    part = jaccard(pa.array(one).slice(7, 9), pa.array(other).slice(7, 9)).tolist()
    assert part == found[7:16]


@pytest.mark.parametrize("threshold", [0.5, 0.6, 0.7, 0.8, 0.9, 1.0])
def test_pairs_at_the_threshold_have_a_common_band(threshold: float) -> None:
    """As often as the theory of MinHash says: 1 − (1 − J^size)^count."""
    random = Random(2)
    first: list[str] = []
    other: list[str] = []
    while len(first) < 400:
        text = "".join(random.choices("abcdefghijklmnop", k=60))
        parts = [*text]
        for _ in range(random.randrange(6)):
            parts[random.randrange(60)] = random.choice("qrstuvwxyz")
        if abs(float(plainly(text, "".join(parts))) - threshold) < 0.04:
            first.append(text)
            other.append("".join(parts))
    count, size = bands(threshold)
    index = np.array([float(plainly(*pair)) for pair in zip(first, other, strict=True)])
    keys = [band_keys(pa.array(side), pa.array(side), threshold) for side in (first, other)]
    found = (keys[0] == keys[1]).any(axis=1).mean()
    assert found == pytest.approx((1 - (1 - index**size) ** count).mean(), abs=0.05)


def test_candidates_of_a_key_that_all_rows_have_are_few() -> None:
    keys = np.zeros(10_000, np.uint64)
    later, earlier = candidates(keys, np.arange(10_000))
    assert len(later) < 20_000 and (later > earlier).all() and set(later) == set(range(1, 10_000))


def test_every_near_copy_in_memory_is_one(monkeypatch: Patch) -> None:
    random = Random(3)
    first = [sentence(random) for _ in range(120)]
    second = [sentence(random) for _ in range(120)]
    for _ in range(120):
        at = random.randrange(len(first))
        first.append(changed(first[at], random, random.randrange(2)))
        second.append(changed(second[at], random, random.randrange(2)))
    sides = normalised(pa.array(first)), normalised(pa.array(second))
    found = near_copies(*sides, 0.7)
    texts = list(zip(*(side.to_pylist() for side in sides), strict=True))
    near = [
        any(min(map(plainly, texts[row], before)) >= Fraction("0.7") for before in texts[:row])
        for row in range(len(texts))
    ]
    assert not (found & ~np.array(near)).any()
    assert found.sum() >= 0.9 * sum(near) > 40
    monkeypatch.setattr(near_duplicates, "_AT_ONCE", 50)
    monkeypatch.setattr(near_duplicates, "_GAP", 40)
    assert near_copies(*sides, 0.7).tolist() == found.tolist()
    assert near_copies(sides[0].slice(0, 0), sides[1].slice(0, 0), 0.7).tolist() == []


def pairs_with_copies(random: Random, rows: int) -> list[tuple[str, str]]:
    found = [(sentence(random, 16), sentence(random, 16)) for _ in range(rows // 2)]
    for _ in range(rows - len(found)):
        one, other = random.choice(found)
        found.append((changed(one, random, 1), changed(other, random, 1)))
    random.shuffle(found)
    return [(one or "a", other or "b") for one, other in found]


def check_named(rejected: list[dict[str, Any]], texts: dict[str, tuple[str, str]]) -> set[str]:
    """Each rejected row is a near-copy of the earlier one that it names; the ids of both."""
    order, named = list(texts), set()
    for row in rejected:
        reason, _, id = row["reason"].partition(", id ")
        assert reason == "nearly repeats an earlier pair"
        assert order.index(id) < order.index(row["id"])
        for one, other in zip(texts[row["id"]], texts[id], strict=True):
            both = normalised(pa.array([one, other])).to_pylist()
            assert plainly(*both) >= Fraction("0.7")
        named |= {id}
    return named


def test_ingest_rejects_near_copies_however_it_is_cut(tmp_path: Path, monkeypatch: Patch) -> None:
    pairs = pairs_with_copies(Random(4), 240)
    ids = [f"row, id {n}" for n in range(240)]  # as awkward as the reason allows
    lines = [f"{id}\t{one}\t{other}\n" for id, (one, other) in zip(ids, pairs, strict=True)]
    lines[100:100] = lines[:1]  # a repeated id is no near-copy
    few = Predicate.parse("source_tokens >= 3")  # what fails it makes no row a near-copy

    def run(name: str, parts: int, beam: list[str], rows: int) -> Any:
        paths = [tmp_path / f"{parts}-{n}.tsv" for n in range(parts)]
        for n, path in enumerate(paths):
            size = -(-len(lines) // parts)
            path.write_text("".join(lines[n * size : (n + 1) * size]), encoding="utf-8")
        reading = ingest.Reading(
            shard_rows=rows, max_characters=500, where=(few,), near_duplicates=0.7
        )
        bitexts = find_bitext("tsv", list(map(str, paths)))
        result = ingest.run(bitexts, str(tmp_path / name), name, reading, beam)
        kept, apart = rows_of(result), rows_of(result, rejected=True)
        near = [row for row in apart if row["reason"].startswith("nearly")]
        return result, [row["id"] for row in kept], near

    result, kept, near = run("one", 1, ONE, 1000)
    named = check_named(near, dict(zip(ids, pairs, strict=True)))
    reasons = {reason for receipt in result.receipts for reason in receipt.rejected}
    assert reasons == {"duplicate id", f"not {few}", "nearly repeats an earlier pair"}
    assert len(near) >= 40 and named <= {*kept} | {row["id"] for row in near}
    assert result.receipts[0].numbers["saved"]["input.near_duplicates"]["rows"] == len(near)
    monkeypatch.setattr(duplicates, "_ROWS_PER_PARTITION", 400)
    of_near = [(row["id"], row["reason"]) for row in near]
    for name, parts, beam, of in (
        ("small", 1, ONE, 17),
        ("two", 5, ["--direct_num_workers", "2"], 30),
    ):
        result, again, near = run(name, parts, beam, of)
        assert (again, [(row["id"], row["reason"]) for row in near]) == (kept, of_near)
    (tmp_path / "two" / "_receipts" / f"{result.receipts[1].name}.json").unlink()
    assert run("two", 5, ONE, 30)[1] == kept  # what a killed run left is made alike
    assert not list((tmp_path / "two" / "_hashes").glob("*"))


def test_select_rejects_near_copies_of_pairs_that_meet_all_else(tmp_path: Path) -> None:
    pairs = pairs_with_copies(Random(5), 200)
    rows = [
        {"reference": one, "translation": other, "translation_score_decile": n % 3}
        for n, (one, other) in enumerate(pairs)
    ]
    table = filled(rows, schema.bucketed(("translation_score",)))
    some: dict[str, Any] = {"by": "translation_score", "deciles": (0, 1), "max_tokens": None}
    some |= {"size": None, "seed": 1}
    criteria, found = Criteria(**some, near_duplicates=0.7), []
    for number, of in enumerate((31, 90)):
        shards = cut(tmp_path / f"bucket-{number}", table, of)
        out = str(tmp_path / f"corpus-{number}")
        result = select.run(units(shards, "key"), out, criteria, ONE)
        counts = preview(shards, criteria).counts
        found.append((rows_of(result), rows_of(result, rejected=True)))
        assert counts["selected"] == len(found[-1][0])
        done = receipts(out)
        assert counts["nearly repeats an earlier pair"] == sum(
            of.rejected.get("nearly repeats an earlier pair", 0) for of in done
        )
    assert found[0] == found[1]
    kept, apart = found[0]
    near = [row for row in apart if row["reason"].startswith("nearly")]
    allowed = {f"id-{n}": pair for n, pair in enumerate(pairs) if n % 3 < 2}
    assert check_named(near, allowed) <= {*allowed}
    assert len(near) >= 20
    drawn = Criteria(**some | {"size": 9}, near_duplicates=0.7)
    result = select.run(units(shards, "drawn"), str(tmp_path / "drawn"), drawn, ONE)
    assert {row["id"] for row in rows_of(result)} < {row["id"] for row in kept}
    assert len(rows_of(result)) == 9


def test_ids_are_left_out_of_counted_reasons_only() -> None:
    given = ["nearly repeats an earlier pair, id a, id b\nc, row 7", 'not domain = "x, id 1"']
    found = as_counted(pa.array([*given, "in sts/a, id 3 (equal), row 417"])).to_pylist()
    assert found == ["nearly repeats an earlier pair", given[1], "in sts/a, id 3 (equal)"]
