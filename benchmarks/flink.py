"""Starts a Flink cluster, and measures the rates of scoring and bucketing by number of slots.

python -m benchmarks.flink [--pairs N] [--slots N] …
"""

import tempfile
from pathlib import Path

from benchmarks.measure import Measured, command_line
from benchmarks.scale import make_run
from benchmarks.scoring import seconds
from tests.flink import cluster as clusters
from tests.flink.cluster import TASK_MANAGERS


def main(pairs: int = 4_000_000, slots: list[int] | None = None) -> None:
    """Measure and print."""
    first, *more = counts = slots or [1, 2, 4]
    measured = Measured(f"Score and bucket {pairs:,} pairs on Flink")
    rates = {}
    with tempfile.TemporaryDirectory() as folder:
        config = make_run(Path(folder), pairs, 10_000)
        there = Path(folder, "cluster")
        found = clusters.up(there, slots=-(-max(counts) // TASK_MANAGERS), free_ports=True)
        try:
            for count in counts:
                rates[count] = pairs / seconds(config, *found.arguments(count))
                measured.add(f"{count} slots: pairs/s", rates[count])
        finally:
            clusters.down(there)
    for count in more:
        measured.ratio(f"pairs/s, {count} slots against {first}", rates[count], rates[first])
    measured.done("flink")


if __name__ == "__main__":
    command_line(main)
