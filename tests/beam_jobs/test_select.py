import gzip
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paraloom.beam_jobs import select
from paraloom.beam_jobs.io.shards import DamagedError, Shard, units
from paraloom.beam_jobs.select import Criteria, judge, tsv_path
from paraloom.beam_jobs.transforms.duplicates import normalised

ONE = ["--direct_num_workers", "1"]
ALL: dict[str, Any] = {
    "by": "translation_score",
    "deciles": None,
    "max_tokens": None,
    "size": None,
    "seed": 1,
}
DECILES = "outside the selected deciles of translation_score"


def pair(number: int, **more: Any) -> dict[str, Any]:
    return {"reference": f"reference {number}", "translation": f"translation {number}", **more}


def run(
    shards: list[Shard], out: Path, key: str = "key", **criteria: Any
) -> tuple[list[dict[str, Any]], dict[str, str]]:
    result = select.run(units(shards, key), str(out), Criteria(**ALL | criteria), ONE)
    assert not list(out.parent.glob(f".{out.name}.*"))  # no file is left behind
    kept = [r for x in result.receipts for s in x.shards for r in pq.read_table(s.path).to_pylist()]
    reasons = {
        row["id"]: row["reason"]
        for receipt in result.receipts
        for shard in receipt.rejected_shards
        for row in pq.read_table(shard.path).to_pylist()
    }
    return kept, reasons


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("A dog barks.", "a dog  barks"),
        ("It's here", "it s here"),
        ("ﬁve Ångström", "five ångström"),
        ("café", "café"),
        ("« 12 »", "12"),
        ("...", ""),
    ],
)
def test_what_makes_two_texts_the_same(text: str, same: str) -> None:
    assert normalised(pa.array([text])).equals(normalised(pa.array([same])))


def test_letters_and_digits_make_a_difference() -> None:
    texts = ["cafe", "café", "a 1", "a 2", "ab", "a b", "हिन्दी", "हिनदी"]
    assert len(set(normalised(pa.array(texts)).to_pylist())) == len(texts)


def test_every_reason(tmp_path: Path, bucketed: Callable[..., list[Shard]]) -> None:
    rows = [
        pair(0),
        pair(1, translation_score_decile=7),
        pair(2, reference_tokens=31),
        pair(3, translation_tokens=31),
        {"reference": "The same.", "translation": "the same"},
        pair(0),
        pair(6, reference_tokens=30, translation_tokens=30),
        pair(7, translation_score_decile=7, reference_tokens=31),  # the first reason stands
        {"reference": "REFERENCE 0!", "translation": "translation 0"},
        {"reference": "translation 0", "translation": "reference 0"},  # the other way round
    ]
    kept, reasons = run(bucketed(rows, 3), tmp_path / "corpus", deciles=(0,), max_tokens=30)
    assert [row["id"] for row in kept] == ["id-0", "id-6", "id-9"]
    assert reasons == {
        "id-1": DECILES,
        "id-2": "more tokens than max_tokens",
        "id-3": "more tokens than max_tokens",
        "id-4": "both sides are the same",
        "id-5": "repeats an earlier pair",
        "id-7": DECILES,
        "id-8": "repeats an earlier pair",
    }


def test_case_and_punctuation_of_either_side_make_no_other_pair(
    tmp_path: Path, bucketed: Callable[..., list[Shard]]
) -> None:
    rows = [
        {"reference": "the same", "translation": "The same!"},
        {"reference": "a dog", "translation": "One dog."},
        {"reference": "A dog.", "translation": "one dog"},
        {"reference": "a dog", "translation": "two dogs"},
        {"reference": "a cat", "translation": "two dogs"},
    ]
    kept, reasons = run(bucketed(rows, 2), tmp_path / "corpus")
    assert [row["id"] for row in kept] == ["id-1", "id-3", "id-4"]
    assert reasons == {"id-0": "both sides are the same", "id-2": "repeats an earlier pair"}


def test_a_pair_repeats_only_one_that_stands(
    tmp_path: Path, bucketed: Callable[..., list[Shard]]
) -> None:
    rows = [pair(0, translation_score_decile=3), pair(0), pair(0)]
    kept, reasons = run(bucketed(rows, 1), tmp_path / "corpus", deciles=(0,))
    assert [row["id"] for row in kept] == ["id-1"]
    assert reasons == {"id-0": DECILES, "id-2": "repeats an earlier pair"}


def test_rows_keep_all_their_columns(tmp_path: Path, bucketed: Callable[..., list[Shard]]) -> None:
    shards = bucketed([pair(i) for i in range(5)])
    kept, _ = run(shards, tmp_path / "corpus")
    assert kept == [row for s in shards for row in pq.read_table(s.path).to_pylist()]


@pytest.mark.parametrize("size", [7, 1000])
def test_a_draw_is_exact_and_the_same_for_any_shards_in_any_order(
    tmp_path: Path, bucketed: Callable[..., list[Shard]], size: int
) -> None:
    rows = [pair(i, id=f"id-{i}", translation_score_decile=i % 2) for i in range(80)]
    drawn = []
    for name, some, n in (("one", rows, 80), ("many", rows[::-1], 11)):
        kept, reasons = run(
            bucketed(some, n, f"in-{name}"), tmp_path / name, deciles=(0,), size=size
        )
        drawn.append({row["id"] for row in kept})
        assert len(kept) == min(size, 40)
        assert Counter(reasons.values()) == +Counter({DECILES: 40, "not drawn": 40 - len(kept)})
    assert drawn[0] == drawn[1]


def test_pairs_that_repeat_others_are_not_drawn_from(
    tmp_path: Path, bucketed: Callable[..., list[Shard]]
) -> None:
    shards = bucketed([pair(i % 20) for i in range(60)], 30)
    kept, reasons = run(shards, tmp_path / "corpus", size=15)
    assert len({row["reference"] for row in kept}) == len(kept) == 15
    assert Counter(reasons.values()) == {"repeats an earlier pair": 40, "not drawn": 5}


def test_a_draw_depends_on_the_seed_and_is_fair(
    tmp_path: Path, bucketed: Callable[..., list[Shard]]
) -> None:
    shards = bucketed([pair(i) for i in range(1000)], 250)
    first, other = (
        {row["id"] for row in run(shards, tmp_path / name, size=500, seed=seed)[0]}
        for name, seed in (("a", 1), ("b", 2))
    )
    assert len(first) == len(other) == 500
    assert 200 < len(first & other) < 300  # of 1,000: half of a half, 250 give or take 16
    halves = np.array([int(name[3:]) < 500 for name in first])
    assert 200 < halves.sum() < 300


def test_the_tsv_equals_the_shards(tmp_path: Path, bucketed: Callable[..., list[Shard]]) -> None:
    scores = [-0.5, -1e-6, -1.1754944e-38, -0.333333343, 0.0, -123.25]
    rows = [pair(i, translation_score=score) for i, score in enumerate(scores)]
    rows[2]["reference"] = "žluťoučký kůň"
    rows[3] |= {"reference": "one\ttwo", "translation": "three\nfour"}  # of earlier versions
    kept, _ = run(bucketed(rows, 4), tmp_path / "corpus")
    path = tsv_path(str(tmp_path / "corpus"))
    with gzip.open(path, "rt", encoding="utf-8", newline="") as stream:
        lines = [line.split("\t") for line in stream.read().removesuffix("\n").split("\n")]
    assert len(lines) == len(kept) == len(scores)
    for (reference, translation, score), row in zip(lines, kept, strict=True):
        texts = [re.sub(r"[\t\n]", " ", row[name]) for name in ("reference", "translation")]
        assert [reference, translation] == texts
        assert np.float32(score) == np.float32(row["translation_score"])


def test_the_tsv_is_the_same_bytes_each_time(
    tmp_path: Path, bucketed: Callable[..., list[Shard]]
) -> None:
    shards = bucketed([pair(i) for i in range(5)])
    paths = [tsv_path(str(tmp_path / name)) for name in "ab"]
    for name in "ab":
        run(shards, tmp_path / name)
    assert Path(paths[0]).read_bytes() == Path(paths[1]).read_bytes()
    assert Path(paths[0]).read_bytes()[4:8] == bytes(4)  # when it was written


def test_a_selection_that_fails_leaves_no_text_of_another(
    tmp_path: Path, bucketed: Callable[..., list[Shard]]
) -> None:
    shards = bucketed([pair(i) for i in range(5)])
    run(shards, tmp_path / "corpus")
    Path(shards[0].path).write_bytes(b"damaged")
    with pytest.raises(DamagedError):
        run(shards, tmp_path / "corpus", key="another")
    assert not Path(tsv_path(str(tmp_path / "corpus"))).exists()


def test_nothing_stands(tmp_path: Path, bucketed: Callable[..., list[Shard]]) -> None:
    kept, _ = run(bucketed([pair(i) for i in range(5)]), tmp_path / "corpus", deciles=(9,), size=3)
    assert kept == []
    written = Path(tsv_path(str(tmp_path / "corpus"))).read_bytes()
    assert (gzip.decompress(written), written[4:8]) == (b"", bytes(4))  # no text, no time


def test_judging_no_rows(bucketed: Callable[..., list[Shard]]) -> None:
    table = pq.read_table(bucketed([pair(0)])[0].path).slice(0, 0)
    reasons, hashes = judge(table, Criteria(**ALL))
    assert (len(reasons), hashes.shape) == (0, (0, 2))


def test_the_text_form_is_the_same_with_any_number_of_threads(
    tmp_path: Path, bucketed: Callable[..., list[Shard]]
) -> None:
    shards = bucketed([pair(i) for i in range(23)], 4)
    result = select.run(units(shards, "key"), str(tmp_path / "out"), Criteria(**ALL), ONE)
    rows = [r for x in result.receipts for s in x.shards for r in pq.read_table(s.path).to_pylist()]
    for threads in (1, 3, 9):
        select.export_tsv(
            result.receipts, str(tmp_path / "pairs.gz"), "translation_score", threads=threads
        )
        lines = gzip.decompress((tmp_path / "pairs.gz").read_bytes()).decode().splitlines()
        assert [line.split("\t")[:2] for line in lines] == [
            [row["reference"], row["translation"]] for row in rows
        ]
