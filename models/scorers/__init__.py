"""Scores of (reference, translation) pairs.

To add a scorer, write a function that maps a `PairText` of n pairs to float32 [n], and declare it
with the decorator `base.scorer`. A scorer's resource is a second argument of the function. The
value of a pair must not depend on other pairs, except for rounding errors of neural models.

- `tokens/`: scorers of tokens and words.
- `checks/`: scorers that pass or fail a pair.
- `learned/`: scorers that use word vectors or neural models.
- `plugins`: scorers from installed packages and Python files.
- `columns`: scores that other programs computed.
"""

from paraloom.models.scorers.base import Outcome, Resource, Scorer
from paraloom.models.scorers.learned.encoder_similarity import ENCODER
from paraloom.models.scorers.pair_scorer import SCORERS, PairScorer

__all__ = ["ENCODER", "SCORERS", "Outcome", "PairScorer", "Resource", "Scorer"]
