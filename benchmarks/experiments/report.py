"""Shows a table of results beside the claims of the paper."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, stdev

from rich.console import Console
from rich.table import Table as RichTable

from benchmarks.experiments.tables import ERRORS, Claim, Found, Table
from paraloom.models.files import atomic_file


def show(table: Table, found: Found) -> None:
    """Print the table and its claims."""
    console = Console(width=110)
    heads, cells_by_row = grid(table, found)
    rows = RichTable(
        "",
        *heads,
        title=table.title,
        caption=f"{table.unit}, mean ± spread of seeds",
    )
    for name, cells in cells_by_row:
        rows.add_row(name, *cells)
    console.print(rows)
    if not table.claims:
        return
    claims = RichTable(*_heads(table))
    for claim, verdicts in judgements(table, found):
        claims.add_row(claim, *verdicts)
    console.print(claims)


def write(path: Path, table: Table, found: Found) -> None:
    """Write the table and its claims as Markdown."""
    text = [f"### {table.title}", ""]
    heads, rows = grid(table, found)
    text += _markdown((table.unit, *heads), [(name, *cells) for name, cells in rows])
    if table.claims:
        text += [
            "",
            *_markdown(
                _heads(table),
                [(claim, *verdicts) for claim, verdicts in judgements(table, found)],
            ),
        ]
    with atomic_file(path) as temporary:
        temporary.write_text("\n".join([*text, ""]))


def grid(table: Table, found: Found) -> tuple[list[str], list[tuple[str, list[str]]]]:
    """Heads of the columns; name and cells of every row."""
    heads, rows = [*table.measures.values(), *table.paper_measures.values()], lines(table, found)
    if not table.transposed:
        return heads, rows
    columns = zip(*(cells for _, cells in rows), strict=True)
    by_measure = [(head, list(cells)) for head, cells in zip(heads, columns, strict=True)]
    return [name for name, _ in rows], by_measure


def lines(table: Table, found: Found) -> list[tuple[str, list[str]]]:
    """Name and cells of every row."""
    rows = []
    for name in table.rows:
        paper = table.paper.get(name, {})
        cells = [
            _mean_and_spread(measure, table.values(name, measure, found))
            + (f" (paper: {paper[measure]:g})" if measure in paper else "")
            for measure in table.measures
        ]
        cells += [f"{paper[m]:g}" if m in paper else "–" for m in table.paper_measures]
        rows.append((name, cells))
    return rows


def judgements(table: Table, found: Found) -> list[tuple[str, list[str]]]:
    """Every claim, and whether the order holds by each measure that one of the claims is about."""
    measures = _judged(table)
    return [
        (
            f"{claim.better} > {claim.worse}" + (f" ({claim.figures})" if claim.figures else ""),
            [
                judge(table, claim, found, measure)
                if measure in (claim.printed or table.reported)
                else "–"
                for measure in measures
            ],
        )
        for claim in table.claims
    ]


def judge(table: Table, claim: Claim, found: Found, measure: str) -> str:
    """`holds` or `reversed` where the difference is more than its standard error, else `open`; `–`
    without data."""
    better, worse = (table.values(name, measure, found) for name in (claim.better, claim.worse))
    difference = mean(better) - mean(worse)
    if math.isnan(difference):
        return "–"
    error = math.sqrt(sum(_spread(values) ** 2 / len(values) for values in (better, worse)))
    verdict = "open" if abs(difference) <= error else "holds" if difference > 0 else "reversed"
    printed = claim.printed.get(measure)
    paper = "" if printed is None else f"; paper: {printed:+.1f}"
    return f"{verdict} ({difference:+.1f} ± {error:.1f}{paper})"


def _judged(table: Table) -> list[str]:
    """The reported measures that at least one claim is about."""
    about = [claim.printed or table.reported for claim in table.claims]
    return [measure for measure in table.reported if any(measure in each for each in about)]


def _heads(table: Table) -> list[str]:
    return ["the paper's claim", *(table.measures[measure] for measure in _judged(table))]


def _mean_and_spread(measure: str, values: Sequence[float]) -> str:
    if math.isnan(mean(values)):
        return "–"
    digits = 3 if measure in ERRORS else 1
    return f"{mean(values):.{digits}f} ± {_spread(values):.{digits}f}"


def _spread(values: Sequence[float]) -> float:
    return stdev(values) if len(values) > 1 else 0.0


def _markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows)]
