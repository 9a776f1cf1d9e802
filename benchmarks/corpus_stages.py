"""Scores, buckets and selects generated pairs; other benchmarks measure this process.

python -m benchmarks.corpus_stages FOLDER WORKERS STAGE …

Stages: score, bucket, select.
"""

import json
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from paraloom.beam_jobs.runners.local.fork_server import fork_server

if __name__ == "__main__":  # workers import at the same time, as those of a command do
    if int(sys.argv[2]) > 1:
        fork_server.prepare()

from paraloom.beam_jobs import bucket, score, select
from paraloom.beam_jobs.engine.shards import receipts, units
from paraloom.beam_jobs.transforms.criteria import Criteria

SCORERS = ("translation_score", "trigram_overlap", "paragram_similarity")


def run(folder: Path, arguments: Sequence[str], stages: Sequence[str]) -> dict[str, float]:
    """Run `stages` from scratch on the generated pairs in `folder`; seconds of each."""
    output = folder / "out"
    shutil.rmtree(output, ignore_errors=True)
    shards = [s for receipt in receipts(str(folder / "back_translate")) for s in receipt.shards]
    rows = sum(shard.rows for shard in shards)
    criteria = Criteria(
        by="paragram_similarity", deciles=(8, 9), max_tokens=30, size=rows // 10, seed=1
    )
    seconds = {}
    for stage in stages:
        started = time.monotonic()
        place, work = str(output / stage), units(shards, stage)
        if stage == "score":
            tables = {"paragram": str(folder / "compact")}
            result = score.run(work, place, score.Scoring(SCORERS, tables), arguments)
        elif stage == "bucket":
            result = bucket.run(work, place, SCORERS, arguments)
        else:
            result = select.run(work, place, criteria, arguments)
        shards = [s for receipt in result.receipts for s in receipt.shards]
        seconds[stage] = time.monotonic() - started
    return seconds


if __name__ == "__main__":
    workers = ["--direct_num_workers", sys.argv[2]]
    print(json.dumps(run(Path(sys.argv[1]), workers, sys.argv[3:])))
