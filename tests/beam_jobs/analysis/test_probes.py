"""Trials: each made once, kept by what it depends on, the same on any number of workers."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from paraloom.beam_jobs.analysis import probes
from paraloom.beam_jobs.analysis.probes import ProbeTraining, Subset
from paraloom.beam_jobs.analysis.sampling import DecileSample
from paraloom.beam_jobs.io.shards import write_shard
from paraloom.models.embeddings.datasets.similarity import LabelledPairs
from paraloom.models.embeddings.options import EmbeddingOptions

WORDS = [f"word{i}" for i in range(40)]
OPTIONS = EmbeddingOptions(dim=8, epochs=1, batch_size=10, mega_batch=1)
PARTS = [
    Subset(scorer="a", deciles=(0,), most=30),
    Subset(scorer="a", deciles=(0, 1), most=50),
    Subset(most=40),
    Subset(scorer="b", deciles=(0, 1), most=40),  # the same pairs as the one before
]


@pytest.fixture
def draw() -> DecileSample:
    random = np.random.default_rng(1)
    left = [" ".join(random.choice(WORDS, 4)) for _ in range(100)]
    table = pa.table(
        {
            "hash": np.sort(random.integers(0, 2**64, 100, np.uint64)),
            "id": [f"id-{i}" for i in range(100)],
            "reference": left,
            "translation": [f"{text} too" for text in left],
            "a_decile": (np.arange(100) % 2).astype(np.int8),
            "b_decile": np.repeat(np.int8(1), 100),
        }
    )
    all_of_ten = np.full(10, 2**64 - 1, np.uint64)
    return DecileSample(table=table, thresholds={"a": all_of_ten, "b": all_of_ten})


@pytest.fixture
def labelled() -> list[LabelledPairs]:
    random = np.random.default_rng(2)
    sides = [pa.array([" ".join(random.choice(WORDS, 4)) for _ in range(60)]) for _ in range(2)]
    scores = random.integers(0, 6, 60).astype(float)
    return [LabelledPairs(group="some", name="x", first=sides[0], second=sides[1], scores=scores)]


def tried(
    draw: DecileSample,
    labelled: list[LabelledPairs],
    folder: Path,
    parts: list[Subset] = PARTS,
    *,
    vectors: str | None = None,
    workers: int = 1,
) -> list[list[float]]:
    drawn = write_shard(str(folder / "draw.parquet"), draw.table)
    output = str(folder / "trials")
    arguments = [f"--direct_num_workers={workers}"]
    training = ProbeTraining(options=OPTIONS, labelled=labelled, vectors=vectors)
    return probes.run(parts, [1, 2], draw, drawn, output, training, arguments)


def receipts(folder: Path) -> dict[str, dict[str, Any]]:
    """What stands in the folder, with the time of writing."""
    found = (folder / "trials" / "receipts").glob("*.json")
    return {p.stem: {**json.loads(p.read_text()), "at": p.stat().st_mtime_ns} for p in found}


def test_the_same_on_any_number_of_workers(
    draw: DecileSample, labelled: list[LabelledPairs], tmp_path: Path
) -> None:
    one = tried(draw, labelled, tmp_path / "one")
    two = tried(draw, labelled, tmp_path / "two", workers=2)
    assert one == two
    assert one[2] == one[3]
    assert len({score for scores in one for score in scores}) == 6


def test_kept_by_what_they_depend_on(
    draw: DecileSample, labelled: list[LabelledPairs], tmp_path: Path
) -> None:
    first = tried(draw, labelled, tmp_path)
    before = receipts(tmp_path)
    assert len(before) == 6  # two of four parts have the same pairs

    (tmp_path / "trials" / "receipts" / "a-0-30.2.json").unlink()  # as if it had been killed
    wider = [*PARTS, Subset(scorer="a", deciles=(1,), most=30)]
    assert tried(draw, labelled, tmp_path, wider)[:4] == first
    after = receipts(tmp_path)
    new = {"a-0-30.2", "a-1-30.1", "a-1-30.2"}
    assert set(after) == set(before) | new
    assert {name for name in after if after[name] != before.get(name)} == new

    tried(draw, labelled, tmp_path, PARTS[:1], vectors="others")
    assert {name for name, receipt in receipts(tmp_path).items()} == {"a-0-30.1", "a-0-30.2"}
    assert receipts(tmp_path)["a-0-30.1"]["at"] > after["a-0-30.1"]["at"]


def test_a_key_for_everything_that_matters(labelled: list[LabelledPairs]) -> None:
    base = ProbeTraining(options=OPTIONS, labelled=labelled).key
    assert base == ProbeTraining(options=OPTIONS, labelled=labelled).key
    others = [
        ProbeTraining(options=EmbeddingOptions(dim=9), labelled=labelled).key,
        ProbeTraining(options=OPTIONS, labelled=labelled * 2).key,
        ProbeTraining(options=OPTIONS, labelled=labelled, vectors="digest").key,
    ]
    assert len({base, *others}) == 4
