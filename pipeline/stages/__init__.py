"""The table of stages: order, what each reads and makes, its folder, its command, its module.

    ingest → nmt → back_translate → score → bucket → auto_select → select → embeddings → evaluate
        pivot ↗     generate ↗  paragram, idf, … ↗

The `STAGE` of a module makes and checks the stage's result, and has its fingerprint: see
`paraloom.pipeline.run.stage.Stage`. A new stage is a module and a row here. A stage that makes the
resource of a scorer is only a module in `resources`, with the name of the resource; its
`depends_on` names the stages that it reads. `paraloom.pipeline.run.derived` describes the runs that
make some of the stages again.
"""

from functools import partial
from typing import NamedTuple

from paraloom.models.scorers import ENCODER, SCORERS


class Row(NamedTuple):
    """A stage of the table."""

    name: str
    reads: str  # stages, if the configuration has them
    makes: str  # columns of the pairs, or another result
    command: str = ""  # the command, besides `corpus`, that brings the stage up to date
    folder: str = ""  # the folder, if it has another name than the stage; keys have this name
    again: int = 0  # derived runs with this number or a lower one make the stage for themselves
    pairs: bool = False  # whether it makes part files of pairs


ROUND, SELECTION, FIRST = 1, 2, 3
"""Kinds of derived runs: rounds after the first, named selections, the first round."""

RESOURCES = (
    *dict.fromkeys(
        of.resource_name or "" for n, of in SCORERS.items() if of.resource and n != ENCODER
    ),
    "columns",
)
"""The stages that make resources of scorers; the encoder comes from the round before."""

_ALL, _pairs = " ".join(RESOURCES), partial(Row, pairs=True)
_ROWS = (
    _pairs("ingest", "", "id, source, reference", "ingest"),
    _pairs("pivot", "ingest", "source"),
    Row("nmt", "ingest", "a translation model", "train-nmt"),
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
"""The stages that produce pairs, in their order; only plain text has `pivot`, only `generators`
have `generate`."""

RANKED = "bucket"
"""The stage whose pairs selection reads, as do judging and the report."""

RESULTS = tuple(name for name, row in TABLE.items() if row.again == FIRST)
"""The stages that every derived run makes for itself; the run copies the best round's results."""

TARGETS: dict[str | None, tuple[str, ...]] = {
    "corpus": tuple(TABLE)[list(TABLE).index("select") :],
    **{
        command: tuple(name for name, row in TABLE.items() if row.command == command)
        for command in dict.fromkeys(row.command for row in TABLE.values() if row.command)
    },
}
"""The stages that each command brings up to date, after the stages that they depend on."""


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
