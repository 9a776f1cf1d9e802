"""All scorers together, Parquet to Parquet, on one core: pairs/s, and memory as the corpus grows.

python -m benchmarks.all_scorers [--pairs N]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import generated
from benchmarks.corpus_stages import ALL_SCORERS
from benchmarks.measure import Cost, cost
from benchmarks.report import Measured


def stages(folder: Path, *names: str) -> Cost:
    """Run stages in a process of their own, one worker."""
    return cost([sys.executable, "-m", "benchmarks.corpus_stages", str(folder), "1", *names])


def main(arguments: Sequence[str] = ()) -> dict[str, Any]:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", type=int, default=1_000_000)
    options = parser.parse_args(arguments)
    started = time.monotonic()
    subprocess.run([sys.executable, "-c", "import benchmarks.corpus_stages"], check=True)
    start = time.monotonic() - started
    measured = Measured(f"{len(ALL_SCORERS)} scorers, one core; a process starts in {start:.1f} s")
    peaks = {}
    for pairs in (options.pairs // 4, options.pairs):
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            generated.write(folder / "back_translate", pairs)
            generated.write_vectors_for(folder)
            spent = {
                "counting IDF": stages(folder, "idf"),
                "all scorers": stages(folder, "score-all"),
                "score, bucket, select": stages(folder, "score-all", "bucket-all", "select"),
            }
        for name, one in spent.items():
            measured.add(f"{pairs:,} pairs, {name}: seconds", one.seconds)
            measured.add(f"{pairs:,} pairs, {name}: pairs/s", pairs / one.seconds)
            measured.add(f"{pairs:,} pairs, {name}: peak MB", one.peak_rss / 1e6)
        peaks[pairs] = {name: one.peak_rss for name, one in spent.items()}
    small, large = peaks
    for name, peak in peaks[large].items():
        measured.ratio(f"memory of {name}, {large:,} against {small:,}", peak, peaks[small][name])
    return measured.done("all_scorers")


if __name__ == "__main__":
    main(sys.argv[1:])
