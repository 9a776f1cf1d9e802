"""Scores of (reference, translation) pairs.

A new scorer is a module with a function from `PairText` (and the scorer's resource, if it has one)
to float32 [n], and an entry in the module's `SCORERS`. The value of a row must depend on that row
alone and not on the batch that the row is in: to the last bit, or up to rounding if a neural model
gives it.

`tokens/` has the scorers that compare tokens, `checks/` those that pass or fail a pair, `learned/`
those with vectors or neural models. Other packages and files may bring scorers too (`plugins`), and
scores that were computed elsewhere come from files (`columns`).
"""

from paraloom.models.scorers.base import Outcome, Resource, Scorer
from paraloom.models.scorers.pair_scorer import PairScorer
from paraloom.models.scorers.registry import ENCODER, SCORERS

__all__ = ["ENCODER", "SCORERS", "Outcome", "PairScorer", "Resource", "Scorer"]
