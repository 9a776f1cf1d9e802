"""Scoring and bucketing on Flink: speed-up by slots, and memory of a worker as the corpus grows.

python -m benchmarks.flink [--slots N …] [PAIRS …]

Starts a cluster of its own. All slot counts are timed with the most pairs; the smaller numbers of
pairs, with the most slots, show how memory grows.
"""

import argparse
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import psutil

from benchmarks import generated
from benchmarks.corpus_stages import run
from benchmarks.report import Measured
from tests.flink import cluster as clusters
from tests.flink.cluster import NAMES, TASK_MANAGERS


@contextmanager
def watched(
    processes: dict[str, psutil.Process], *, every: float = 0.5
) -> Iterator[dict[str, int]]:
    """Peak resident memory of a worker (child of the pool) and of a TaskManager, in bytes."""
    peak = {"worker": 0, "TaskManager": 0}
    over = threading.Event()

    def watch() -> None:
        while not over.wait(every):
            workers = processes["workers"].children(recursive=True)
            managers = [p for name, p in processes.items() if name.startswith("task")]
            for kind, members in (("worker", workers), ("TaskManager", managers)):
                for member in members:
                    try:
                        peak[kind] = max(peak[kind], member.memory_info().rss)
                    except psutil.Error:
                        continue

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield peak
    finally:
        over.set()
        watcher.join()


def main(arguments: Sequence[str] = ()) -> dict[str, Any]:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--slots", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("pairs", type=int, nargs="*", default=[1_000_000, 4_000_000])
    options = parser.parse_args(arguments)
    most, sizes = max(options.slots), sorted(options.pairs)
    measured = Measured(f"Score and bucket {sizes[-1]:,} pairs on Flink")
    rates, peaks = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        generated.write_vectors_for(place)
        there = place / "cluster"
        found = clusters.up(there, slots=-(-most // TASK_MANAGERS), free_ports=True)
        try:
            processes = {n: p for n in NAMES if (p := clusters.process(there, n))}
            for pairs in sizes:
                shutil.rmtree(place / "back_translate", ignore_errors=True)
                generated.write(place / "back_translate", pairs)
                for slots in options.slots if pairs == sizes[-1] else [most]:
                    given = found.arguments(slots)
                    with watched(processes) as peak:
                        spent = sum(run(place, given, ("score", "bucket")).values())
                    name = f"{pairs:,} pairs, {slots} slots"
                    measured.add(f"{name}: pairs/s", pairs / spent)
                    for kind, most_bytes in peak.items():
                        measured.add(f"{name}: peak MB of a {kind}", most_bytes / 1e6)
                    rates[slots], peaks[pairs] = pairs / spent, peak["worker"]
        finally:
            clusters.down(there)
    for slots in options.slots[1:]:
        first = options.slots[0]
        measured.ratio(f"pairs/s, {slots} slots against {first}", rates[slots], rates[first])
    for smaller, larger in pairwise(sizes):
        name = f"a worker's memory, {larger:,} pairs against {smaller:,}"
        measured.ratio(name, peaks[larger], peaks[smaller])
    return measured.done("flink")


if __name__ == "__main__":
    main(sys.argv[1:])
