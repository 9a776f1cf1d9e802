"""Build paraphrase corpora from bitext, and train sentence embeddings on them.

The names in `__all__` are the public Python API, described in docs/library.md.
All other names are internal.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # `__getattr__` imports these modules when they are needed, for a fast start
    from paraloom.beam_jobs.pairs import BackTranslate, ExactDeciles, ScorePairs
    from paraloom.models.embeddings.model import SentenceEncoder as Encoder
    from paraloom.models.errors import UserError
    from paraloom.models.scorers import Outcome, Resource, Scorer
    from paraloom.pipeline.library import OpenedRun, open_run, run, score

    __version__: str

_HOMES = {
    "BackTranslate": "beam_jobs.pairs",
    "Encoder": "models.embeddings.model:SentenceEncoder",
    "ExactDeciles": "beam_jobs.pairs",
    "OpenedRun": "pipeline.library",
    "Outcome": "models.scorers",
    "Resource": "models.scorers",
    "ScorePairs": "beam_jobs.pairs",
    "Scorer": "models.scorers",
    "UserError": "models.errors",
    "open_run": "pipeline.library",
    "run": "pipeline.library",
    "score": "pipeline.library",
}

__all__ = [
    "BackTranslate",
    "Encoder",
    "ExactDeciles",
    "OpenedRun",
    "Outcome",
    "Resource",
    "ScorePairs",
    "Scorer",
    "UserError",
    "open_run",
    "run",
    "score",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib import metadata  # importing it takes 25 ms

        return metadata.version("paraloom")
    if name not in _HOMES:
        raise AttributeError(f"module 'paraloom' has no attribute {name!r}")
    module, _, other = _HOMES[name].partition(":")
    found = getattr(importlib.import_module(f"paraloom.{module}"), other or name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return __all__
