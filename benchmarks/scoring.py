"""Measures the rates of scoring and bucketing by number of workers, and against plain Python.

python -m benchmarks.scoring [--pairs N] [--plain N]
"""

import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.measure import Measured, command_line, cost, paraloom
from benchmarks.scale import make_run
from paraloom.models.cpu import cores
from paraloom.models.text.vectors import read_vectors
from tests import plain_scoring

SCORERS = ("translation_score", "trigram_overlap", "paragram_similarity")


def seconds(config: Path, *beam: str) -> float:
    """Return the seconds of the commands `score` and `bucket` together, with Beam options."""
    log, given = config.with_name("log.txt"), ("--config", str(config))
    cost(paraloom("train-paragram", *given), log=log)  # prepares the word vectors, not timed
    stages = (paraloom(of, "--force", *given, "--", *beam) for of in ("score", "bucket"))
    return sum(cost(command, log=log).seconds for command in stages)


def plain_seconds(folder: Path, rows: int) -> float:
    """Return the seconds that plain Python takes to read, score, sort and write `rows` pairs."""
    vectors = read_vectors(folder / "vectors.txt")
    known = dict(zip(vectors.words.to_pylist(), vectors.matrix, strict=True))
    started = time.monotonic()
    files = sorted((folder / "run" / "back_translate").glob("part-*.parquet"))
    needed = -(-rows // pq.read_metadata(files[0]).num_rows)
    table = pa.concat_tables([pq.read_table(path) for path in files[:needed]]).slice(0, rows)
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


def main(pairs: int = 12_000_000, plain: int = 20_000) -> None:
    """Measure and print."""
    rates, plain = {}, min(plain, pairs)
    with tempfile.TemporaryDirectory() as place:
        config = make_run(Path(place), pairs, 10_000)
        for workers in (1, 2, 4):
            if workers <= cores():
                rates[workers] = pairs / seconds(config, "--direct_num_workers", str(workers))
        slow = plain / plain_seconds(Path(place), plain)
    measured = Measured("Scoring and bucketing, both commands, pairs/s")
    measured.add("plain Python, row by row", slow)
    for workers, rate in rates.items():
        measured.add(f"Paraloom, {workers} worker(s)", rate)
    measured.ratio("one worker against plain", rates[1], slow)
    for workers in set(rates) - {1}:
        measured.ratio(f"{workers} workers against one", rates[workers], rates[1])
    measured.done("scoring")


if __name__ == "__main__":
    command_line(main)
