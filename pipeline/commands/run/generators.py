"""`paraloom generators`: compares the quality and cost of the generators of a run."""

from paraloom.pipeline.commands.console import console, number_table
from paraloom.pipeline.commands.options import JsonFile, RunFolder, write_json
from paraloom.pipeline.pages.generators import compare_generators
from paraloom.pipeline.run.folder import as_made, finished


def command(run: RunFolder, json: JsonFile = None) -> None:
    """For each generator, print its candidates, scores, share of the corpus, distances and cost.

    Distances are 1 minus unigram F1. If the run has judgments, also print the share of good pairs.
    `paraloom judge` collects judgments.
    """
    out = console(160)
    found = compare_generators(run, as_made(finished(run)))
    for shown in found.tables():
        first, *numbers = shown.columns
        out.print(number_table(shown.title, first, numbers=numbers, rows=shown.rows))
    write_json(json, found)
