"""Sentence frames by theme, in Czech and English."""

from pipeline.sample.frame import Frame
from pipeline.sample.frames import (
    actions,
    activities,
    dealings,
    people,
    speech,
    things,
    travel,
    weather,
)

FRAMES: list[Frame] = [
    *actions.FRAMES,
    *activities.FRAMES,
    *travel.FRAMES,
    *weather.FRAMES,
    *things.FRAMES,
    *people.FRAMES,
    *dealings.FRAMES,
    *speech.FRAMES,
]
