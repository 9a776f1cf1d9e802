"""Cells are computed in parallel processes, and their scores are kept.

Not in `__main__`: a spawned process does not import a package's `__main__` again.
"""

import multiprocessing
import os
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import Any

from benchmarks.experiments.cells import Inputs, Scores, load_scores
from benchmarks.experiments.tables import Table
from paraloom.models.progress import meter


def train(
    chosen: Mapping[str, Table], seeds: int, inputs: Inputs, workers: int
) -> dict[Any, list[Scores]]:
    """The scores of all cells, one per seed; missing cells are computed in parallel."""
    wanted = list(dict.fromkeys(cell for table in chosen.values() for cell in table.rows.values()))
    paths = {
        (cell, seed): cell.cell_path(seed, inputs)
        for cell in wanted
        for seed in range(1, seeds + 1)
    }
    missing = {path: key for key, path in paths.items() if not path.exists()}
    start = multiprocessing.get_context("spawn")
    os.environ["OMP_NUM_THREADS"] = "1"  # inherited by the workers: each trains on one core
    with (
        meter("experiments", len(missing), "cells") as progress,
        ProcessPoolExecutor(workers, start) as processes,
    ):
        futures = [
            processes.submit(cell.run, seed, inputs, path) for path, (cell, seed) in missing.items()
        ]
        try:
            for done, future in enumerate(as_completed(futures), 1):
                future.result()
                progress.set(done)
        except BaseException:
            processes.shutdown(cancel_futures=True)
            raise
    found = {path: load_scores(path, timed=True) for path in dict.fromkeys(paths.values())}
    return {cell: [found[paths[cell, seed]] for seed in range(1, seeds + 1)] for cell in wanted}
