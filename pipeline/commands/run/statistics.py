"""`paraloom statistics`: corpora side by side."""

from typing import Annotated

import typer

from paraloom.beam_jobs.io import storage
from paraloom.beam_jobs.runners.launch import connect
from paraloom.models.languages import ENGLISH, short_code
from paraloom.pipeline import statistics
from paraloom.pipeline.commands.options import JsonFile, beam_options, write_json
from paraloom.pipeline.console import console
from paraloom.pipeline.manifest import Manifest, as_made, current
from paraloom.pipeline.records import RunRecord


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
    language: Annotated[
        str,
        typer.Option(metavar="CODE", help="Language of corpora that are not in a run's folder."),
    ] = ENGLISH,
    json: JsonFile = None,
) -> None:
    """Print length, IDF, entropies and scores of corpora side by side.

    Workers on other machines need a shared folder for temporary files; set TMPDIR to it.
    """
    beam = beam_options(context)
    connect(beam, corpora)
    files = {path: statistics.find_corpus(path) for path in corpora}
    records = {path: record for path in files if (record := _record(path))}
    languages = {p: records[p].language if p in records else short_code(language) for p in files}
    results = statistics.describe(files, beam, spacy=spacy, idf=idf, languages=languages)
    out = console(max(120, 40 + 26 * len(files)))
    out.print(statistics.table(results))
    for path, record in records.items():
        if "select" in record.planned and "select" not in current(record).stages:
            out.print(f"{path}: no corpus of this run is of the last command's configuration")
    write_json(json, results.json_values())


def _record(path: str) -> RunRecord | None:
    """The record of the run in a folder or above it, as its corpus was made."""
    folder = path.rstrip("/")
    for _ in range(5):  # RUN/rounds/2/corpus/part-00000.parquet
        if storage.exists(storage.join(folder, "manifest.json")):
            return as_made(Manifest(folder).record)
        folder, slash, _ = folder.rpartition("/")
        if not slash:
            break
    return None
