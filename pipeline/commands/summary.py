"""Prints the summary at the end of a run."""

from collections.abc import Mapping

from rich.table import Table

from paraloom.pipeline.commands.console import console, number_table
from paraloom.pipeline.pages import describe
from paraloom.pipeline.run.folder import report_path, restrict
from paraloom.pipeline.run.records import (
    AutoSelectRecord,
    EvaluateRecord,
    PairsRecord,
    RunRecord,
    StageRecord,
)


def show_summary(folder: str, whole: RunRecord, ran: set[str]) -> None:
    """Print the summary of a run. `ran` contains the stages that this command has run."""
    record = restrict(whole, whole.wanted)
    out = console(max(120, 24 * (2 + len(record.config.score.names))))
    table = _stages(record.stages, ran)
    many = 1 if record.config.chats else record.config.nmt.candidates
    if many > 1 and "back_translate" in record.stages:
        table.caption = (
            f"from back_translate to bucket, a source has up to {many} rows, one per candidate"
        )
    out.print(table)
    rejected = {n: s.rejected for n, s in record.pair_records.items() if s.round is None}
    if any(rejected.values()):
        out.print(rejected_table(rejected))
    if found := describe.cleaned(record):
        out.print(f"Cleaned pairs: {found}")
    if "loop" in record.stages:
        out.print(f"{describe.verdict(record)}.")
    selections = record.config.select.selections
    named = {f"{name}, ": record.derived(f"selections/{name}") for name in selections}
    record = record.best
    if result := record.find(AutoSelectRecord):
        out.print(*describe.selection_lines(result), sep="\n")
    if record.bleu is not None:
        out.print(f"BLEU on held-out pairs: {record.bleu:.1f}")
    for which, of in {"": record, **named}.items():
        if evaluated := of.find(EvaluateRecord):
            out.print(_evaluation(evaluated, which))
    corpus = record.find(PairsRecord, "select")
    if corpus and corpus.earlier is not None and "select" in ran:
        out.print(f"{corpus.still:,} of {corpus.earlier:,} earlier pairs are still in the corpus.")
    if advice := describe.near_copies(corpus, record.config):
        out.print(f"{advice}.")
    out.print(f"Results: {folder}; report: {report_path(folder)}", soft_wrap=True)


def _stages(stages: Mapping[str, StageRecord], ran: set[str]) -> Table:
    numbers = ("rows in", "rows out", "rejected", "seconds", "rows/s", "peak MiB")
    table = number_table("Stages", "stage", numbers=numbers, after=["this time"])
    for name, stage in stages.items():
        rows, rate = ["", "", ""], ""
        if isinstance(stage, PairsRecord) and stage.round is None:  # not copied from a round
            rows = [f"{n:,}" for n in (stage.rows_in, stage.rows_out, stage.rows_rejected)]
            rate = f"{stage.rows_in / max(stage.seconds, 1e-9):,.0f}"
        memory = f"{stage.peak_memory / 2**20:,.0f}" if stage.peak_memory else ""
        state = "ran" if name in ran else "cached"
        table.add_row(name, *rows, f"{stage.seconds:,.1f}", rate, memory, state)
    return table


def rejected_table(stages: Mapping[str, Mapping[str, int]]) -> Table:
    """Return a table with the number of rejected or unselected rows by stage and reason."""
    rows = ((name, why, f"{n:,}") for name, of in stages.items() for why, n in of.items())
    title = "Rejected and unselected rows"
    return number_table(title, "stage", "reason", numbers=["rows"], rows=rows)


def _evaluation(evaluated: EvaluateRecord, which: str) -> Table:
    found = describe.evaluation_table([("", evaluated)])
    name = ", ".join(found.models) + (f", round {evaluated.round}" if evaluated.round else "")
    title = f"{which}{name}: correlation with human scores × 100"
    table = number_table(title, "test", numbers=found.columns[1:])
    for head, cells, is_mean in found.rows:
        table.add_row(head, *cells, style="bold" if is_mean else "", end_section=is_mean)
    if found.missing:
        table.caption = f"Missing data sets: {'; '.join(found.missing)}"
    return table
