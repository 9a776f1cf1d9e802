"""What the automatic choice of deciles leaves in the manifest (stage `choice`), and in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

from pipeline.deciles import Candidate
from pipeline.report.describe import deciles_in_words, spoken


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What training on deciles gave on the labelled pairs (ParaNMT, section 6.3, Table 4).

    Attributes:
        scores: scorer → decile (0 lowest) → Pearson × 100, one a seed.
        random: the same for pairs of all deciles.
        sample: pairs that each of these was trained on.
        runs: scorer → its runs of deciles, from one decile to all.
        chosen: one of them.
        second: the best one of another scorer.
        same_size: pairs of all deciles, as many as `chosen` was tried with.
        error: the standard error of the difference of two of these.
    """

    scores: dict[str, dict[int, list[float]]]
    random: list[float]
    sample: int
    runs: dict[str, list[Candidate]]
    chosen: Candidate
    second: Candidate | None
    same_size: Candidate
    error: float

    @classmethod
    def from_json(cls, account: dict[str, Any]) -> Choice:
        """From the account of the stage (`pipeline.choice.choose`); JSON has deciles as text."""
        return cls(
            scores={
                scorer: {int(decile): list(values) for decile, values in deciles.items()}
                for scorer, deciles in account["scores"].items()
            },
            random=list(account["random"]),
            sample=account["sample"],
            runs={
                scorer: [_candidate(run) for run in runs]
                for scorer, runs in account["runs"].items()
            },
            chosen=_candidate(account["chosen"]),
            second=_candidate(account["second"]) if account["second"] else None,
            same_size=_candidate(account["same_size"]),
            error=account["over_random"]["error"],
        )

    def lines(self) -> list[str]:
        """What was chosen, and by how much it is ahead."""
        chosen = f"{named(self.chosen)}: {mean(self.chosen.scores)}"
        said = [f"Chosen: {chosen} with {self.chosen.pairs:,} pairs"]
        if self.second:
            second = f"the second best, {named(self.second)} ({mean(self.second.scores)})"
            said.append(f"{self._ahead(self.second)} against {second}")
        as_many = f"as many pairs drawn at random ({mean(self.same_size.scores)})"
        said.append(f"{self._ahead(self.same_size)} against {as_many}")
        return said

    def _ahead(self, of: Candidate) -> str:
        difference = round(self.chosen.mean - of.mean, 1) + 0.0  # never -0.0
        if len(self.chosen.scores) < 2:
            return f"{difference:+.1f} (with one seed no error can be told)"
        far = abs(self.chosen.mean - of.mean) > self.error
        told = "" if far else ", no difference that the seeds can tell,"
        return f"{difference:+.1f} ± {self.error:.1f}{told}"


def named(run: Candidate) -> str:
    """A run in words: `trigram overlap, deciles 0–4`."""
    return f"{spoken(run.scorer)}, {deciles_in_words(run.deciles)}"


def mean(scores: Sequence[float]) -> str:
    """The mean of the seeds, and their standard deviation.

    >>> mean([40.0, 41.0, 42.0])
    '41.0 ± 1.0'
    """
    if len(scores) < 2:
        return f"{scores[0]:.1f}"
    return f"{fmean(scores):.1f} ± {stdev(scores):.1f}"


def _candidate(run: dict[str, Any]) -> Candidate:
    return Candidate(
        scorer=run["scorer"],
        deciles=tuple(run["deciles"]),
        rows=run["rows"],
        pairs=run["pairs"],
        scores=tuple(run["scores"]),
    )
