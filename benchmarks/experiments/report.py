"""Prints and writes tables of results, and judges the claims of the papers.

A verdict is a statistical test at 95%. The variance of the mean difference of two rows is the sum
of two parts:

- The variance between seeds, whose trainings are independent. Rows that share trainings are
  compared seed by seed.
- The variance between samples of the test pairs, by a bootstrap with the same samples for both
  rows. Measures without resampled pairs do not have this part.

The degrees of freedom follow Welch and Satterthwaite.
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

PAPERS = ("W&G", "ParaNMT", "MaLSTM", "Pairwise GRU", "Decoding Decoders")
VERDICTS = ("holds", "open", "reversed")
_HEADS = {True: "what the paper says", False: "what only its figures order"}


def write(path: Path, table: Table, found: Found) -> None:
    """Print the table and its claims as Markdown, and write them to a file."""
    settings = f"{table.note} {_time(table, found)}".strip()
    heads, *rows = grid(table, found)
    text = [f"### {table.title}", "", settings, "", *markdown(heads, rows)]
    for heads, judged in judgements(table, found):
        text += ["", *markdown(heads, judged)]
    write_lines(path, text)


def write_lines(path: Path, lines: Sequence[str]) -> None:
    """Print lines of Markdown, and write them to a file."""
    print(*lines, sep="\n")
    with atomic_file(path) as temporary:
        temporary.write_text("\n".join([*lines, ""]))


def _time(table: Table, found: Found) -> str:
    """Return the number of seeds and, if it is more than half a minute, the time of the cells."""
    cells = {id(scores): scores for cell in table.rows.values() for scores in found[cell]}
    seeds = max(map(len, found.values()))
    minutes = sum(figure(scores.get("seconds", math.nan)) for scores in cells.values()) / 60
    took = f", {minutes:,.0f} minutes of one core" if minutes > 0.5 else ""
    return f"{seeds} seeds{took}."


def counts(tables: Mapping[str, Table], found: Found) -> list[str]:
    """Return a Markdown table of the number of verdicts by paper.

    Claims that a paper's text makes and claims that only its figures make are counted separately.
    """
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


def grid(table: Table, found: Found) -> list[Sequence[str]]:
    """Return the rows of the written table. The first row has the heads."""
    measures = _measured(table, found)
    heads = (*(table.measures[m] for m in measures), *table.paper_measures.values())
    rows: list[Sequence[str]] = [(table.unit, *heads)]
    for name in table.rows:
        paper = table.paper.get(name, {})
        cells = [
            _mean_and_spread(measure, table.values(name, measure, found))
            + (f" (paper: {paper[measure]:g})" if measure in paper else "")
            for measure in measures
        ]
        cells += [f"{paper[m]:g}" if m in paper else "–" for m in table.paper_measures]
        rows.append((name, *cells))
    return list(zip(*rows, strict=True)) if table.transposed else rows


def judgements(table: Table, found: Found) -> list[tuple[list[str], list[list[str]]]]:
    """Return heads and rows of two tables of verdicts.

    The first table has the claims that the paper's text makes, the second table has the claims that
    only its figures make. A table without rows is left out.

    The cell `–` means that there is no claim by this measure. Claims without data are left out.
    """
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
    """Return the verdict, our difference ± half of its 95% interval, and the paper's difference.

    The verdict is `holds` or `reversed` if the interval is on one side of 0, else `open`. Without
    data, the result is `–`.
    """
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
    """Return the mean difference, and half the width of its 95% interval (NaN with one seed).

    Args:
        first: for each seed, the score and the scores on resampled pairs, [1 + resamples] or [1].
        second: the same scores of the other row, with the same pairs in each resample.
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
    """Return the measures that have data in some row."""
    return [
        measure
        for measure in table.measures
        if not all(math.isnan(mean(table.values(row, measure, found))) for row in table.rows)
    ]


def _mean_and_spread(measure: str, values: Sequence[float]) -> str:
    if math.isnan(mean(values)):
        return "–"
    digits = 3 if measure in ERRORS else 1
    spread = stdev(values) if len(values) > 1 else 0.0
    return f"{mean(values):.{digits}f} ± {spread:.{digits}f}"


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a Markdown table."""
    return [f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows)]
