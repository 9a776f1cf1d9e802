"""Stages that make what scorers read: `pair_models`, or a module with the resource's name."""

from importlib import import_module

from paraloom.models.scorers import ENCODER, SCORERS
from paraloom.pipeline.stage import Stage
from paraloom.pipeline.stages.resources import columns, pair_models

_NAMES = dict.fromkeys(s.resource_name for n, s in SCORERS.items() if n != ENCODER)

RESOURCES: tuple[Stage, ...] = (
    *(pair_models.STAGES.get(n) or import_module(f"{__name__}.{n}").STAGE for n in _NAMES if n),
    columns.STAGE,
)
"""The stages of the scorers, in their order; the encoder comes from a round before."""
