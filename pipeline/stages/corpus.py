"""corpus: the selected pairs, as Parquet and as text."""

from dataclasses import asdict
from typing import Any

from paraloom.beam_jobs import select
from paraloom.beam_jobs.io import storage
from paraloom.beam_jobs.io.shards import copy_pairs, units
from paraloom.models.languages import ENGLISH
from paraloom.pipeline.judging.record import JudgedRecord
from paraloom.pipeline.records import AutoSelectRecord, PairsRecord
from paraloom.pipeline.stage import Run, Stage, pairs_record, shards_are_valid


def criteria(run: Run) -> select.Criteria:
    """The criteria of the configuration, or with `by: auto` and `by: judged` those found."""
    by, deciles = run.config.select.by, run.config.select.deciles
    if by == "auto":
        chosen = run.record(AutoSelectRecord).chosen
        return run.criteria(chosen.scorer, chosen.deciles)
    if by == "judged":
        cut = run.record(JudgedRecord).chosen
        return run.criteria(cut.score, cut.deciles)
    if run.round > 1:
        (by,) = run.ranked_by
    return run.criteria(by, deciles)


def fingerprint(run: Run) -> Any:
    """The criteria; those on several translations of a source only if there are several."""
    values = asdict(criteria(run))
    if run.config.nmt.candidates == 1:
        del values["per_source"]
    language = values.pop("language")
    if values.get("per_source") != "diverse":
        del values["max_overlap"]
    elif language != ENGLISH:
        values["language"] = language
    return values


def make(run: Run, key: str) -> PairsRecord:
    """Select pairs."""
    work = units(run.shards("bucket"), key)
    result = select.run(work, run.folder("corpus"), criteria(run), run.arguments)
    return pairs_record(PairsRecord, result)


def is_valid(run: Run, stage: str) -> bool:
    """Whether the part files and the text form are there."""
    return shards_are_valid(run, stage) and storage.exists(select.tsv_path(run.folder(stage)))


def copy(source: Run, target: Run) -> None:
    """Copy part files, receipts and text; the text is last."""
    folders = [run.folder("corpus") for run in (source, target)]
    text, copied = map(select.tsv_path, folders)
    storage.remove(copied)
    copy_pairs(*folders)
    storage.copy(text, copied)


STAGE = Stage(
    name="corpus",
    depends_on=("bucket", "choice", "judged"),
    version=select.VERSION,
    fingerprint=fingerprint,
    make=make,
    is_valid=is_valid,
    copy=copy,
)
