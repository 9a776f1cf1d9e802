"""People's judgments of the run's pairs: the numbers behind the section of the report."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from paraloom.beam_jobs.io import storage
from paraloom.beam_jobs.io.shards import receipts
from paraloom.pipeline.judging.agreement import join, measure
from paraloom.pipeline.judging.describe import by_agreement, cumulative_shares
from paraloom.pipeline.judging.judgments import read_judgments
from paraloom.pipeline.judging.record import Agreement, Interval, ScoreAgreement
from paraloom.pipeline.records import BucketRecord, RunRecord
from paraloom.pipeline.report.describe import readable
from paraloom.pipeline.report.plots import Scale

_PRECISIONS = (0.8, 0.9)
_LINE = 12.0  # least distance between the baselines of two lines of text
_LETTERS = 21  # of a name beside a curve


def agreement(folder: str, view: RunRecord, stage: str) -> Agreement | None:
    """What the judgments of a run say of its scores; None without judgments of its pairs.

    Args:
        view: the record of the round that is the run's result.
        stage: that has the deciles of this round.
    """
    judgments, bucket = read_judgments(folder), view.find(BucketRecord)
    if not judgments or not bucket:
        return None
    pairs = join(
        judgments,
        [shard for receipt in receipts(storage.join(folder, stage)) for shard in receipt.shards],
        list(bucket.deciles),
        own=view.own_scorers,
    )
    select = view.config.select
    precisions = sorted({*_PRECISIONS, select.precision})
    return measure(pairs, good=select.good, precisions=precisions, seed=view.config.seed)


class Curve(NamedTuple):
    """The precision of a score's cuts, and where its name stands."""

    score: str
    name: str
    points: list[tuple[float, float]]  # share of all rows, and the share of good pairs in them
    label: float  # baseline of the name


def curves(found: Agreement, y: Scale) -> list[Curve]:
    """A curve for each score that can be cut, the one that agrees most with the labels last."""
    drawn = {
        name: cumulative_shares(score)
        for name, score in reversed(by_agreement(found.scores).items())
    }
    drawn = {name: points for name, points in drawn.items() if points}
    ends = {name: y.at(points[0][1]) + 4 for name, points in drawn.items()}
    labels = spread_out(ends, y.end + 4, y.start + 4)
    return [Curve(name, shortened(name), points, labels[name]) for name, points in drawn.items()]


def spread_out(wanted: Mapping[str, float], low: float, high: float) -> dict[str, float]:
    """Heights near the wanted ones, in the same order, at least a line apart.

    >>> spread_out({"a": 10.0, "b": 12.0, "c": 90.0}, 0, 100)
    {'a': 10.0, 'b': 22.0, 'c': 90.0}
    """
    found: dict[str, float] = {}
    at = low - _LINE
    for name, height in sorted(wanted.items(), key=lambda item: item[1]):
        at = found[name] = max(height, at + _LINE)
    at = high + _LINE
    for name in reversed(found):
        at = found[name] = min(found[name], at - _LINE)
    return found


def shortened(name: str) -> str:
    """A score's name in words, cut where it would leave the picture.

    >>> shortened("a_very_long_name_of_a_scorer")
    'a very long name of…'
    """
    words = readable(name)
    return words if len(words) <= _LETTERS else f"{words[: _LETTERS - 1].rstrip()}…"


def share_scale(found: Agreement) -> Scale:
    """The y axis of cumulative shares: all curves, the wanted precisions, and some room."""
    values = [s for score in found.scores.values() for _, s in cumulative_shares(score)]
    values += [cut.wanted for cut in found.cuts]
    low, high = min(values, default=0.0), max(values, default=1.0)
    room = 0.06 * (high - low) or 0.05
    return Scale(max(low - room, 0.0), min(high + room, 1.0), 226, 20)


class Strength(NamedTuple):
    """Spearman's correlation of a score, with the sign turned where less is better."""

    name: str
    value: float
    interval: Interval
    turned: bool


def strengths(scores: Mapping[str, ScoreAgreement]) -> list[Strength]:
    """The defined correlations, the strongest first."""
    found = []
    for name, score in by_agreement(scores).items():
        if score.spearman is not None:
            low, high = score.interval or (score.spearman, score.spearman)
            turned = not score.higher_is_better
            interval = (-high, -low) if turned else (low, high)
            value = -score.spearman if turned else score.spearman
            found.append(Strength(name, value, interval, turned))
    return found


def strength_scale(found: Iterable[Strength]) -> Scale:
    """The x axis of correlations: from 0, or lower if one is, to 1."""
    low = min([0.0, *(s.interval[0] for s in found)])
    return Scale(low, 1.0, 134, 284 if low == 0 else 250)  # negative numbers need room
