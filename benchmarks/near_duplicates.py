"""Measures how many planted near-copies `near_duplicates` finds, and how fast it is.

python -m benchmarks.near_duplicates [--workers N] [--planted N] [--threshold T] …
    [--datatrove PYTHON] [ROWS]

Copies are planted among generated pairs. A copy has 12 words a side, of which 1, 2 or 4 are changed
on both sides. The job `select` runs with and without `near_duplicates`. `near_duplicates` also
rejects some short generated sentences that are near-copies. `--datatrove` names a Python
interpreter with datatrove. The MinHash of datatrove then reads the same pairs, with n-grams of 5
and of 2 words.
"""

import json
import tempfile
import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import typer

from benchmarks import generated
from benchmarks.measure import command_line, cost, print_table
from paraloom.beam_jobs import select
from paraloom.beam_jobs.engine.shards import Shard, read_shard, receipts, units
from paraloom.beam_jobs.transforms.criteria import Criteria

CHANGED = (1, 2, 4)
SIDES = ("reference", "translation")
_WORDS = 12
_THEIRS = """
import sys
from datatrove.executor import LocalPipelineExecutor as Executor
from datatrove.pipeline.dedup import minhash
from datatrove.pipeline.readers import ParquetReader
from datatrove.pipeline.writers.jsonl import JsonlWriter
folder, out, grams, workers = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
config = minhash.MinhashConfig(n_grams=grams)
read = ParquetReader(folder)
gone = JsonlWriter(f"{out}/gone", compression=None)
for name, tasks, steps in (
    ("sign", workers, [read, minhash.MinhashDedupSignature(f"{out}/signatures", config)]),
    ("join", 14, [minhash.MinhashDedupBuckets(f"{out}/signatures", f"{out}/bands", config=config)]),
    ("link", 1, [minhash.MinhashDedupCluster(f"{out}/bands", f"{out}/remove", config=config)]),
    ("gone", workers, [read, minhash.MinhashDedupFilter(f"{out}/remove", exclusion_writer=gone)]),
):
    Executor(steps, tasks=tasks, workers=workers, logging_dir=f"{out}/{name}").run()
"""


class Copy(NamedTuple):
    """A planted copy: its id, the id of its original, and its number of changed words."""

    id: str
    original: str
    changed: int


def make_copies(planted: int) -> tuple[list[dict[str, str]], list[Copy]]:
    """Return `planted` copies for each of `CHANGED`, and the rows of all originals and copies.

    The originals come first.
    """
    rng = np.random.default_rng(1)
    words = np.array(generated.vocabulary().to_pylist(), object)
    changed = np.repeat(CHANGED, planted).tolist()
    copies = [Copy(f"copy-{n}", f"original-{n}", count) for n, count in enumerate(changed)]
    rows = [{"id": id_} for id_ in (*(of.original for of in copies), *(of.id for of in copies))]
    for side in SIDES:
        texts = words[rng.integers(0, len(words), (len(copies), _WORDS))]
        copied = texts.copy()
        for number, count in enumerate(changed):
            places = rng.permutation(_WORDS)[:count]
            copied[number, places] = words[rng.integers(0, len(words), _WORDS)][:count]
        for row, of_row in zip(rows, (*texts, *copied), strict=True):
            row[side] = " ".join(of_row)
    return rows, copies


def found_in(rejected: Collection[str], copies: Sequence[Copy]) -> list[str]:
    """Return the shares of copies that were found, and the number of other rejected rows.

    A copy is found if it or its original is among the ids `rejected`.
    """
    found = [of.changed for of in copies if of.id in rejected or of.original in rejected]
    shares = [found.count(count) * len(CHANGED) / len(copies) for count in CHANGED]
    known = {id_ for of in copies for id_ in (of.id, of.original)}
    return [*(f"{share:.1%}" for share in shares), f"{len({*rejected} - known):,}"]


def write_texts(folder: Path, shards: Sequence[Shard]) -> None:
    """Write the ids of the pairs, and both sides as one text."""
    folder.mkdir()
    for shard in shards:
        table = read_shard(shard, ["id", *SIDES])
        both = pc.binary_join_element_wise(*(table[side] for side in SIDES), " ")
        pq.write_table(pa.table({"id": table["id"], "text": both}), folder / Path(shard.path).name)


def main(
    rows: Annotated[int, typer.Argument()] = 1_000_000,
    workers: int = 2,
    planted: Annotated[int, typer.Option(help="Planted copies of each kind.")] = 1_000,
    threshold: list[float] | None = None,
    datatrove: Annotated[str, typer.Option(metavar="PYTHON", help="A Python with datatrove.")] = "",
) -> None:
    """Measure and print a table."""
    texts, copies = make_copies(planted)
    shown: list[tuple[str, ...]] = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        changes = generated.planted(texts, rows)
        generated.write(folder / "pairs", rows, shard_rows=10_000, changes=changes)
        shards = [shard for of in receipts(str(folder / "pairs")) for shard in of.shards]
        for least in (None, *(threshold or (0.6, 0.7, 0.8))):
            limits: dict[str, Any] = {"deciles": None, "max_tokens": None, "size": None, "seed": 1}
            criteria = Criteria(by="translation_score", **limits, near_duplicates=least)
            beam = ["--direct_num_workers", str(workers)]
            started = time.monotonic()
            done = select.run(units(shards, str(least)), f"{folder}/{least}", criteria, beam)
            seconds = time.monotonic() - started
            rejected = {
                row["id"]
                for receipt in done.receipts
                for shard in receipt.rejected_shards
                for row in read_shard(shard, ["id", "reason"]).to_pylist()
                if row["reason"].startswith("nearly")
            }
            peak = max(receipt.peak_memory for receipt in done.receipts) / 1e6
            cells = found_in(rejected, copies)
            shown.append((str(least), *cells, f"{seconds:.1f}", f"{peak:.0f}"))
        if datatrove:
            write_texts(folder / "texts", shards)
        for grams in (5, 2) if datatrove else ():
            out = folder / f"datatrove-{grams}"
            theirs = [datatrove, "-c", _THEIRS, str(folder / "texts"), str(out)]
            used = cost([*theirs, str(grams), str(workers)], log=folder / "log.txt")
            lines = (line for path in out.glob("gone/*") for line in path.read_text().splitlines())
            cells = found_in({json.loads(line)["id"] for line in lines}, copies)
            name = f"datatrove, {grams} words"
            shown.append((name, *cells, f"{used.seconds:.1f}", f"{used.peak_rss / 1e6:.0f}"))
    heads = (*(f"{n} of {_WORDS}" for n in CHANGED), "others", "s", "peak MB")
    print_table(f"{rows:,} pairs", ["threshold"], heads, shown)


if __name__ == "__main__":
    command_line(main)
