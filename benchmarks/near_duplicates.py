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
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import typer

from benchmarks import generated
from benchmarks.measure import cost
from benchmarks.report import command_line, print_table
from paraloom.beam_jobs import select
from paraloom.beam_jobs.engine import schema
from paraloom.beam_jobs.engine.shards import Shard, read_shard, units, write_shard
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


def sentences(rng: np.random.Generator, rows: int) -> np.ndarray:
    """Return uniformly drawn words, [rows, 12]."""
    words = np.array(generated.vocabulary().to_pylist(), object)
    return words[rng.integers(0, len(words), (rows, _WORDS))]


def copies_of(rows: int) -> tuple[dict[str, list[str]], dict[str, tuple[int, str]]]:
    """Return originals and changed copies as columns, and a description of each copy.

    The descriptions map the id of a copy to its number of changed words and its original's id.
    """
    rng = np.random.default_rng(1)
    texts: dict[str, list[str]] = {}
    changed = np.repeat(CHANGED, rows)
    for side in SIDES:
        words = sentences(rng, len(changed))
        copies = words.copy()
        for row, count in enumerate(changed):
            places = rng.permutation(_WORDS)[:count]
            copies[row, places] = sentences(rng, 1)[0, :count]
        texts[side] = [" ".join(of) for of in (*words, *copies)]
    kinds = {f"copy-{n}": (int(count), f"original-{n}") for n, count in enumerate(changed)}
    texts["id"] = [f"original-{n}" for n in range(len(changed))] + list(kinds)
    return texts, kinds


def write(folder: Path, rows: int, texts: dict[str, list[str]]) -> list[Shard]:
    """Write generated pairs with the texts at random places, in the form of the stage `bucket`."""
    form = schema.bucketed(("translation_score",))
    places = sorted(generated.places(len(texts["id"]), rows))
    changes = {row: {name: of[n] for name, of in texts.items()} for n, row in enumerate(places)}
    shards = []
    for first in range(0, rows, 10_000):
        table = generated.changed(generated.pairs(min(10_000, rows - first), first), first, changes)
        for field in form:
            if field.name not in table.column_names:
                table = table.append_column(field, pa.array(np.zeros(len(table)), field.type))
        path = f"{folder}/part-{first // 10_000:05d}.parquet"
        shards.append(write_shard(path, table.select(form.names).cast(form)))
    return shards


def _both_sides(folder: str, shards: Sequence[Shard]) -> str:
    """Write the ids of the pairs, and both sides as one text. Return the folder."""
    out = Path(folder) / "texts"
    out.mkdir(exist_ok=True)
    for shard in shards:
        table = read_shard(shard, ["id", *SIDES])
        both = pc.binary_join_element_wise(*(table[side] for side in SIDES), " ")
        pq.write_table(pa.table({"id": table["id"], "text": both}), out / Path(shard.path).name)
    return str(out)


def _found(out: Path, kinds: dict[str, tuple[int, str]], planted: int) -> tuple[str, ...]:
    """Return the table cells for datatrove, which rejects all rows of a cluster except one row."""
    lines = (line for path in out.glob("gone/*.jsonl") for line in path.read_text().splitlines())
    gone = {json.loads(line)["id"] for line in lines}
    hit = [count for id, (count, original) in kinds.items() if gone & {id, original}]
    copies = {*kinds, *(original for _, original in kinds.values())}
    return *_shares(hit, planted), "", f"{len(gone - copies):,}"


def _shares(found: list[int], planted: int) -> list[str]:
    """Return the shares of copies that were found, by their number of changed words."""
    return [f"{found.count(count) / planted:.1%}" for count in CHANGED]


def main(
    rows: Annotated[int, typer.Argument()] = 1_000_000,
    workers: int = 2,
    planted: Annotated[int, typer.Option(help="Planted copies of each kind.")] = 1_000,
    threshold: list[float] | None = None,
    datatrove: Annotated[str, typer.Option(metavar="PYTHON", help="A Python with datatrove.")] = "",
) -> None:
    """Measure and print a table."""
    texts, kinds = copies_of(planted)
    shown: list[tuple[str, ...]] = []
    with tempfile.TemporaryDirectory() as temporary:
        shards = write(Path(temporary), rows, texts)
        for least in (None, *(threshold or (0.6, 0.7, 0.8))):
            began = time.monotonic()
            limits: dict[str, Any] = {"deciles": None, "max_tokens": None, "size": None, "seed": 1}
            criteria = Criteria(by="translation_score", **limits, near_duplicates=least)
            beam = ["--direct_num_workers", str(workers)]
            work, out = units(shards, str(least)), f"{temporary}/{least}"
            done = select.run(work, out, criteria, beam)
            seconds = time.monotonic() - began
            rejected = (shard for receipt in done.receipts for shard in receipt.rejected_shards)
            named = {
                row["id"]: row["reason"].partition(", id ")[2]
                for shard in rejected
                for row in read_shard(shard, ["id", "reason"]).to_pylist()
                if row["reason"].startswith("nearly")
            }
            copies = {id: of for id, of in named.items() if id in kinds}
            right = sum(kinds[id][1] == of for id, of in copies.items()) / max(len(copies), 1)
            shares = _shares([kinds[id][0] for id in copies], planted)
            cells = (*shares, f"{right:.1%}", f"{len(named) - len(copies):,}")
            peak = max(receipt.peak_memory for receipt in done.receipts) / 1e6
            shown.append((str(least), *cells, f"{seconds:.1f}", f"{peak:.0f}"))
        for grams in (5, 2) if datatrove else ():
            out = f"{temporary}/datatrove-{grams}"
            theirs = [datatrove, "-c", _THEIRS, _both_sides(temporary, shards), out]
            used = cost([*theirs, str(grams), str(workers)], log=Path(f"{out}.log"))
            cells = _found(Path(out), kinds, planted)
            name = f"datatrove, {grams} words"
            shown.append((name, *cells, f"{used.seconds:.1f}", f"{used.peak_rss / 1e6:.0f}"))
    heads = (*(f"{n} of {_WORDS}" for n in CHANGED), "right row", "others", "s", "peak MB")
    print_table(f"{rows:,} pairs", ["threshold"], heads, shown)


if __name__ == "__main__":
    command_line(main)
