"""The table of stages: their order, inputs, results, folders and commands.

    ingest → nmt → back_translate → score → bucket → auto_select → select → embeddings → evaluate
        pivot ↗     generate ↗  paragram, idf, … ↗

A new stage needs a row in this table, and a module that defines fields of
`paraloom.pipeline.run.stage.Stage`, such as `fingerprint` and `make`. A stage that makes a resource
(data that a scorer reads besides the pairs) needs only a module `resources.<name of the resource>`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from paraloom.models.scorers import ENCODER, SCORERS

if TYPE_CHECKING:
    from paraloom.pipeline.config import Config


class Row(NamedTuple):
    """A stage in the table."""

    name: str
    reads: str  # earlier stages, separated by spaces; stages that a run lacks are ignored
    makes: str  # columns that the stage adds, or another result
    command: str = ""  # command that brings the stage up to date, besides `corpus`
    folder: str = ""  # name of the folder, by default `name`; part of the stage's key
    again: int = 0  # derived runs up to this kind repeat the stage (see `ROUND`)
    pairs: bool = False  # whether the stage writes pairs
    when: Callable[[Config], bool] = lambda config: True  # whether a configuration has the stage


ROUND, SELECTION, FIRST = 1, 2, 3
"""Kinds of derived runs, except previews: a later round, a named selection, the first round."""

RESOURCES = (
    *dict.fromkeys(
        of.resource_name or "" for n, of in SCORERS.items() if of.resource and n != ENCODER
    ),
    "columns",
)
"""The stages that make scorers' resources. The resource `encoder` comes from the previous round."""


def needed(resource: str, config: Config) -> bool:
    """Whether the scorers of a configuration need a resource."""
    if resource == "columns":
        return bool(config.score.columns)
    used = (SCORERS[scorer] for scorer in config.score.scorers if scorer in SCORERS)
    return any(scorer.resource_name == resource for scorer in used)


def resource_row(name: str) -> Row:
    """Return the row of the stage that makes a resource."""
    return Row(name, "", "", "train-paragram" * (name == "paragram"), when=partial(needed, name))


_ALL, _pairs = " ".join(RESOURCES), partial(Row, pairs=True)
_ROWS = (
    _pairs("ingest", "", "id, source, reference", "ingest"),
    _pairs("pivot", "ingest", "source", when=lambda config: config.is_plain_text),
    Row(
        "nmt",
        "ingest",
        "a translation model",
        "train-nmt",
        when=lambda config: config.nmt.model is None and config.translates,
    ),
    Row(
        "forward_nmt",
        "ingest",
        "a translation model for the other direction",
        "train-nmt",
        when=lambda config: not config.nmt.forward_model and needed("forward_model", config),
    ),
    _pairs(
        "back_translate",
        "ingest pivot nmt",
        "translation, translation_score, translation_subwords",
        "back-translate",
        when=lambda config: config.translates,
    ),
    _pairs(
        "generate",
        "ingest pivot back_translate nmt",
        "candidates of language models",
        when=lambda config: config.generators is not None,
    ),
    *map(resource_row, RESOURCES),
    _pairs(
        "score",
        f"back_translate generate {_ALL}",
        "reference_tokens, translation_tokens, trigram_overlap, …",
        "score",
        again=ROUND,
    ),
    _pairs("bucket", "score", "<score>_decile (exact tenths)", "bucket", again=ROUND),
    Row("exclude", "", "evaluation sentences", when=lambda config: bool(config.select.exclude)),
    Row(
        "auto_select",
        "bucket exclude",
        "score and deciles",
        folder="choice",
        again=SELECTION,
        when=lambda config: config.select.by == "auto",
    ),
    Row(
        "judged",
        "bucket",
        "score and deciles",
        again=SELECTION,
        when=lambda config: config.select.by == "judged",
    ),
    Row("loop", "", "the best round", when=lambda config: config.loop.rounds > 1),
    _pairs(
        "select",
        "bucket exclude auto_select judged",
        "the selected pairs; corpus.tsv.gz",
        "select",
        "corpus",
        FIRST,
    ),
    Row("embeddings", "select paragram", "a sentence encoder", "train-embeddings", again=FIRST),
    Row(
        "evaluate",
        "embeddings",
        "correlations on STS, SICK",
        "train-embeddings",
        again=FIRST,
        when=lambda config: bool(config.evaluate.sts or config.evaluate.sick),
    ),
)
TABLE = {row.name: row for row in _ROWS}
"""The stages by name, in the order in which they run."""

PAIR_STAGES = tuple(name for name, row in TABLE.items() if row.pairs)
"""The stages that produce pairs, in the order in which they run."""


def pairs_before(stage: str, config: Config) -> str:
    """Return the last stage before `stage` that writes pairs in this configuration."""
    before = PAIR_STAGES[: PAIR_STAGES.index(stage)]
    return next(name for name in reversed(before) if TABLE[name].when(config))


RANKED = "bucket"
"""Selection, judging and the report read the pairs of this stage."""

RESULTS = tuple(name for name, row in TABLE.items() if row.again == FIRST)
"""The stages that every round and every named selection repeats."""

TARGETS: dict[str | None, tuple[str, ...]] = {
    "corpus": tuple(TABLE)[list(TABLE).index("select") :],
    **{
        command: tuple(name for name, row in TABLE.items() if row.command == command)
        for command in dict.fromkeys(row.command for row in TABLE.values() if row.command)
    },
}
"""The stages that each command brings up to date. Dependencies of these stages run first."""


def own(place: str) -> tuple[str, ...]:
    """List the stages that the derived run in the folder `place` repeats.

    >>> own("rounds/1"), own("selections/strict")[:2]
    (('select', 'embeddings', 'evaluate'), ('auto_select', 'judged'))
    """
    kind = SELECTION if place.startswith("selections/") else ROUND
    kind = FIRST if place == "rounds/1" else kind
    return tuple(name for name, row in TABLE.items() if row.again >= kind)


def folder_of(path: str) -> str:
    """Return the folder of a stage's files, relative to the run's folder.

    >>> folder_of("score"), folder_of("rounds/2/select")
    ('score', 'rounds/2/corpus')
    """
    place, slash, name = path.rpartition("/")
    row = TABLE.get(name)
    return f"{place}{slash}{(row and row.folder) or name}"


def stage_in(folder: str) -> str:
    """Return the stage whose files are in a folder.

    >>> stage_in("rounds/2/corpus"), stage_in("select")
    ('rounds/2/select', 'select')
    """
    place, slash, name = folder.rpartition("/")
    found = next((row.name for row in TABLE.values() if name and row.folder == name), name)
    return f"{place}{slash}{found}"
