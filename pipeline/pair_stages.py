"""The stages whose files are pairs: Beam jobs, with their parts, their work and their account."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from beam_jobs import back_translate, bucket, ingest, score, select
from beam_jobs.io import remote, storage
from beam_jobs.io.bitext import find_bitext
from beam_jobs.io.shards import Receipt, Shard, content_key, receipts, units
from beam_jobs.runners.launch import Result
from beam_jobs.transforms.predicates import Predicate
from models.errors import UserError
from models.files import digest
from pipeline import tables
from pipeline.records import AutoSelectRecord, InputFile
from pipeline.stage import Run


def _account(result: Result, started: float) -> dict[str, Any]:
    """The account of a stage of pairs; RuntimeError if a row is unaccounted for."""
    rows_in = sum(receipt.rows_in for receipt in result.receipts)
    rows_out = sum(receipt.rows_out for receipt in result.receipts)
    rejected: dict[str, int] = {}
    for receipt in result.receipts:
        for reason, rows in receipt.rejected.items():
            rejected[reason] = rejected.get(reason, 0) + rows
    if rows_in != rows_out + sum(rejected.values()):
        raise RuntimeError(f"{rows_in} rows in, {rows_out} out, rejected {rejected}")
    return {
        "rows_in": rows_in,
        "rows_out": rows_out,
        "rows_rejected": sum(rejected.values()),
        "rejected": dict(sorted(rejected.items(), key=lambda item: -item[1])),
        "shards": sum(len(receipt.shards) for receipt in result.receipts),
        "seconds": round(time.monotonic() - started, 3),
        "worker_seconds": round(sum(receipt.seconds for receipt in result.receipts), 3),
        "peak_memory": max((receipt.peak_memory for receipt in result.receipts), default=0),
        "metrics": result.metrics,
        "digest": _digest(result.receipts),
    }


def _digest(of: Sequence[Receipt]) -> str:
    return content_key([(s.name, s.rows, s.digest) for receipt in of for s in receipt.shards])


def shards_intact(stage: str) -> Callable[[Run], bool]:
    """The receipts add up to the digest of the account, and their part files are there."""

    def intact(run: Run) -> bool:
        found = receipts(run.folder(stage))
        files = set(storage.names(run.folder(stage)))
        there = all(f"{shard.name}.parquet" in files for r in found for shard in r.shards)
        return there and _digest(found) == run.digest(stage)

    return intact


def ingest_parts(run: Run) -> Any:
    """What ingest depends on: the bytes of the input, and how it is cut."""
    options = run.input
    bitexts = find_bitext(options.format, options.paths)
    run.inputs = [
        {"path": path, "bytes": storage.size(path), "sha256": storage.file_digest(path)}
        for bitext in bitexts
        for path in bitext.paths
    ]
    content = [(bitext.format, bitext.name) for bitext in bitexts]
    return [content, [i["sha256"] for i in run.inputs], options.shard_rows, options.max_characters]


def make_ingest(run: Run, key: str) -> dict[str, Any]:
    """Bitext into pairs."""
    started = time.monotonic()
    options = run.input
    run.manifest.record.inputs = [InputFile(**i) for i in run.inputs]
    result = ingest.run(
        find_bitext(options.format, options.paths),
        run.folder("ingest"),
        key,
        shard_rows=options.shard_rows,
        max_characters=options.max_characters,
        rows=sum(i["bytes"] for i in run.inputs) // 50,
        arguments=run.arguments,
    )
    account = _account(result, started)
    if not account["rows_out"]:
        raise UserError(
            f"{run.folder('ingest')}: none of {account['rows_in']:,} rows can be used; "
            "the reasons stand in its rejected/ folder: is input.format right?"
        )
    return account


def back_translate_parts(run: Run) -> Any:
    """What translation depends on: the model, when it is given, and how it decodes."""
    options = run.config.nmt
    decoding = [options.engine, options.compute_type, options.beam, options.batch_tokens]
    model = digest(remote.local(options.model)) if options.model else None
    return [*decoding, options.max_source_subwords, model]


def make_back_translate(run: Run, key: str) -> dict[str, Any]:
    """Pairs with translations."""
    started = time.monotonic()
    # Per shard, so that more input translates only what is new.
    model = digest(remote.local(run.model))
    base = content_key("back_translate", back_translate.VERSION, back_translate_parts(run), model)
    result = back_translate.run(
        units(run.shards("ingest"), base),
        run.folder("back_translate"),
        run.model,
        run.config.nmt,
        run.arguments,
        accelerator=run.config.accelerator,
    )
    return {**_account(result, started), "model": {"path": run.model, "sha256": model}}


def make_score(run: Run, key: str) -> dict[str, Any]:
    """Pairs with scores."""
    paths = tables.paths(run)
    made = {name: run.digest(name) for name in paths}
    return _score(run, run.shards("back_translate"), paths, made)


def make_score_by_encoder(run: Run, key: str) -> dict[str, Any]:
    """The first round's pairs with the score that the encoder of the round before gives them."""
    before = run.at(run.round - 1)
    made = {"encoder": before.digest("embeddings")}
    paths = {"encoder": before.folder("embeddings")}
    return _score(run, run.at(0).shards("score"), paths, made)


def _score(
    run: Run, pairs: Sequence[Shard], paths: dict[str, str], made: dict[str, str]
) -> dict[str, Any]:
    started = time.monotonic()
    work = units(pairs, content_key("score", score.VERSION, run.scorers, made))
    return _account(
        score.run(work, run.folder("score"), run.scorers, paths, run.arguments), started
    )


def make_bucket(run: Run, key: str) -> dict[str, Any]:
    """Pairs with deciles."""
    started = time.monotonic()
    work = units(run.shards("score"), key)  # a bound depends on every row: all of them or none
    result = bucket.run(work, run.folder("bucket"), run.scorers, run.arguments)
    return {**_account(result, started), "deciles": bucket.summarise(result.receipts)}


def criteria(run: Run) -> select.Criteria:
    """What the run selects by: its configuration, or what was chosen."""
    config, options = run.config, run.config.select
    by, deciles = options.by, options.deciles
    if by == "auto":
        chosen = run.record(AutoSelectRecord).chosen
        by, deciles = chosen.scorer, list(chosen.deciles)
    elif run.round > 1:
        (by,) = run.ranked_by
    return select.Criteria(
        by=by,
        deciles=None if deciles is None else tuple(sorted(set(deciles))),
        max_tokens=options.max_tokens,
        size=options.size,
        seed=config.seed,
        where=tuple(map(Predicate.parse, options.where)),
    )


def make_corpus(run: Run, key: str) -> dict[str, Any]:
    """The selected pairs, as Parquet and as text."""
    started = time.monotonic()
    work = units(run.shards("bucket"), key)
    result = select.run(work, run.folder("corpus"), criteria(run), run.arguments)
    return _account(result, started)


def corpus_intact(run: Run) -> bool:
    """Whether the part files and the text form are there."""
    text = select.tsv_path(run.folder("corpus"))
    return shards_intact("corpus")(run) and storage.exists(text)
