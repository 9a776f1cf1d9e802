"""Scoring and bucketing, Parquet to Parquet: pairs/s per core, against plain Python, and scaling.

python -m benchmarks.scoring [--pairs N] [--plain N]
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import generated, plain_scoring
from benchmarks.corpus_stages import SCORERS
from benchmarks.measure import cost
from benchmarks.report import Measured
from paraloom.beam_jobs.engine.shards import receipts
from paraloom.models.cpu import cores
from paraloom.models.text.vectors import read_vectors


def plain(folder: Path, rows: int) -> float:
    """Seconds of the plain version: read, score each row, sort for deciles, write."""
    vectors = read_vectors(folder / "vectors.txt")
    known = dict(zip(vectors.words.to_pylist(), vectors.matrix, strict=True))
    started = time.monotonic()
    shards = [s for receipt in receipts(str(folder / "back_translate")) for s in receipt.shards]
    needed = -(-rows // shards[0].rows)
    table = pa.concat_tables([pq.read_table(shard.path) for shard in shards[:needed]])
    table = table.slice(0, rows)
    references, translations = table["reference"].to_pylist(), table["translation"].to_pylist()
    tokenizer = plain_scoring.fast_tokenizer()
    scores = plain_scoring.score(references, translations, known, tokenizer)
    for name, values in scores.items():
        table = table.append_column(name, pa.array(values))
    for name in SCORERS:
        order = sorted(range(rows), key=table[name].to_pylist().__getitem__)
        decile = np.empty(rows, np.int8)
        for rank, row in enumerate(order):
            decile[row] = 10 * rank // rows
        table = table.append_column(f"{name}_decile", pa.array(decile))
    pq.write_table(table, folder / "plain.parquet", compression="zstd")
    return time.monotonic() - started


def main(arguments: Sequence[str] = ()) -> dict[str, Any]:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", type=int, default=12_000_000)
    parser.add_argument("--plain", type=int, default=20_000)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        generated.write(folder / "back_translate", options.pairs)
        generated.write_vectors_for(folder)
        rates = {}
        for workers in (1, 2, 4):
            if workers <= cores():
                command = ["-m", "benchmarks.corpus_stages", place, str(workers), "score", "bucket"]
                rates[workers] = options.pairs / cost([sys.executable, *command]).seconds
        slow = options.plain / plain(folder, options.plain)
    measured = Measured("Scoring and bucketing, whole process, pairs/s")
    measured.add("plain Python, row by row", slow)
    for workers, rate in rates.items():
        measured.add(f"Paraloom, {workers} worker(s)", rate)
    measured.ratio("one worker against plain", rates[1], slow)
    for workers in set(rates) - {1}:
        measured.ratio(f"{workers} workers against one", rates[workers], rates[1])
    return measured.done("scoring")


if __name__ == "__main__":
    main(sys.argv[1:])
