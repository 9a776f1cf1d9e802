"""Agreement of judges with each other, and of scores with judgments, in words and tables."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from paraloom.models.agreement.precision import by_decile, wilson
from paraloom.pipeline.judging.judgments import Judgment
from paraloom.pipeline.judging.record import AgreementRecord, CutResult, Interval, ScoreAgreement


def precision_line(name: str, good: int, judged: int) -> str:
    """The precision of the run's own corpus, or of a named selection's, with Wilson's interval.

    >>> precision_line("", 10, 10)
    'Precision of the corpus: 10 of 10, 95% interval 0.72 to 1.00'
    """
    low, high = interval_of(good, judged)
    share = f"{good:,} of {judged:,}, 95% interval {low:.2f} to {high:.2f}"
    return f"Precision of the corpus{f' {name}' if name else ''}: {share}"


def interval_of(good: float, judged: int) -> Interval:
    """The 95% interval by Wilson of the share of good ones among judged pairs."""
    low, high = wilson(np.array(good / judged), np.array(judged))
    return float(low), float(high)


def good_of(good: int, judged: int) -> str:
    """The good of the judged pairs, and the interval of their share; "" if none is judged.

    >>> good_of(10, 10)
    '10 of 10 (0.72–1.00)'
    """
    if not judged:
        return ""
    return f"{good:,} of {judged:,} ({interval_in_words(interval_of(good, judged))})"


def cut_in_words(cut: CutResult) -> str:
    """A cut and its precision: `deciles 8–9 of unigram_f1 with 0.88 (0.86–0.91) of 420 pairs`."""
    return (
        f"{deciles_in_words(cut.deciles)} of {cut.score} with {cut.precision:.2f} "
        f"({interval_in_words(cut.wilson)}) of {cut.judged:,} judged pairs"
    )


def deciles_in_words(deciles: Sequence[int]) -> str:
    """Ranges of deciles.

    >>> deciles_in_words([4, 1, 2]), deciles_in_words([0])
    ('deciles 1–2 and 4', 'decile 0')
    """
    ranges = [f"{a}" if a == b else f"{a}–{b}" for a, b in neighbouring(deciles)]
    words = " and ".join([", ".join(ranges[:-1]), ranges[-1]] if ranges[1:] else ranges)
    return f"decile {words}" if len(set(deciles)) == 1 else f"deciles {words}"


def neighbouring(deciles: Sequence[int]) -> list[tuple[int, int]]:
    """The first and the last of each run of neighbouring deciles.

    >>> neighbouring([4, 1, 2])
    [(1, 2), (4, 4)]
    """
    chosen = sorted(set(deciles))
    starts = [d for d in chosen if d - 1 not in chosen]
    ends = [d for d in chosen if d + 1 not in chosen]
    return list(zip(starts, ends, strict=True))


def interval_in_words(interval: Interval | None) -> str:
    """The ends of an interval.

    >>> interval_in_words((0.125, 0.5)), interval_in_words((-0.3, -0.1))
    ('0.12–0.50', '−0.30 to −0.10')
    """
    if interval is None:
        return "no interval"
    low, high = (number_in_words(end) for end in interval)
    return f"{low} to {high}" if interval[0] < 0 else f"{low}–{high}"


def number_in_words(value: float | None) -> str:
    """A number with two decimal places; `undefined` for None."""
    return "undefined" if value is None else f"{value:.2f}".replace("-", "−")


def select_lines(cut: CutResult, where: Sequence[str] = ()) -> str:
    """The section `select` of a configuration that makes this cut under conditions."""
    deciles = ", ".join(map(str, cut.deciles))
    comment = f"# precision {cut.wanted:g}"
    conditions = f"\n  where: [{', '.join(where)}]" if where else ""
    return f"select:  {comment}\n  by: {cut.score}\n  deciles: [{deciles}]{conditions}"


def cut_lines(cut: CutResult, rows: int) -> list[str]:
    """What a cut keeps, and how good its pairs are, in sentences."""
    share = cut.rows / max(rows, 1)
    nearest = "" if cut.reached else "no cut is sure to have it; the best is "
    mixed = cut.good not in (0, cut.judged)
    weighted = f"; weighted, a share of {cut.precision:.2f}" if mixed else ""
    lines = [
        f"Precision {cut.wanted:g}: {nearest}{deciles_in_words(cut.deciles)} of {cut.score}; "
        f"{cut.rows:,} of {rows:,} pairs ({100 * share:.0f}%).",
        f"Of the {cut.judged:,} judged pairs in it, {cut.good or 0:,} are good{weighted} (95% by "
        f"Wilson, as if all pairs were independent: {interval_in_words(cut.wilson)}).",
    ]
    if cut.expected is None or cut.chance is None:
        lines.append("There are too few references to say what to expect of others.")
    else:
        lines.append(
            f"To expect on references that nobody has judged: {interval_in_words(cut.expected)}; "
            f"at least {cut.wanted:g} in {100 * cut.chance:.0f}% of resamples."
        )
    return lines


def counts_line(found: AgreementRecord) -> str:
    """What was judged and what of it is not counted."""
    parts = [f"{found.pairs:,} judged pairs of {found.references:,} references"]
    if found.where:
        parts[0] += f" with {' and '.join(found.where)}"
    if found.judges:
        judges = "1 judge" if found.judges == 1 else f"{found.judges} judges"
        parts[0] += f" by {judges}"
    if found.alpha is not None:
        parts[0] += f" (Krippendorff's alpha {number_in_words(found.alpha)})"
    parts.append(f"{found.good_pairs:,} are good (label at least {found.good:g} of 100)")
    not_counted = (
        ("pair", "of equal sides", found.copies),
        ("pair", "that do not meet the condition", found.outside),
        ("judgment", "of texts that have changed", found.changed),
        ("judgment", "of pairs that the run does not have", found.gone),
    )
    some = [f"{n:,} {what}{'s'[: n != 1]} {which}" for what, which, n in not_counted if n]
    if some:
        parts.append(f"not counted: {', '.join(some)}")
    return "; ".join(parts)


def decile_shares(score: ScoreAgreement) -> list[tuple[int, float, float, float]]:
    """Each decile with judged pairs: its number, its share of good pairs, and Wilson's interval."""
    found = by_decile(np.array(score.good, float), np.array(score.judged, float))
    return [
        (decile, float(share), float(low), float(high))
        for decile, (share, low, high) in enumerate(zip(*found, strict=True))
        if score.judged[decile]
    ]


def cumulative_shares(score: ScoreAgreement) -> list[tuple[float, float]]:
    """The best 1, 2, … deciles: their share of all rows, and their share of good pairs."""
    rows = np.array(score.rows[:: -1 if score.higher_is_better else 1], float)
    kept = np.cumsum(rows) / max(rows.sum(), 1)
    return [(float(k), p) for k, p in zip(kept, score.precision, strict=True) if p is not None]


def by_agreement(scores: Mapping[str, ScoreAgreement]) -> dict[str, ScoreAgreement]:
    """The scores, the one that agrees most with the labels first; worse is better counts too."""

    def strength(item: tuple[str, ScoreAgreement]) -> float:
        value = item[1].spearman or 0.0
        return value if item[1].higher_is_better else -value

    return dict(sorted(scores.items(), key=strength, reverse=True))


def describe_judges(judgments: Sequence[Judgment]) -> list[str]:
    """Lines to print: the judgments of each judge, and the agreement of several."""
    counts = Counter(judgment.judge for judgment in judgments)
    lines = [f"pairs judged by {judge}: {count:,}" for judge, count in sorted(counts.items())]
    if len(counts) < 2:
        return lines
    shared = sum(n > 1 for n in Counter(map(_pair, judgments)).values())
    alphas = {name: alpha(judgments, name) for name in ("score", "fluency")}
    values = ", ".join(f"{name} {number_in_words(value)}" for name, value in alphas.items())
    both = f"agreement on {shared:,} pairs of several judges (Krippendorff's alpha): {values}"
    return [*lines, both]


def alpha(judgments: Sequence[Judgment], of: Literal["score", "fluency"] = "score") -> float | None:
    """Krippendorff's alpha over the pairs that at least two judges judged.

    1 is perfect agreement, 0 what chance gives; scores have interval level, fluency ordinal. None
    if it is not defined: no pair has two judges, or all values are the same.
    """
    pairs = {pair: i for i, pair in enumerate(dict.fromkeys(map(_pair, judgments)))}
    judges = {judge: i for i, judge in enumerate(sorted({found.judge for found in judgments}))}
    values = np.full((len(judges), len(pairs)), np.nan)
    for found in judgments:
        value = found.score if of == "score" else found.fluency
        values[judges[found.judge], pairs[_pair(found)]] = np.nan if value is None else value
    shared = values[:, (~np.isnan(values)).sum(axis=0) > 1]
    if len(np.unique(shared[~np.isnan(shared)])) < 2:
        return None
    level: Literal["interval", "ordinal"] = "interval" if of == "score" else "ordinal"
    import krippendorff  # an extra

    return float(krippendorff.alpha(reliability_data=shared, level_of_measurement=level))


def _pair(judgment: Judgment) -> tuple[str, int | None, str, str]:
    return judgment.id, judgment.candidate, judgment.reference, judgment.translation
