"""`paraloom statistics`: corpora side by side."""

from typing import Annotated

import typer

from beam_jobs.runners.launch import connect
from pipeline import statistics
from pipeline.commands.options import JsonFile, On, beam_options, write_json
from pipeline.console import console


def command(
    context: typer.Context,
    corpora: Annotated[
        list[str],
        typer.Argument(
            metavar="CORPUS",
            help="Run folder, Parquet file, or folder of Parquet files with the columns reference "
            "and translation.",
        ),
    ],
    spacy: Annotated[
        str | None,
        typer.Option(metavar="PIPELINE", help="Name or folder of a spaCy pipeline that parses."),
    ] = None,
    idf: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="IDF of words (`word idf`), such as a run's idf/idf.txt."
        ),
    ] = None,
    json: JsonFile = None,
    on: On = None,
) -> None:
    """Print length, IDF, entropies and scores of corpora side by side.

    Workers on other machines need a shared folder for temporary files; set TMPDIR to it.
    """
    beam = beam_options(context, on)
    connect(beam, corpora)
    files = {path: statistics.find_corpus(path) for path in corpora}
    results = statistics.describe(files, beam, spacy=spacy, idf=idf)
    console(max(120, 40 + 26 * len(files))).print(statistics.table(results))
    write_json(json, results.json_values())
