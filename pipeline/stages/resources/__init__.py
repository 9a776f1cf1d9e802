"""Stages that make what scorers read: one module per resource, with the resource's name."""

from importlib import import_module
from importlib.util import find_spec

from paraloom.models.scorers import ENCODER, SCORERS
from paraloom.pipeline.stage import Stage
from paraloom.pipeline.stages.resources import columns


def _stage(scorer: str, resource: str) -> Stage:
    name = f"{__name__}.{resource}"
    if not find_spec(name):
        raise NotImplementedError(f"scorer {scorer}: module {name} must make its resource")
    stage: Stage = import_module(name).STAGE
    return stage


RESOURCES: tuple[Stage, ...] = (
    *{
        scorer.resource_name: _stage(name, scorer.resource_name)
        for name, scorer in SCORERS.items()
        if name != ENCODER and scorer.resource_name
    }.values(),
    columns.STAGE,
)
"""The stages of this folder, in the order of the scorers; the encoder comes from a round before."""
