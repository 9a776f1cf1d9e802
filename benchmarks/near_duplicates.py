"""Near-copies planted among generated pairs: what `near_duplicates` finds, and how fast.

python -m benchmarks.near_duplicates [--workers N] [--planted N] [--threshold T]
    [--datatrove PYTHON] ROWS

Each copy is a pair of 12 words a side with 1, 2 or 4 words changed on both sides;
the other rows that go are near-copies, too, of short sentences. The job `select`
runs with and without the key, in this process's workers. With a Python that has
datatrove, its MinHash reads the same pairs: n-grams of words, and of 2 words.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from benchmarks import generated
from benchmarks.measure import cost
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
    """Words, all as likely: text [rows, 12]."""
    words = np.array(generated.vocabulary().to_pylist(), object)
    return words[rng.integers(0, len(words), (rows, _WORDS))]


def planted(rows: int) -> tuple[dict[str, list[str]], dict[str, tuple[int, str]]]:
    """Texts of originals, then of their copies; the words changed and the original of each copy."""
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
    """Generated pairs with the texts at random places, as the stage `bucket` leaves them."""
    form = schema.bucketed(("translation_score",))
    places = np.sort(np.random.default_rng(2).permutation(rows)[: len(texts["id"])])
    shards = []
    for first in range(0, rows, 10_000):
        table = generated.pairs(min(10_000, rows - first), first)
        here = np.flatnonzero((places >= first) & (places < first + len(table)))
        for name, of in texts.items():
            values = np.array(table[name].to_pylist(), object)
            values[places[here] - first] = np.array(of, object)[here]
            field = table.schema.get_field_index(name)
            table = table.set_column(field, name, pa.array(values, pa.string()))
        for field in form:
            if field.name not in table.column_names:
                table = table.append_column(field, pa.array(np.zeros(len(table)), field.type))
        path = f"{folder}/part-{first // 10_000:05d}.parquet"
        shards.append(write_shard(path, table.select(form.names).cast(form)))
    return shards


def _both_sides(folder: str, shards: Sequence[Shard]) -> str:
    """A folder with the id and the two sides of each pair as one text."""
    out = Path(folder) / "texts"
    out.mkdir(exist_ok=True)
    for shard in shards:
        table = read_shard(shard, ["id", *SIDES])
        both = pc.binary_join_element_wise(*(table[side] for side in SIDES), " ")
        pq.write_table(pa.table({"id": table["id"], "text": both}), out / Path(shard.path).name)
    return str(out)


def _found(out: Path, kinds: dict[str, tuple[int, str]], planted: int) -> tuple[str, ...]:
    """Cells for what datatrove rejects, which is any row of a cluster but one."""
    lines = (line for path in out.glob("gone/*.jsonl") for line in path.read_text().splitlines())
    gone = {json.loads(line)["id"] for line in lines}
    hit = [count for id, (count, original) in kinds.items() if gone & {id, original}]
    copies = {*kinds, *(original for _, original in kinds.values())}
    shares = (f"{hit.count(count) / planted:.1%}" for count in CHANGED)
    return *shares, "", f"{len(gone - copies):,}"


def main(arguments: Sequence[str] = ()) -> dict[str, Any]:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.near_duplicates")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--planted", type=int, default=1_000, help="of each kind")
    parser.add_argument("--threshold", type=float, nargs="+", default=[0.6, 0.7, 0.8])
    parser.add_argument("--datatrove", metavar="PYTHON", help="a Python that has datatrove")
    parser.add_argument("rows", type=int, nargs="?", default=1_000_000)
    options = parser.parse_args(arguments)
    texts, kinds = planted(options.planted)
    heads = [f"{count} of {_WORDS}" for count in CHANGED]
    table = Table(
        "threshold", *heads, "right row", "others", "s", "peak MB", title=f"{options.rows:,} pairs"
    )
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as temporary:
        shards = write(Path(temporary), options.rows, texts)
        for least in (None, *options.threshold):
            out, began = f"{temporary}/{least}", time.monotonic()
            limits: dict[str, Any] = {"deciles": None, "max_tokens": None, "size": None, "seed": 1}
            criteria = Criteria(by="translation_score", **limits, near_duplicates=least)
            beam = ["--direct_num_workers", str(options.workers)]
            done = select.run(units(shards, str(least)), out, criteria, beam)
            seconds, apart = time.monotonic() - began, []
            for receipt in done.receipts:
                for shard in receipt.rejected_shards:
                    rows = read_shard(shard, ["id", "reason"]).to_pylist()
                    apart += [row for row in rows if row["reason"].startswith("nearly")]
            named = {row["id"]: row["reason"].partition(", id ")[2] for row in apart}
            shares = [
                sum(id in named for id, (of, _) in kinds.items() if of == count) / options.planted
                for count in CHANGED
            ]
            copies = {id: of for id, of in named.items() if id in kinds}
            right = sum(kinds[id][1] == of for id, of in copies.items()) / max(len(copies), 1)
            others = len(named) - len(copies)
            peak = max(receipt.peak_memory for receipt in done.receipts) / 1e6
            found[str(least)] = {
                "shares": shares,
                "right": right,
                "others": others,
                "seconds": seconds,
            }
            texts_ = (*(f"{share:.1%}" for share in shares), f"{right:.1%}", f"{others:,}")
            table.add_row(str(least), *texts_, f"{seconds:.1f}", f"{peak:.0f}")
        for grams in (5, 2) if options.datatrove else ():
            out = f"{temporary}/datatrove-{grams}"
            theirs = [options.datatrove, "-c", _THEIRS, _both_sides(temporary, shards), out]
            used = cost([*theirs, str(grams), str(options.workers)], log=Path(f"{out}.log"))
            texts_ = _found(Path(out), kinds, options.planted)
            name = f"datatrove, {grams} words"
            table.add_row(name, *texts_, f"{used.seconds:.1f}", f"{used.peak_rss / 1e6:.0f}")
    Console(width=120).print(table)
    return found


if __name__ == "__main__":
    main(sys.argv[1:])
