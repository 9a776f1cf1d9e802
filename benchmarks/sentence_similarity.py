"""The scorer `sentence_similarity` against the model's bare `encode`: pairs/s, in turns.

python -m benchmarks.sentence_similarity --model FOLDER [--pairs N] [--rounds N]

One corpus has captions that hardly repeat, the other the judged paraphrases, of which a dozen share
a reference. The processor time hardly depends on other load on the machine.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import os
import sys
import time
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa
from scipy.stats import spearmanr

from benchmarks.report import Measured
from paraloom.models.scorers import PairScorer
from paraloom.models.scorers.learned.sentence_similarity import open_sentence_model

Pairs = tuple[pa.Array, pa.Array]


def captions(data: Path, pairs: int) -> Pairs:
    """Neighbouring captions of Multi30k."""
    with gzip.open(data / "multi30k" / "train.en.gz", "rt", encoding="utf-8") as file:
        lines = [line.strip() for line in islice(file, 2 * pairs)]
    return pa.array(lines[::2]), pa.array(lines[1::2])


def judged(data: Path) -> tuple[Pairs, list[float]]:
    """The judged paraphrases whose sides differ, and their judgments."""
    path = data / "judgments" / "parabank-even.tsv"
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    rows = [row for row in rows if row["reference"] != row["paraphrase"]]
    sides = (pa.array([row[side] for row in rows]) for side in ("reference", "paraphrase"))
    return (next(sides), next(sides)), [float(row["score"]) for row in rows]


def seconds(work: Callable[[], Any]) -> float:
    """Processor time of all threads."""
    started = time.process_time()
    work()
    return time.process_time() - started


def main(arguments: Sequence[str] = ()) -> dict[str, Any]:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True)
    parser.add_argument("--pairs", type=int, default=320)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args(arguments)
    data = Path(os.environ["PARALOOM_DATA"])
    model = open_sentence_model(Path(options.model))
    scorer = PairScorer(["sentence_similarity"], sentence_model=model)
    repeated, labels = judged(data)
    measured = Measured(f"sentence_similarity with {Path(options.model).name}, processor time")
    for name, pairs in (("captions", captions(data, options.pairs)), ("judged", repeated)):
        sides = [side.to_pylist() for side in pairs]

        def bare(sides: list[list[str]] = sides) -> None:
            for side in sides:
                model.encode(side, normalize_embeddings=True, show_progress_bar=False)

        def ours(pairs: Pairs = pairs) -> None:
            scorer.score(*pairs)

        bare()  # the first call is slower
        spent = [(seconds(bare), seconds(ours)) for _ in range(options.rounds)]
        total = [sum(column) for column in zip(*spent, strict=True)]
        rows = options.rounds * len(pairs[0])
        measured.add(f"{name}: pairs/s of bare encode", rows / total[0])
        measured.add(f"{name}: pairs/s of the scorer", rows / total[1])
        ratio = median(of_bare / of_ours for of_bare, of_ours in spent)
        measured.ratio(f"{name}: the scorer's speed against encode's, median", ratio, 1)
    values = scorer.score(*repeated)["sentence_similarity"]
    measured.add("Spearman with people", float(spearmanr(values, labels).statistic))
    return measured.done("sentence_similarity")


if __name__ == "__main__":
    main(sys.argv[1:])
