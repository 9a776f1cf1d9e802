"""The table of stages: order, what each reads and makes, its folder, its command, its module.

    ingest → nmt → back_translate → score → bucket → auto_select → select → embeddings → evaluate
        pivot ↗     generate ↗  paragram, idf, … ↗

A module has in one place, as `STAGE`, the fingerprint of its stage's result, how the result is made
and how it is checked: see `paraloom.pipeline.run.stage.Stage`. A new stage is a module and a row
here. A stage that makes the resource of a scorer is only a module in `resources`, with the name of
the resource; its `depends_on` has what it reads. `paraloom.pipeline.run.derived` says which runs
make some of the stages again.
"""

from functools import partial
from typing import NamedTuple

from paraloom.models.scorers import ENCODER, SCORERS


class Row(NamedTuple):
    """A stage of the table."""

    name: str
    reads: str  # stages, if the configuration has them
    makes: str  # the columns that it adds to the pairs, or another result
    command: str = ""  # that brings it up to date, besides `corpus`
    folder: str = ""  # of its files, if it is not called as the stage is; keys have this name
    again: int = 0  # which derived runs make it for themselves: those of this number or below
    pairs: bool = False  # whether it makes part files of pairs


ROUND, SELECTION, FIRST = 1, 2, 3
"""Derived runs: rounds after the first, named selections, the first round."""

RESOURCES = (
    *dict.fromkeys(
        of.resource_name or "" for n, of in SCORERS.items() if of.resource and n != ENCODER
    ),
    "columns",
)
"""The stages that make what scorers read; the encoder comes from a round before."""

_ALL, _pairs = " ".join(RESOURCES), partial(Row, pairs=True)
_ROWS = (
    _pairs("ingest", "", "id, source, reference", "ingest"),
    _pairs("pivot", "ingest", "source"),
    Row("nmt", "ingest", "a translation model", "train-nmt"),
    Row("forward_nmt", "ingest", "a model of the other direction", "train-nmt"),
    _pairs(
        "back_translate",
        "ingest pivot nmt",
        "translation, translation_score, translation_subwords",
        "back-translate",
    ),
    _pairs("generate", "ingest pivot back_translate nmt", "candidates of language models"),
    *(Row(name, "", "", "train-paragram" * (name == "paragram")) for name in RESOURCES),
    _pairs(
        "score",
        f"back_translate generate {_ALL}",
        "reference_tokens, translation_tokens, trigram_overlap, …",
        "score",
        again=ROUND,
    ),
    _pairs("bucket", "score", "<score>_decile (exact tenths)", "bucket", again=ROUND),
    Row("exclude", "", "evaluation sentences"),
    Row("auto_select", "bucket exclude", "score and deciles", folder="choice", again=SELECTION),
    Row("judged", "bucket", "score and deciles", again=SELECTION),
    Row("loop", "", "the best round"),
    _pairs(
        "select",
        "bucket exclude auto_select judged",
        "the selected pairs; corpus.tsv.gz",
        "select",
        "corpus",
        FIRST,
    ),
    Row("embeddings", "select paragram", "a sentence encoder", "train-embeddings", again=FIRST),
    Row("evaluate", "embeddings", "correlations on STS, SICK", "train-embeddings", again=FIRST),
)
TABLE = {row.name: row for row in _ROWS}
"""The stages by name, in their order."""

PAIR_STAGES = tuple(name for name, row in TABLE.items() if row.pairs)
"""The stages that produce pairs, in their order; `pivot` only in runs with plain text, `generate`
only in those with `generators`."""

RANKED = "bucket"
"""The stage with the pairs that selection reads, and all that looks at scored pairs."""

RESULTS = tuple(name for name, row in TABLE.items() if row.again == FIRST)
"""The stages that every derived run makes for itself; the best round's result is the run's."""

TARGETS: dict[str | None, tuple[str, ...]] = {
    "corpus": tuple(TABLE)[list(TABLE).index("select") :],
    **{
        command: tuple(name for name, row in TABLE.items() if row.command == command)
        for command in dict.fromkeys(row.command for row in TABLE.values() if row.command)
    },
}
"""The stages that each command brings up to date, with all that they depend on."""


def own(place: str) -> tuple[str, ...]:
    """The stages that the derived run in a place below a run makes for itself.

    >>> own("rounds/1"), own("selections/strict")[:2]
    (('select', 'embeddings', 'evaluate'), ('auto_select', 'judged'))
    """
    kind = SELECTION if place.startswith("selections/") else ROUND
    kind = FIRST if place == "rounds/1" else kind
    return tuple(name for name, row in TABLE.items() if row.again >= kind)


def folder_of(path: str) -> str:
    """The folder of a stage's files, below the run's.

    >>> folder_of("score"), folder_of("rounds/2/select")
    ('score', 'rounds/2/corpus')
    """
    place, slash, name = path.rpartition("/")
    row = TABLE.get(name)
    return f"{place}{slash}{(row and row.folder) or name}"


def stage_in(folder: str) -> str:
    """The inverse of `folder_of`.

    >>> stage_in("rounds/2/corpus"), stage_in("select")
    ('rounds/2/select', 'select')
    """
    place, slash, name = folder.rpartition("/")
    found = next((row.name for row in TABLE.values() if row.folder == name), name)
    return f"{place}{slash}{found}"
