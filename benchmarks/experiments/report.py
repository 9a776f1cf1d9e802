"""Shows a table of results beside the claims of the paper, and judges them.

A verdict is a test at 95%. The error of the mean difference has two parts: one from the seeds,
whose trainings are independent (rows of the same training are compared seed by seed), and one from
the test's pairs, by a bootstrap over the pairs, the same for both rows. The variances are added;
the degrees of freedom are Welch's and Satterthwaite's. Measures without resampled pairs have only
the first part.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import mean, stdev

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from benchmarks.experiments.cells import figure
from benchmarks.experiments.tables import ERRORS, Claim, Found, Table
from paraloom.models.files import atomic_file
from paraloom.pipeline.commands.console import console, number_table

PAPERS = ("W&G", "ParaNMT", "MaLSTM", "Pairwise GRU", "Decoding Decoders")
VERDICTS = ("holds", "open", "reversed")
_HEADS = {True: "what the paper says", False: "what only its figures order"}


def show(table: Table, found: Found) -> None:
    """Print the table and its claims."""
    heads, rows = grid(table, found)
    shown = number_table(table.title, "", *heads, rows=[(name, *cells) for name, cells in rows])
    shown.caption = f"{table.unit}, mean ± spread of seeds"
    claims = [number_table(None, *of, rows=judged) for of, judged in judgements(table, found)]
    for each in (shown, *claims):
        console(110).print(each)


def write(path: Path, table: Table, found: Found) -> None:
    """Write the table and its claims as Markdown."""
    settings = f"{table.note} {_time(table, found)}".strip()
    text = [f"### {table.title}", "", settings, ""]
    heads, rows = grid(table, found)
    text += markdown((table.unit, *heads), [(name, *cells) for name, cells in rows])
    for heads, judged in judgements(table, found):
        text += ["", *markdown(heads, judged)]
    _write(path, text)


def write_lines(path: Path, lines: Sequence[str]) -> None:
    """Print Markdown, and write it."""
    print(*lines, sep="\n")
    _write(path, lines)


def _write(path: Path, lines: Sequence[str]) -> None:
    with atomic_file(path) as temporary:
        temporary.write_text("\n".join([*lines, ""]))


def _time(table: Table, found: Found) -> str:
    """The seeds, and what the cells took, if it is known and worth mentioning."""
    cells = {id(scores): scores for cell in table.rows.values() for scores in found[cell]}
    seeds = max(map(len, found.values()))
    minutes = sum(figure(scores.get("seconds", math.nan)) for scores in cells.values()) / 60
    took = f", {minutes:,.0f} minutes of one core" if minutes > 0.5 else ""
    return f"{seeds} seeds{took}."


def counts(tables: Mapping[str, Table], found: Found) -> list[str]:
    """Markdown: verdicts by paper, on what its text says and on what only its figures order."""
    verdicts: dict[str, Counter[tuple[bool, str]]] = {}
    for table in tables.values():
        paper = next(name for name in PAPERS if table.title.startswith(name))
        counted = verdicts.setdefault(paper, Counter())
        for claim in table.claims:
            for measure in claim.printed or table.reported:
                counted[claim.stated, judge(table, claim, found, measure).split(" ")[0]] += 1
    columns = [(stated, verdict) for stated in (True, False) for verdict in VERDICTS]
    rows = [[name, *(f"{of[each]}" for each in columns)] for name, of in verdicts.items()]
    first, *others = VERDICTS
    heads = ["", f"the text: {first}", *others, f"only figures: {first}", *others]
    return markdown(heads, rows)


def grid(table: Table, found: Found) -> tuple[list[str], list[tuple[str, list[str]]]]:
    """Heads of the columns; name and cells of every row."""
    measures = _measured(table, found)
    heads = [*(table.measures[m] for m in measures), *table.paper_measures.values()]
    rows = lines(table, found)
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
            for measure in _measured(table, found)
        ]
        cells += [f"{paper[m]:g}" if m in paper else "–" for m in table.paper_measures]
        rows.append((name, cells))
    return rows


def judgements(table: Table, found: Found) -> list[tuple[list[str], list[list[str]]]]:
    """Heads and rows of the verdicts: on what the paper's text says, then on what only its figures
    order. `–`: no claim by this measure; claims without data are left out."""
    written = []
    for stated in (True, False):
        claims = [claim for claim in table.claims if claim.stated is stated]
        about = {m for claim in claims for m in claim.printed or table.reported}
        measures = [m for m in _measured(table, found) if m in about and m in table.reported]
        rows = [
            [
                f"{claim.better} > {claim.worse}"
                + (f" ({claim.figures})" if claim.figures else ""),
                *(
                    judge(table, claim, found, m) if m in (claim.printed or measures) else "–"
                    for m in measures
                ),
            ]
            for claim in claims
        ]
        if rows := [row for row in rows if not {*row[1:]} <= {"–"}]:
            written.append(([_HEADS[stated], *(table.measures[m] for m in measures)], rows))
    return written


def judge(table: Table, claim: Claim, found: Found, measure: str) -> str:
    """The verdict (`holds` or `reversed` if the 95% interval of the difference is on one side of 0,
    else `open`), the difference, half of its interval, and the paper's difference; `–` without
    data."""
    sides = [table.scores(row, measure, found) for row in (claim.better, claim.worse)]
    difference, half = interval(*sides, paired=table.shares_trainings(claim))
    if math.isnan(difference):
        return "–"
    printed = claim.printed.get(measure)
    as_text = claim.stated or printed is None or printed > 0
    ahead = difference if as_text else -difference
    verdict = ("holds" if ahead > 0 else "reversed") if abs(ahead) > half else "open"
    paper = "" if printed is None else f"; paper: {printed:+.1f}"
    return f"{verdict} ({difference:+.1f} ± {half:.1f}{paper})"


def interval(
    first: Sequence[NDArray[np.float64]], second: Sequence[NDArray[np.float64]], *, paired: bool
) -> tuple[float, float]:
    """The mean difference, and half of its 95% interval (NaN with one seed).

    Args:
        first: for each seed, the score and the scores of resampled pairs, [1 + resamples] or [1].
        second: the same for the other row; each resample has the same pairs in both.
        paired: whether the rows share trainings, so that they are compared seed by seed.
    """
    differences = [a - b for a, b in zip(first, second, strict=True)]
    seeds, *resamples = np.mean(differences, axis=0)
    if len(differences) == 1:
        return float(seeds), math.nan
    samples = [differences] if paired else [first, second]
    with np.errstate(divide="ignore", invalid="ignore"):
        parts = [np.var([of[0] for of in each], ddof=1) / len(each) for each in samples]
        pairs = np.var(resamples, ddof=1) if resamples else 0.0
        variance = sum(parts) + pairs
        freedom = variance**2 / (np.square(parts).sum() / (len(first) - 1))
    if variance == 0:
        return float(seeds), 0.0
    return float(seeds), float(student.ppf(0.975, freedom) * np.sqrt(variance))


def _measured(table: Table, found: Found) -> list[str]:
    """The measures that a row has data of."""
    return [
        measure
        for measure in table.measures
        if not all(math.isnan(mean(table.values(row, measure, found))) for row in table.rows)
    ]


def _mean_and_spread(measure: str, values: Sequence[float]) -> str:
    if math.isnan(mean(values)):
        return "–"
    digits = 3 if measure in ERRORS else 1
    return f"{mean(values):.{digits}f} ± {_spread(values):.{digits}f}"


def _spread(values: Sequence[float]) -> float:
    return stdev(values) if len(values) > 1 else 0.0


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """The lines of a table."""
    return [f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows)]
