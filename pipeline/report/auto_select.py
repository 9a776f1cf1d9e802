"""The automatic selection of deciles (stage `choice`) in words."""

from collections.abc import Mapping, Sequence
from statistics import fmean, stdev

from paraloom.pipeline.judging.describe import deciles_in_words
from paraloom.pipeline.records import AutoSelectRecord, Candidate
from paraloom.pipeline.report.describe import readable


def selection_lines(result: AutoSelectRecord) -> list[str]:
    """What was chosen, and its lead over the second best and over random pairs."""
    chosen = f"{candidate_name(result.chosen)}: {mean_deviation(result.chosen.scores)}"
    lines = [f"Chosen: {chosen} with {result.chosen.pairs:,} pairs"]
    if result.second:
        second = f"{candidate_name(result.second)} ({mean_deviation(result.second.scores)})"
        lines.append(f"{_lead(result, result.second)} against the second best, {second}")
    same_size = f"as many pairs drawn at random ({mean_deviation(result.same_size.scores)})"
    lines.append(f"{_lead(result, result.same_size)} against {same_size}")
    return lines


def candidate_name(candidate: Candidate) -> str:
    """Score and deciles in words: `trigram overlap, deciles 0–4`."""
    return f"{readable(candidate.scorer)}, {deciles_in_words(candidate.deciles)}"


def best_and_worst(by_decile: Mapping[int, Sequence[float]]) -> tuple[int, int]:
    """The deciles with the highest and the lowest mean over the seeds."""
    means = {decile: fmean(seeds) for decile, seeds in by_decile.items()}
    return max(means, key=means.__getitem__), min(means, key=means.__getitem__)


def mean_and_range(
    by_decile: Mapping[int, Sequence[float]],
) -> list[tuple[int, float, float, float]]:
    """Each decile with the mean, the lowest and the highest of its seeds."""
    return [(k, fmean(of), min(of), max(of)) for k, of in sorted(by_decile.items())]


def mean_deviation(scores: Sequence[float] | None) -> str:
    """The mean over the seeds, and their standard deviation; "" without scores.

    >>> mean_deviation([40.0, 41.0, 42.0])
    '41.0 ± 1.0'
    """
    if not scores:
        return ""
    if len(scores) == 1:
        return f"{scores[0]:.1f}"
    return f"{fmean(scores):.1f} ± {stdev(scores):.1f}"


def _lead(result: AutoSelectRecord, other: Candidate) -> str:
    difference = result.chosen.mean - other.mean
    shown = f"{round(difference, 1) + 0.0:+.1f}"  # never -0.0
    if len(result.chosen.scores) < 2:
        return f"{shown} (one seed gives no standard error)"
    error = result.over_random.error
    note = "" if abs(difference) > error else ", within one standard error,"
    return f"{shown} ± {error:.1f}{note}"
