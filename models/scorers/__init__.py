"""Scores of (reference, translation) pairs.

To add a scorer, write a module with a function from `PairText` (and the scorer's resource, if any)
to float32 [n], and declare it with the decorator `base.scorer`. A row's value must depend on that
row alone, not on its batch: to the last bit, or up to rounding for neural models.

Scorers in `tokens/` compare tokens, scorers in `checks/` pass or fail a pair, and scorers in
`learned/` use vectors or neural models. `plugins` loads scorers from other packages and files, and
`columns` reads scores that were computed elsewhere.
"""

from paraloom.models.scorers.base import Outcome, Resource, Scorer
from paraloom.models.scorers.learned.encoder_similarity import ENCODER
from paraloom.models.scorers.pair_scorer import PairScorer
from paraloom.models.scorers.registry import SCORERS

__all__ = ["ENCODER", "SCORERS", "Outcome", "PairScorer", "Resource", "Scorer"]
