"""Small versions of the papers' tables: python -m benchmarks.experiments [TABLE …]

Finished cells are stored in `--folder` and not trained again, so that the program can be
interrupted. Every table lists the claims of its paper and a verdict on each claim.
"""

from pathlib import Path
from typing import Annotated

import typer

from benchmarks.experiments import context, labelled, paranmt, phrases, revisiting, supervised
from benchmarks.experiments.cells import Inputs, prepare
from benchmarks.experiments.report import counts, write
from benchmarks.experiments.tables import Table, train
from benchmarks.report import DATA, ROOT, command_line
from paraloom.models.cpu import cores
from paraloom.models.errors import UserError

PRINTED = ("paranmt6",)
"""Tables of sentences, which have no cells."""


def main(
    tables: Annotated[list[str] | None, typer.Argument(metavar="TABLE")] = None,
    corpus: Path = ROOT / "runs" / "multi30k" / "corpus",
    data: Annotated[Path, typer.Option(help="Folder with ppdb, sts, sick and books.")] = DATA,
    folder: Path = ROOT / "runs" / "experiments",
    seeds: int = 3,
    workers: int = cores(),
) -> None:
    """Train what is missing, then print and write the tables."""
    inputs = Inputs.of(data, corpus=corpus, folder=folder)
    if not sorted(inputs.corpus.glob("*.parquet")):
        raise UserError(
            f"{inputs.corpus}: no corpus; make it with the first command of "
            "benchmarks/EXPERIMENTS.md, or name another by --corpus"
        )
    prepare(inputs)
    known: dict[str, Table] = {}
    for module in (revisiting, supervised, labelled, phrases, context, paranmt):
        known |= module.tables(inputs)
    names = [*known, *PRINTED]
    unknown = set(tables or ()) - set(names)
    if unknown:
        raise UserError(f"no table {', '.join(unknown)}; there are {', '.join(names)}")
    wanted = tables or names
    chosen = {name: known[name] for name in wanted if name in known}
    for module in (supervised, phrases, paranmt):
        module.prepare(chosen, inputs)
    scores = train(chosen, seeds, inputs, workers)
    for name, table in chosen.items():
        write(inputs.folder / f"{name}.md", table, scores)
    print(*counts(chosen, scores), sep="\n")
    if "paranmt6" in wanted:
        paranmt.print_negatives(inputs)


if __name__ == "__main__":
    command_line(main)
