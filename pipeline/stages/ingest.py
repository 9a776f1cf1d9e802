"""Stage `ingest`: reads bitext into pairs."""

from typing import Any

from paraloom.beam_jobs import VERSIONS, storage
from paraloom.beam_jobs.bitext import READERS, opus
from paraloom.beam_jobs.bitext.preview import rows_per_shard
from paraloom.beam_jobs.transforms.conditions import FAILED, TOKEN_COLUMNS
from paraloom.models.errors import UserError
from paraloom.pipeline.config import Config
from paraloom.pipeline.config.input import MAX_CHARACTERS
from paraloom.pipeline.config.languages import check_texts
from paraloom.pipeline.run.records import IngestRecord, InputFile
from paraloom.pipeline.run.run import Run
from paraloom.pipeline.run.stage import pairs_record

version = VERSIONS["ingest"]


def fingerprint(run: Run) -> Any:
    """Return the digests of the input files, and the options that affect the pairs."""
    options, layout = run.input, run.input.layout
    columns = [condition.column for condition in options.conditions]
    tokens = any(column in TOKEN_COLUMNS for column in columns)
    greek = "el" in layout.languages and any("final_punctuation" in name for name in columns)
    by_language = READERS[options.format].by_language
    return [
        [(bitext.format, bitext.name, bitext.sha256) for bitext in run.bitexts],
        [options.shard_rows, MAX_CHARACTERS, options.columns, options.keep, layout.clean],
        [str(condition) for condition in options.conditions],
        options.unique == "pair",  # `unique: source` does not affect this stage
        [*layout.languages] if by_language or tokens or greek else None,
        *([] if options.near_duplicates is None else [["near", options.near_duplicates]]),
        *([["identifier", *own]] if (own := options.identifier) else []),
    ]


def make(run: Run, key: str) -> IngestRecord:
    """Read the bitext. Raise a UserError if all rows are rejected."""
    from paraloom.beam_jobs import ingest

    options = run.input
    inputs = [
        InputFile(path=path, bytes=storage.size(path), sha256=sha256)
        for bitext in run.bitexts
        for path, sha256 in zip(bitext.paths, bitext.sha256, strict=True)
    ]
    reading = ingest.Reading(
        shard_rows=options.shard_rows or rows_per_shard(run.bitexts),
        max_characters=MAX_CHARACTERS,
        where=tuple(options.conditions),
        unique_pairs=options.unique == "pair",
        near_duplicates=options.near_duplicates,
        languages=options.languages,
        identifier=options.identifier,
    )
    place, limit = run.folder("ingest"), run.config.max_rejected
    result = ingest.run(run.bitexts, place, key, reading, run.arguments, limit)
    more = {"inputs": inputs, "shard_rows": reading.shard_rows}
    if options.format == "opus":
        more["terms"] = [opus.terms(bitext.paths[0]) for bitext in run.bitexts]
    record = pairs_record(IngestRecord, result, **more)
    if kinds := options.layout.clean:
        measured = (receipt.measured(ingest.IngestMeasurements) for receipt in result.receipts)
        counts = [of.cleaned for of in measured]
        record.cleaned = {kind: sum(of[kind] for of in counts) for kind in kinds}
    if not record.rows_out:
        reason, rows = next(iter(record.rejected.items()))  # the most frequent reason
        word, _, condition = reason.partition(" ")
        question = "is input.format right?"
        if word == FAILED:
            question = f"{rows:,} do not meet the condition `{condition}` of input.where; change it"
        raise UserError(
            f"{run.folder('ingest')}: none of {record.rows_in:,} rows can be used; "
            f"its _rejected/ folder has the reasons; {question}"
        )
    return record


def check(config: Config) -> None:
    """Check that the configuration has an input."""
    if config.input is None:
        raise UserError("input: is missing")


def check_replaces(run: Run, key: str) -> None:
    """Check the input's languages, and raise a UserError if the run was made from other files.

    At least one input file must have the path or the digest of a file in the stage's record.
    """
    found = run.records.get("ingest")
    if run.base or (found and found.key == key):
        return
    check_texts(run.input, run.bitexts)
    before = found.inputs if isinstance(found, IngestRecord) else []
    files = {p: d for of in run.bitexts for p, d in zip(of.paths, of.sha256, strict=True)}
    same = {of.path for of in before} & {*files} or {of.sha256 for of in before} & {*files.values()}
    if before and not same:
        raise UserError(
            f"{run.config.run}: was made from {before[0].path}, but input names other files; "
            "name another folder in run, or add --force to replace this run"
        )
