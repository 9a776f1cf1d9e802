"""Peak memory of training an encoder as the corpus, or a tab-separated file of pairs, grows.

python -m benchmarks.training_memory [--model ENCODER] [--dim DIM] [--tsv] [PAIRS …]
"""

from __future__ import annotations

import argparse
import gzip
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import generated
from benchmarks.measure import cost
from benchmarks.report import Measured
from paraloom.models.embeddings.options import EmbeddingOptions, PairsOptions
from paraloom.models.embeddings.tasks import train

TSV = "pairs.tsv.gz"
_BLOCK = 50_000


def main(arguments: Sequence[str] = ()) -> dict[str, Any]:
    """Measure and print; with `--folder`, run as the measured process."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="word-avg")
    parser.add_argument("--dim", type=int, default=300)
    parser.add_argument("--tsv", action="store_true", help="train on a file, not on a corpus")
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("pairs", type=int, nargs="*", default=[400_000, 4_000_000])
    options = parser.parse_args(arguments)
    if options.folder:
        shards = sorted(map(str, options.folder.glob("pairs/*.parquet")))
        chosen = EmbeddingOptions(model=options.model, dim=options.dim, epochs=1)
        if options.tsv:
            source = PairsOptions(paths=[str(options.folder / TSV)], negative=3)
            chosen, shards = chosen.replace(pairs=[source]), []
        train(chosen, options.folder / "model", shards=shards, seed=1)
        return {}
    source_name = "a file of pairs" if options.tsv else "a corpus"
    title = f"Training {options.model} for an epoch of {source_name}: peak MB of all processes"
    measured = Measured(title)
    peaks = {}
    for pairs in options.pairs:
        with tempfile.TemporaryDirectory() as place:
            if options.tsv:
                write_tsv(Path(place) / TSV, pairs)
            else:
                generated.write(Path(place) / "pairs", pairs)
            command = [sys.executable, "-m", "benchmarks.training_memory", "--folder", place]
            command += ["--model", options.model, "--dim", str(options.dim)]
            spent = cost([*command, *["--tsv"] * options.tsv])
        measured.add(f"{pairs:,} pairs, sum of resident memory", spent.peak_rss / 1e6)
        measured.add(f"{pairs:,} pairs, shared pages once", spent.peak_pss / 1e6)
        peaks[pairs] = spent.peak_rss
    for smaller, larger in zip(options.pairs, options.pairs[1:], strict=False):
        more = (peaks[larger] - peaks[smaller]) / 1e6
        measured.add(f"{larger:,} pairs against {smaller:,}, MB more", more)
    return measured.done("training_memory_tsv" if options.tsv else "training_memory")


def write_tsv(path: Path, pairs: int) -> None:
    """Pairs with hard negatives, which are the translations of other pairs."""
    with gzip.open(path, "wt", encoding="utf-8", compresslevel=1) as stream:
        for first in range(0, pairs, _BLOCK):
            table = generated.pairs(min(_BLOCK, pairs - first), first)
            left, right = (table[name].to_pylist() for name in ("reference", "translation"))
            rows = zip(left, right, [*right[1:], ""], strict=True)
            stream.writelines(f"{a}\t{b}\t{c}\n" for a, b, c in rows)


if __name__ == "__main__":
    main(sys.argv[1:])
