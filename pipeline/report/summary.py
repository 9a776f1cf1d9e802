"""What a run prints for people: a line as a stage begins, tables at the end."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.table import Table

from beam_jobs.select import tsv_path
from pipeline import statistics
from pipeline.console import console
from pipeline.report import report_path
from pipeline.report.auto_select import Choice, mean
from pipeline.report.describe import deciles_in_words
from pipeline.report.final_view import kept, only, rounds, verdict

if TYPE_CHECKING:
    from pipeline.stage import Run


def show_start(stage: str) -> None:
    """Say that a stage begins."""
    print(f"{stage} …", file=sys.stderr, flush=True)


def show_damage(path: str) -> None:
    """Say that a part file was found damaged, and what is done about it."""
    print(f"{path}: damaged, made again", file=sys.stderr, flush=True)


def show_summary(run: Run, stages: Sequence[str], ran: set[str]) -> None:
    """Print what every stage did, why rows were rejected, the deciles, and where the files are."""
    out = console(max(120, 24 * (2 + len(run.config.score.scorers))))
    record = only(run.manifest.values, stages)
    accounts = record["stages"]
    out.print(_stages(accounts, ran))
    made = {name: account for name, account in accounts.items() if "round" not in account}
    if any(account.get("rejected") for account in made.values()):
        out.print(rejected_table(made))
    if "loop" in accounts:
        out.print(_rounds(record), verdict(record), sep="\n")
    accounts = kept(record)["stages"]
    if "bucket" in accounts and accounts["bucket"]["rows_out"]:
        out.print(_deciles(accounts["bucket"]["deciles"]))
    if "choice" in accounts:
        out.print(*_choice(Choice.from_json(accounts["choice"])), sep="\n")
    if "nmt" in accounts:
        out.print(f"BLEU on held-out pairs: {accounts['nmt']['training']['bleu']:.1f}")
    if "statistics" in accounts:
        out.print(statistics.table(accounts["statistics"]["results"]))
    if "evaluate" in accounts:
        out.print(_evaluation(accounts["evaluate"]))
    out.print(_files(run, accounts))


def _stages(accounts: dict[str, dict], ran: set[str]) -> Table:
    table = Table(title="Stages")
    table.add_column("stage")
    for name in ("rows in", "rows out", "rejected", "seconds", "rows/s", "peak MiB"):
        table.add_column(name, justify="right")
    table.add_column("this time")
    for name, account in accounts.items():
        seconds = account["seconds"]
        rows: list[str] = ["", "", ""]
        rate = ""
        if "rows_in" in account and "round" not in account:  # a copied corpus has no rate
            rows = [f"{account[k]:,}" for k in ("rows_in", "rows_out", "rows_rejected")]
            rate = f"{account['rows_in'] / max(seconds, 1e-9):,.0f}"
        peak = account.get("peak_memory")  # of one process; runs of long ago do not have it
        memory = f"{peak / 2**20:,.0f}" if peak else ""
        done = "ran" if name in ran else "kept"
        table.add_row(name, *rows, f"{seconds:,.1f}", rate, memory, done)
    return table


def rejected_table(accounts: Mapping[str, dict]) -> Table:
    """Rows by stage and by the reason why they do not go on."""
    table = Table("stage", "reason", title="Rejected and unselected rows")
    table.add_column("rows", justify="right")
    for name, account in accounts.items():
        for reason, rows in account.get("rejected", {}).items():
            table.add_row(name, reason, f"{rows:,}")
    return table


def _deciles(deciles: dict[str, dict[str, list]]) -> Table:
    table = Table(title="Deciles: lowest score of each")
    table.add_column("decile", justify="right")
    for score in deciles:
        table.add_column(score, justify="right", overflow="fold")
    table.add_column("rows", justify="right")
    for decile in range(10):
        lowest = (summary["lowest"][decile] for summary in deciles.values())
        cells = ["" if value is None else f"{value:.3f}" for value in lowest]
        rows = {summary["rows"][decile] for summary in deciles.values()}
        table.add_row(str(decile), *cells, " / ".join(f"{n:,}" for n in sorted(rows)))
    return table


def _choice(choice: Choice) -> list[Table | str]:
    """ParaNMT's Table 4 for this corpus, and what was chosen."""
    title = f"Trained on {choice.sample:,} pairs of a decile: Pearson × 100 on the labelled pairs"
    table = Table("decile", title=title)
    for scorer in choice.scores:
        table.add_column(scorer, justify="right", overflow="fold")
    for decile in range(10):
        cells = (mean(of[decile]) if decile in of else "" for of in choice.scores.values())
        table.add_row(str(decile), *cells)
    table.add_section()
    table.add_row("random", *[mean(choice.random)] * len(choice.scores))
    return [table, *choice.lines()]


def _rounds(record: dict[str, Any]) -> Table:
    table = Table("round", "selected by", title="Rounds: Pearson × 100 on the labelled pairs")
    for name in ("pairs", "labelled"):
        table.add_column(name, justify="right")
    table.add_column("")
    for each in rounds(record):
        deciles = "" if each.deciles is None else f", {deciles_in_words(each.deciles)}"
        cells = (each.by + deciles, f"{each.pairs:,}", f"{each.labelled:.2f}")
        table.add_row(str(each.number), *cells, "kept" if each.kept else "")
    return table


def _evaluation(account: dict[str, Any]) -> Table:
    results = account["results"]
    (model,) = results["models"]
    name = f"{model}, round {account['round']}" if "round" in account else model
    table = Table("test", title=f"{name}: correlation with people × 100")
    table.add_column("pairs", justify="right")
    table.add_column("Pearson", justify="right")
    table.add_column("Spearman", justify="right")
    sets = [data for of in results["groups"].values() for data in of["data_sets"].values()]
    if any("mse" in data["models"][model] for data in sets):  # its scores are predicted labels
        table.add_column("MSE", justify="right")
    for group, content in results["groups"].items():
        for name, data in content["data_sets"].items():
            table.add_row(f"{group} {name}", f"{data['pairs']:,}", *_cells(data["models"][model]))
        if "mean" in content:
            table.add_row(f"{group} mean", "", *_cells(content["mean"][model]), style="bold")
        if content["missing"]:
            table.add_row(f"{group} lacks {', '.join(content['missing'])}", style="dim")
        table.add_section()
    return table


def _cells(correlation: dict[str, float | None]) -> list[str]:
    values = (correlation["pearson"], correlation["spearman"])
    cells = ["undefined" if value is None else f"{value:.1f}" for value in values]
    return [*cells, f"{correlation['mse']:.3f}"] if "mse" in correlation else cells


def _files(run: Run, accounts: dict[str, dict]) -> Table:
    table = Table("what", "where", title="Files", show_header=False, box=None)
    if "corpus" in accounts:
        table.add_row("corpus", run.folder("corpus") + "/part-*.parquet")
        table.add_row("", tsv_path(run.folder("corpus")))
    if "embeddings" in accounts:
        table.add_row("encoder", run.folder("embeddings"))
    rejecting = [name for name, account in accounts.items() if account.get("rejected")]
    for name in rejecting:
        table.add_row("rejected" if name == rejecting[0] else "", run.folder(name) + "/rejected")
    table.add_row("report", report_path(run.config.run))
    table.add_row("record", run.manifest.path)
    return table
