"""The stages of a run, in order: one module for each, with its `STAGE`.

A module has in one place what its stage depends on, the fingerprint of its result, how the result
is made and how it is checked: see `paraloom.pipeline.stage.Stage`. A new stage is a module and a
line here; one that makes the resource of a scorer is only a module, with the name of the resource.

    ingest → nmt → back_translate → score → bucket → auto_select → select → embeddings → evaluate
        pivot ↗     generate ↗  paragram, idf, … ↗

With several rounds, `paraloom.pipeline.rounds` repeats the stages from `score` on.
"""

from paraloom.pipeline.stage import Stage
from paraloom.pipeline.stages import (
    back_translate,
    bucket,
    embeddings,
    evaluate,
    generate,
    ingest,
    nmt,
    pivot,
    score,
    select,
)
from paraloom.pipeline.stages.resources import RESOURCES
from paraloom.pipeline.stages.selection import auto_select, exclude, judged

STAGES: tuple[Stage, ...] = (
    ingest.STAGE,
    pivot.STAGE,
    nmt.STAGE,
    back_translate.STAGE,
    generate.STAGE,
    *RESOURCES,
    score.STAGE,
    bucket.STAGE,
    exclude.STAGE,
    auto_select.STAGE,
    judged.STAGE,
    select.STAGE,
    embeddings.STAGE,
    evaluate.STAGE,
)

TARGETS: dict[str | None, tuple[str, ...]] = {
    "corpus": tuple(stage.name for stage in STAGES[STAGES.index(select.STAGE) :]),
    "ingest": ("ingest",),
    "back-translate": ("back_translate",),
    "score": ("score",),
    "bucket": ("bucket",),
    "select": ("select",),
    "train-nmt": ("nmt",),
    "train-paragram": ("paragram",),
    "train-embeddings": ("embeddings", "evaluate"),
}
"""The stages that each command brings up to date, with all that they depend on."""
