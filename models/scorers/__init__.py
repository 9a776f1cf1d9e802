"""Scores of (reference, translation) pairs.

To add a scorer, write a module with a function that maps `PairText`, and the scorer's resource if
there is one, to float32 [n]. Declare the function with the decorator `base.scorer`. The value of a
row must not depend on the other rows in its batch, except by rounding in neural models.

- `tokens/`: scorers of tokens and words.
- `checks/`: scorers that pass or fail a pair.
- `learned/`: scorers that use word vectors or neural models.
- `plugins`: scorers from installed packages and Python files.
- `columns`: scores that were computed elsewhere.
"""

from paraloom.models.scorers.base import Outcome, Resource, Scorer
from paraloom.models.scorers.learned.encoder_similarity import ENCODER
from paraloom.models.scorers.pair_scorer import SCORERS, PairScorer

__all__ = ["ENCODER", "SCORERS", "Outcome", "PairScorer", "Resource", "Scorer"]
