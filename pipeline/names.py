"""The names of stages: in which order they are, in the manifest, and of their folders."""

from collections.abc import Mapping

PAIR_STAGES = ("ingest", "pivot", "back_translate", "generate", "score", "bucket", "select")
"""The stages that produce pairs, in their order; `pivot` only in runs with plain text, `generate`
only in those with `generators`."""

RANKED = "bucket"
"""The stage with the pairs that selection reads, and all that looks at scored pairs."""

RESULTS = ("select", "embeddings", "evaluate")
"""The stages that every round has a result of; the best round's result is the run's."""

RANKING = ("score", "bucket", "auto_select", "judged")
"""The stages before them that rounds after the first have of their own."""

SELECTED = ("auto_select", "judged", *RESULTS)
"""The stages that every named selection has of its own."""

_FOLDERS = {"select": "corpus", "auto_select": "choice"}
"""The folders of stages that are not called as the stage is. Keys have these names."""


def folder_of(stage: str) -> str:
    """The folder of a stage's files, below the run's.

    >>> folder_of("score"), folder_of("rounds/2/select")
    ('score', 'rounds/2/corpus')
    """
    return _with_last(stage, _FOLDERS)


def stage_in(folder: str) -> str:
    """The inverse of `folder_of`.

    >>> stage_in("rounds/2/corpus"), stage_in("select")
    ('rounds/2/select', 'select')
    """
    return _with_last(folder, {folder: stage for stage, folder in _FOLDERS.items()})


def _with_last(path: str, names: Mapping[str, str]) -> str:
    parent, slash, name = path.rpartition("/")
    return f"{parent}{slash}{names.get(name, name)}"


def stage_path(stage: str, of: int | str) -> str:
    """The name of a stage of a round, or of a named selection, in the manifest; 0 and "" stand for
    neither.

    >>> stage_path("select", 0), stage_path("select", 2), stage_path("bucket", 1)
    ('select', 'rounds/2/select', 'bucket')
    >>> stage_path("select", "strict"), stage_path("bucket", "strict")
    ('selections/strict/select', 'bucket')
    """
    if isinstance(of, str):
        return f"selections/{of}/{stage}" if of and stage in SELECTED else stage
    own = (*RESULTS, *RANKING) if of > 1 else RESULTS if of else ()
    return f"rounds/{of}/{stage}" if stage in own else stage
