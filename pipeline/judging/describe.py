"""Texts that describe judgments, and how well scores agree with judgments."""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import yaml

from paraloom.pipeline.judging import cuts
from paraloom.pipeline.judging.judgments import Judgment


def precision_line(place: str, good: int, judged: int) -> str:
    """Describe a corpus's precision. `place` is `selections/NAME`, or "" for the run's corpus."""
    low, high = cuts.wilson(good, judged)
    name = place.rpartition("/")[2]
    share = f"{good:,} of {judged:,}, 95% interval {low:.2f} to {high:.2f}"
    return f"Precision of the corpus{f' {name}' if name else ''}: {share}"


def good_of(good: int, judged: int) -> str:
    """Describe the share of good pairs and its interval, or return "" without judged pairs."""
    if not judged:
        return ""
    return f"{good:,} of {judged:,} ({interval_in_words(cuts.wilson(good, judged))})"


def labelled_in_words(pearson: float, pairs: int) -> str:
    """Describe the number of labelled pairs, and the interval of a correlation × 100.

    >>> labelled_in_words(70, 280), labelled_in_words(70, 12)
    ('280 labelled pairs, 95% interval 63.5 to 75.5', '12 labelled pairs, too few for an interval')
    """
    sure = ", too few for an interval" if pairs < cuts.ENOUGH else ""
    if interval := cuts.pearson_interval(pearson, pairs):
        sure = f", 95% interval {interval[0]:.1f} to {interval[1]:.1f}"
    return f"{pairs:,} labelled pairs{sure}"


def deciles_in_words(deciles: Sequence[int]) -> str:
    """Describe deciles as ranges.

    >>> deciles_in_words([4, 1, 2]), deciles_in_words([0])
    ('deciles 1–2 and 4', 'decile 0')
    """
    ranges = [f"{a}" if a == b else f"{a}–{b}" for a, b in neighbouring(deciles)]
    words = " and ".join([", ".join(ranges[:-1]), ranges[-1]] if ranges[1:] else ranges)
    return f"decile {words}" if len(set(deciles)) == 1 else f"deciles {words}"


def neighbouring(deciles: Sequence[int]) -> list[tuple[int, int]]:
    """Return the first and the last decile of each range without gaps."""
    chosen = sorted(set(deciles))
    starts = [d for d in chosen if d - 1 not in chosen]
    ends = [d for d in chosen if d + 1 not in chosen]
    return list(zip(starts, ends, strict=True))


def interval_in_words(interval: cuts.Interval | None) -> str:
    """Format the two ends of an interval.

    >>> interval_in_words((0.125, 0.5)), interval_in_words((-0.3, -0.1))
    ('0.12–0.50', '−0.30 to −0.10')
    """
    if interval is None:
        return "no interval"
    low, high = (number_in_words(end) for end in interval)
    return f"{low} to {high}" if interval[0] < 0 else f"{low}–{high}"


def number_in_words(value: float | None) -> str:
    """Format a number with two decimal places, and None as `undefined`."""
    return "undefined" if value is None else f"{value:.2f}".replace("-", "−")


def select_lines(cut: cuts.Cut, where: Sequence[str] = ()) -> str:
    """Return a section `select` in YAML, which applies a cut and the conditions in `where`."""
    items = yaml.safe_dump([*where], default_flow_style=True, allow_unicode=True, width=10**6)
    conditions = f"\n  where: {items.rstrip()}" if where else ""
    comment, deciles = f"# precision {cut.wanted:g}", list(cut.deciles)
    return f"select:  {comment}\n  by: {cut.score}\n  deciles: {deciles}{conditions}"


def cut_lines(cut: cuts.Cut, rows: int) -> list[str]:
    """Describe the deciles, the pairs and the precision of a cut in sentences."""
    none = (
        f"no cut with at least {cuts.ENOUGH} judged pairs is sure to reach this precision; "
        "the best cut is "
    )
    nearest = "" if cut.reached else none
    return [
        f"Precision {cut.wanted:g}: {nearest}{deciles_in_words(cut.deciles)} of {cut.score}; "
        f"{cut.rows:,} of {rows:,} pairs ({100 * cut.rows / max(rows, 1):.0f}%).",
        f"Of the {cut.judged:,} judged pairs in the cut, {cut.good:,} are good: a share of "
        f"{cut.precision:.2f} (95% interval by Wilson: {interval_in_words(cut.wilson)}).",
    ]


def counts_line(found: cuts.AgreementRecord) -> str:
    """Describe how many pairs are judged, how many are good, and what does not count."""
    judged = f"{found.pairs:,} judged pairs of {found.references:,} references"
    if found.where:
        judged += f" with {' and '.join(found.where)}"
    if found.judges:
        judged += f", {found.judges:,} judge{'s'[: found.judges != 1]}"
    if found.alpha is not None:
        judged += f" (Krippendorff's alpha {number_in_words(found.alpha)})"
    good = f"{found.good_pairs:,} are good (label at least {found.good:g} of 100)"
    not_counted = {
        "pair(s) with equal sides": found.copies,
        "pair(s) that do not meet the conditions": found.outside,
        "judgment(s) of texts that are not in the run": found.gone,
    }
    some = [f"{number:,} {which}" for which, number in not_counted.items() if number]
    return "; ".join([judged, good, *([f"not counted: {', '.join(some)}"] if some else [])])


def by_agreement(scores: Mapping[str, cuts.ScoreAgreement]) -> dict[str, cuts.ScoreAgreement]:
    """Sort scores by their agreement with the labels, from strongest to weakest."""
    signs = {name: 1 if of.higher_is_better else -1 for name, of in scores.items()}
    names = sorted(scores, key=lambda n: signs[n] * (scores[n].spearman or 0.0), reverse=True)
    return {name: scores[name] for name in names}


def describe_judges(judgments: Sequence[Judgment]) -> list[str]:
    """Describe the number of judgments of each judge, and the agreement between the judges."""
    counts = Counter(judgment.judge for judgment in judgments)
    lines = [f"pairs judged by {judge}: {count:,}" for judge, count in sorted(counts.items())]
    if len(counts) < 2:
        return lines
    shared = sum(n > 1 for n in Counter(judgment.pair for judgment in judgments).values())
    value = f"Krippendorff's alpha {number_in_words(alpha(judgments))}"
    return [*lines, f"agreement on {shared:,} pairs with several judges: {value}"]


def alpha(judgments: Sequence[Judgment]) -> float | None:
    """Return Krippendorff's alpha, which is 1 if all judges agree. It is None if the pairs with
    several judges do not have at least two different labels."""
    pairs = {pair: i for i, pair in enumerate(dict.fromkeys(of.pair for of in judgments))}
    judges = {judge: i for i, judge in enumerate(sorted({of.judge for of in judgments}))}
    values = np.full((len(judges), len(pairs)), np.nan)
    for of in judgments:
        values[judges[of.judge], pairs[of.pair]] = of.score
    shared = values[:, (~np.isnan(values)).sum(axis=0) > 1]
    if len(np.unique(shared[~np.isnan(shared)])) < 2:
        return None
    import krippendorff  # an optional dependency

    return float(krippendorff.alpha(reliability_data=shared, level_of_measurement="interval"))
