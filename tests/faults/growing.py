"""A corpus grows at random, in five formats: after each change it is that of a fresh run.

`PARALOOM_STEPS` is the number of changes (30), `PARALOOM_SEED` chooses them. Files and rows come,
go, move and are mended. Sentences are translated if their source is new, and no others; judgments
and the splits of releases stay with the pairs that stay.
"""

import os
import random
import shutil
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import yaml

from paraloom.beam_jobs.engine.shards import Receipt, receipts
from paraloom.pipeline.judging.agreement import by_pair, judged_rows
from paraloom.pipeline.judging.judgments import Action, JudgeFile, read_judgments
from paraloom.pipeline.run.folder import shards_of
from tests.faults.ground import Ground, main, told
from tests.growth import KINDS, WRITERS, Files, Write, change, write_files
from tests.small_model import TEXTS, new_pairs

ROWS, BOTH, SHARD = 60, 20, 20
"""Rows of each of the first two files, rows that are in both, and rows of a shard."""


def fault(ground: Ground) -> None:
    """Grow as often as the environment says, in all formats in turn."""
    steps, seed = (int(os.environ.get(f"PARALOOM_{n}", d)) for n, d in (("STEPS", 30), ("SEED", 1)))
    for number, write in enumerate(WRITERS):
        grow(ground, write, len(range(number, steps, len(WRITERS))), seed)


def grow(ground: Ground, write: Write, steps: int, seed: int) -> None:
    """Change the files of one format that many times; every step is compared with a fresh run."""
    chance, pool = random.Random(f"{seed} {write.__name__}"), new_pairs(TEXTS)
    files: Files = {"m": pool[:ROWS], "n": pool[ROWS - BOTH : 2 * ROWS - BOTH]}
    unused = list(dict(pool[2 * ROWS :]).items())
    folder = ground.folder / write.__name__
    run, fresh = folder / "run", folder / "fresh"
    _make(ground, write, files, run)
    _judge(run, chance)
    kinds = chance.sample(range(KINDS), KINDS) * steps
    for step in range(steps):
        sources, done, splits = _sources(run), _receipts(run), _splits(ground, run)
        change(chance, files, step * KINDS + kinds[step], unused.pop)
        ground.say(f"{write.__name__}, change {kinds[step]}: {sum(map(len, files.values()))} rows")
        _make(ground, write, files, run)
        shutil.rmtree(fresh, ignore_errors=True)
        _make(ground, write, files, fresh)
        ground.same(str(run), str(fresh))
        new = len(_sources(run) - sources)
        translated = sum(_translated(of) for of in _receipts(run) if of not in done)
        ground.expect(f"{new} new sources, {translated} translated", new == translated)
        now = _splits(ground, run)
        ground.expect("splits", all(now[text] == splits[text] for text in now.keys() & splits))
        _judged(ground, run)


def _make(ground: Ground, write: Write, files: Files, run: Path) -> None:
    """Give the command for a corpus of the files, which replace the earlier ones."""
    shutil.rmtree(run.parent / "files", ignore_errors=True)
    run.parent.mkdir(exist_ok=True)
    paths, config = write_files(write, run.parent / "files", files), run.parent / "config.yaml"
    values: dict[str, Any] = {
        "run": str(run),
        "input": {"format": write.__name__, "paths": paths, "shard_rows": SHARD},
        "nmt": {"model": str(ground.model), "beam": 2, "batch_tokens": 1},  # scores as in any batch
        "score": {"scorers": ["translation_score", "trigram_overlap"]},
        "select": {"by": "trigram_overlap", "deciles": None},
    }
    values["input"]["license"] = "cc0-1.0"  # a release needs one
    config.write_text(yaml.safe_dump(values))
    code, said = told("select", "--config", str(config), "--", *ground.beam)
    ground.expect(f"{run.name}: the command ends with exit code 0", code == 0)
    if code:
        print(said)


def _judge(run: Path, chance: random.Random) -> None:
    """Judge twenty pairs."""
    pairs = _rows(run, "id", "reference", "translation")
    JudgeFile(str(run), "Anna").append(
        Action(id=id, reference=reference, translation=translation, score=100)
        for id, reference, translation in chance.sample(pairs, 20)
    )


def _judged(ground: Ground, run: Path) -> None:
    """See that every judgment counts whose pair is there."""
    labels = by_pair(read_judgments(str(run)))
    there = labels.keys() & {(a, b) for a, b in _rows(run, "reference", "translation")}
    found, _ = judged_rows(labels, shards_of(str(run), "bucket"))
    ground.expect(f"judged and there: {len(there)} of {len(labels)}", found.keys() == there)


def _rows(run: Path, *columns: str) -> list[tuple[str, ...]]:
    table = pq.read_table(run / "bucket", columns=list(columns))
    return list(zip(*(table[name].to_pylist() for name in columns), strict=True))


def _sources(run: Path) -> set[str]:
    return set(pq.read_table(run / "ingest", columns=["source"])["source"].to_pylist())


def _receipts(run: Path) -> list[Receipt]:
    return receipts(str(run / "back_translate"))


def _translated(receipt: Receipt) -> int:
    saved = receipt.numbers.get("saved", {}).get("nmt.reuse", {"rows": 0})
    return receipt.rows_in - int(saved["rows"])


def _splits(ground: Ground, run: Path) -> dict[str, str]:
    """The split of each reference in a release."""
    ground.expect("publish works", told("publish", str(run), "--held-out", "0.3")[0] == 0)
    files = sorted((run / "release" / "data").glob("*.parquet"))
    return {
        text: path.name.partition("-")[0]
        for path in files
        for text in pq.read_table(path, columns=["reference"])["reference"].to_pylist()
    }


if __name__ == "__main__":
    sys.exit(main(fault, __doc__))
