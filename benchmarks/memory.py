"""Peak memory of scoring, bucketing and selecting as the corpus grows.

python -m benchmarks.memory [--workers N] [PAIRS …]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import generated
from benchmarks.measure import cost
from benchmarks.report import Measured


def main(arguments: Sequence[str] = ()) -> dict[str, Any]:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("pairs", type=int, nargs="*", default=[250_000, 1_000_000, 4_000_000])
    options = parser.parse_args(arguments)
    measured = Measured(f"Score, bucket, select with {options.workers} workers: peak MB of all")
    peaks = {}
    for pairs in options.pairs:
        with tempfile.TemporaryDirectory() as place:
            generated.write(Path(place) / "back_translate", pairs)
            generated.write_vectors_for(Path(place))
            command = [sys.executable, "-m", "benchmarks.corpus_stages", place]
            spent = cost([*command, str(options.workers), "score", "bucket", "select"])
        measured.add(f"{pairs:,} pairs, sum of resident memory", spent.peak_rss / 1e6)
        measured.add(f"{pairs:,} pairs, shared pages once", spent.peak_pss / 1e6)
        measured.add(f"{pairs:,} pairs, pairs/s", pairs / spent.seconds)
        peaks[pairs] = spent.peak_rss
    for smaller, larger in zip(options.pairs, options.pairs[1:], strict=False):
        measured.ratio(f"memory at {larger:,} against {smaller:,}", peaks[larger], peaks[smaller])
    return measured.done("memory")


if __name__ == "__main__":
    main(sys.argv[1:])
