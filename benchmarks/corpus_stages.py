"""Scores, buckets and selects generated pairs; other benchmarks measure this process.

python -m benchmarks.corpus_stages FOLDER WORKERS STAGE …

Stages: score, bucket, select; with all scorers idf, score-all, bucket-all, select.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from paraloom.beam_jobs.runners.local.fork_server import fork_server

if __name__ == "__main__":  # workers import at the same time, as those of a command do
    fork_server.prepare_for(["--direct_num_workers", sys.argv[2]])

from paraloom.beam_jobs import bucket, idf, score, select
from paraloom.beam_jobs.engine.shards import receipts, units
from paraloom.models.scorers import SCORERS as ALL
from paraloom.models.text.idf import compact_idf, write_idf

SCORERS = ("translation_score", "trigram_overlap", "paragram_similarity")
ALL_SCORERS = (
    "translation_score",
    *(name for name, scorer in ALL.items() if scorer.resource_name in (None, "paragram", "idf")),
)


def run(folder: Path, workers: int, stages: Sequence[str]) -> dict[str, float]:
    """Run `stages` from scratch on the generated pairs in `folder`; seconds of each."""
    output = folder / f"out-{workers}"
    shutil.rmtree(output, ignore_errors=True)
    arguments = ["--direct_num_workers", str(workers)]
    shards = [s for receipt in receipts(str(folder / "back_translate")) for s in receipt.shards]
    rows = sum(shard.rows for shard in shards)
    criteria = select.Criteria(
        by="paragram_similarity", deciles=(8, 9), max_tokens=30, size=rows // 10, seed=1
    )
    seconds = {}
    for stage in stages:
        started = time.monotonic()
        name, _, every = stage.partition("-")
        place, work = str(output / name), units(shards, stage)
        scorers = ALL_SCORERS if every else SCORERS
        if name == "idf":
            counts = idf.run(work, place, arguments)
            write_idf(counts, folder / "idf.txt")
            compact_idf(folder / "idf.txt", folder / "idf")
        elif name == "score":
            tables = {"paragram": str(folder / "compact")}
            if every:
                tables["idf"] = str(folder / "idf")
            result = score.run(work, place, score.Scoring(scorers, tables), arguments)
        elif name == "bucket":
            result = bucket.run(work, place, scorers, arguments)
        else:
            result = select.run(work, place, criteria, arguments)
        if name != "idf":
            shards = [s for receipt in result.receipts for s in receipt.shards]
        seconds[name] = time.monotonic() - started
    return seconds


if __name__ == "__main__":
    print(json.dumps(run(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])))
