"""Peak memory of training an encoder as the corpus grows.

python -m benchmarks.training_memory [--model ENCODER] [PAIRS …]
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
from models.embeddings.options import EmbeddingOptions
from models.embeddings.tasks import train


def main(arguments: Sequence[str] = ()) -> dict[str, Any]:
    """Measure and print; with `--folder`, run as the measured process."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="word-avg")
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("pairs", type=int, nargs="*", default=[400_000, 4_000_000])
    options = parser.parse_args(arguments)
    if options.folder:
        shards = sorted(map(str, options.folder.glob("pairs/*.parquet")))
        chosen = EmbeddingOptions(model=options.model, epochs=1)
        train(chosen, options.folder / "model", shards=shards, seed=1)
        return {}
    measured = Measured(f"Training {options.model} for an epoch: peak MB of all processes")
    peaks = {}
    for pairs in options.pairs:
        with tempfile.TemporaryDirectory() as place:
            generated.write(Path(place) / "pairs", pairs)
            command = [sys.executable, "-m", "benchmarks.training_memory", "--folder", place]
            spent = cost([*command, "--model", options.model])
        measured.add(f"{pairs:,} pairs, sum of resident memory", spent.peak_rss / 1e6)
        measured.add(f"{pairs:,} pairs, shared pages once", spent.peak_pss / 1e6)
        peaks[pairs] = spent.peak_rss
    for smaller, larger in zip(options.pairs, options.pairs[1:], strict=False):
        more = (peaks[larger] - peaks[smaller]) / 1e6
        measured.add(f"{larger:,} pairs against {smaller:,}, MB more", more)
    return measured.done("training_memory")


if __name__ == "__main__":
    main(sys.argv[1:])
