"""Stage `select`: writes the selected pairs as Parquet and as text."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict
from typing import Any

import numpy as np

from paraloom.beam_jobs import VERSIONS, storage
from paraloom.beam_jobs.engine import schema
from paraloom.beam_jobs.engine.shards import (
    Receipt,
    compacted,
    copy_pairs,
    read_shard,
    receipts,
    units,
)
from paraloom.beam_jobs.transforms.corpus_text import tsv_path, tsv_state
from paraloom.beam_jobs.transforms.criteria import Criteria
from paraloom.beam_jobs.transforms.equal_texts import row_hash
from paraloom.models.errors import UserError
from paraloom.models.files import CARD
from paraloom.models.scorers import PairScorer
from paraloom.pipeline.config.selection import CHOSEN
from paraloom.pipeline.run.records import PairsRecord
from paraloom.pipeline.run.run import Run
from paraloom.pipeline.run.stage import first_rows, pairs_record, shards_are_valid
from paraloom.pipeline.stages import RANKED
from paraloom.pipeline.stages.selection import resolve_auto

version = VERSIONS["select"]


def criteria(run: Run) -> Criteria:
    """Return the criteria. The chosen score and deciles replace `auto` and `judged`."""
    chosen = resolve_auto(run)
    assert chosen.by not in CHOSEN, f"select.by: {chosen.by} has chosen no deciles yet"
    return run.criteria(chosen.by, chosen.deciles)


def fingerprint(run: Run) -> Any:
    """Return the criteria, without options that have no effect on this run."""
    chosen = criteria(run)
    values = asdict(chosen) | {"exclude": chosen.exclude and chosen.exclude.similarity}
    if chosen.near_duplicates is None:
        del values["near_duplicates"]
    if not run.config.variant["candidates"]:
        del values["per_source"]
    if values.get("per_source") != "diverse":
        del values["max_overlap"], values["language"]
    return values


def make(run: Run, key: str) -> PairsRecord:
    """Select pairs. Raise a UserError if no pair is selected."""
    from paraloom.beam_jobs import select

    earlier, place = np.empty(0, np.uint64), run.folder("select")
    with suppress(UserError):  # the earlier corpus is damaged or missing
        ended = storage.exists(compacted(place))
        earlier = np.concatenate([earlier, *_hashed_ids(receipts(place) if ended else ())])
    storage.remove(storage.join(place.rpartition("/")[0], CARD))  # it describes the earlier corpus
    work = units(run.shards(RANKED), key)
    result = select.run(work, place, criteria(run), run.arguments)
    record = pairs_record(PairsRecord, result)
    if not record.rows_out:
        counts = ", ".join(f"{rows:,} {reason}" for reason, rows in record.rejected.items())
        why = counts or "earlier stages rejected all rows; see their folders _rejected/"
        raise UserError(f"select: none of {record.rows_in:,} pairs is selected: {why}")
    some = first_rows(run.shards("select"), ["reference", "translation"], 10_000).combine_chunks()
    sides = (side.chunk(0) for side in some.columns)
    f1 = PairScorer(["unigram_f1"], language=run.language).score(*sides)["unigram_f1"]
    record.unigram_f1 = round(float(np.median(f1)), 3)
    record.text = tsv_state(tsv_path(place))
    if len(earlier):
        record.earlier = len(earlier)
        record.still = _common(earlier, _hashed_ids(result.receipts))
    return record


def _hashed_ids(of: Iterable[Receipt]) -> Iterator[np.ndarray]:
    """Yield an array for each shard, with the hash of each row's id: uint64 [rows]."""
    for shard in (shard for receipt in of for shard in receipt.shards):
        yield row_hash(schema.row_ids(read_shard(shard, schema.ROW)))[:, 0]


def _common(earlier: np.ndarray, blocks: Iterable[np.ndarray]) -> int:
    """Count the hashes in `blocks` that are in `earlier`."""
    known = np.sort(earlier)
    found = (known.searchsorted(of, "right") > known.searchsorted(of) for of in blocks)
    return int(sum(map(np.count_nonzero, found)))


def is_valid(run: Run, stage: str) -> bool:
    """Whether the part files and corpus.tsv.gz are complete."""
    if not shards_are_valid(run, stage):
        return False
    with suppress(UserError):
        state = tsv_state(tsv_path(run.folder(stage)))
        return state == (run.record(PairsRecord, stage).text or state)
    return False


def copy(source: Run, target: Run) -> None:
    """Copy the part files, the receipts and corpus.tsv.gz."""
    folders = [run.folder("select") for run in (source, target)]
    text, copied = map(tsv_path, folders)
    storage.remove(copied)
    copy_pairs(*folders)
    storage.copy(text, copied)
