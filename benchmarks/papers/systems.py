"""Registers the options and encoders of the papers' other systems.

A program that opens a saved encoder of these systems must import this module.
"""

from functools import partial
from typing import Any

from paraloom.models.embeddings.encoders import ENCODERS, Entry
from paraloom.models.embeddings.encoders.recurrent import Pooling
from paraloom.models.embeddings.options import KNOWN
from paraloom.papers.encoders.context import Sum
from paraloom.papers.encoders.gran import GRAN, Variant
from paraloom.papers.encoders.gru import gru, recurrent
from paraloom.papers.options import SystemOptions


def _gran(pooling: Pooling, variant: Variant, meaning: str, **more: Any) -> Entry:
    return Entry(meaning, recurrent(pooling, around=partial(GRAN, variant=variant), **more))


_LSTMS = {  # these replace encoders of the product, to support `cell`
    "lstm": recurrent("last"),
    "lstm-avg": recurrent("mean"),
    "bilstm": recurrent("last", both=True),
    "bilstm-avg": recurrent("mean", both=True),
    "bilstm-max": recurrent("max", both=True),
}

KNOWN.append(SystemOptions)
OURS = frozenset(ENCODERS)
"""The encoders of the product."""

ENCODERS |= {name: ENCODERS[name]._replace(build=build) for name, build in _LSTMS.items()}
ENCODERS |= {
    "word-sum": Entry("sum of the vectors", lambda input, options: Sum(input)),
    "gru": Entry("last state of a GRU", gru),
    "gran": _gran("mean", 1, "mean of word vectors, scaled by gates"),
    "gran-2": _gran("mean", 2, "mean of states, scaled by gates"),
    "gran-3": _gran("last", 3, "gated running sum of word vectors, divided by the length"),
    "gran-4": _gran("last", 4, "as `gran-3`, with gates that also read the previous sum"),
    "gran-5": _gran("mean", 5, "mean of word vectors and states, each scaled by gates"),
    "gran-tanh": _gran("mean", "tanh", "mean of a tanh layer over word and state, without gates"),
    "gran-relu": _gran("mean", "relu", "as `gran-tanh`, with a rectifier"),
    "bigran": _gran("mean", 1, "`gran` in both directions", both=True),
}
