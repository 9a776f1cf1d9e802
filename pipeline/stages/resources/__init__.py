"""Stages that make what scorers read: one module per resource, with the resource's name, and
`pair_models` for those that are models as they are.
"""

from importlib import import_module

from paraloom.models.scorers import ENCODER, SCORERS
from paraloom.pipeline.stage import Stage
from paraloom.pipeline.stages.resources import columns, pair_models

_NAMES = dict.fromkeys(s.resource_name for n, s in SCORERS.items() if n != ENCODER)

RESOURCES: tuple[Stage, ...] = (
    *(
        pair_models.STAGES.get(name) or import_module(f"{__name__}.{name}").STAGE
        for name in _NAMES
        if name
    ),
    columns.STAGE,
)
"""The stages of this folder, in the order of the scorers; the encoder comes from a round before."""
