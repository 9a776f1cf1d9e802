"""Scoring: each scorer in the configuration adds one column.

If only some scorers changed since an earlier output, only these scorers' columns are computed. The
other columns are copied from the earlier output.
"""

from __future__ import annotations

import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from apache_beam.utils.shared import Shared
from pydantic import Field

from paraloom.beam_jobs.engine import schema
from paraloom.beam_jobs.engine.launch import Result, launch
from paraloom.beam_jobs.engine.options import threads_here
from paraloom.beam_jobs.engine.part_files import decode, extended
from paraloom.beam_jobs.engine.rejections import Limit
from paraloom.beam_jobs.engine.shards import (
    EARLIER,
    DamagedError,
    Measurements,
    Receipt,
    Unit,
    content_key,
    read_receipt,
    read_shard,
    read_whole,
)
from paraloom.beam_jobs.engine.unit_dofn import OverlappingDoFn
from paraloom.beam_jobs.runners import dataflow
from paraloom.beam_jobs.storage import MissingError
from paraloom.beam_jobs.storage.remote import localise
from paraloom.beam_jobs.transforms.translations import TranslatorFactory
from paraloom.models.cpu import cores
from paraloom.models.errors import UserError, one_line
from paraloom.models.languages import ENGLISH
from paraloom.models.nmt.gpu import required
from paraloom.models.progress import hear_batches, listeners
from paraloom.models.scorers import SCORERS, PairScorer
from paraloom.models.scorers.base import Resource, Scorer
from paraloom.models.scorers.pair_scorer import TOKEN_COUNTS, outside
from paraloom.models.scorers.plugins import ScorerSource


def score_table(
    table: pa.Table,
    scorer: PairScorer,
    scorers: Sequence[str],
    given: pa.Table | None = None,
    target: pa.Schema | None = None,
    waits: list[float] | None = None,
) -> tuple[pa.Table, pa.Table]:
    """Add the missing columns of `scorers`.

    Args:
        given: columns that were computed before, for the same rows.
        target: schema of the scored rows, if the stage is not `score`.
        waits: list that receives the seconds spent waiting for other threads.

    Return the scored rows, and the rejected rows with a `reason`. A row is rejected if a score is
    missing, not finite, or outside the range of its scorer, or if a text has too many tokens.
    """
    if target is None:
        target = schema.scored(tuple(scorers), **schema.variant(table))
        target = schema.extended(table.schema, target)
    scored, missing = table, {}
    if given is not None:
        for name in given.column_names:
            scored = scored.append_column(target.field(name), given[name])
    if lacking := [name for name in target.names if name not in scored.column_names]:
        read = [name for name in ("source", "translation_score") if scorer.reads(name)]
        texts = ["reference", "translation", *(name for name in read if name in table.column_names)]
        columns = {name: table[name].combine_chunks() for name in texts}
        if scorer.reads("id"):
            columns["ids"] = schema.row_ids(table)
        found = scorer.only(lacking).score(**columns)
        missing = found.reasons
        if waits is not None:
            waits.append(found.waited)
        for name in lacking:
            column = target.field(name)
            scored = scored.append_column(column, pa.array(found[name], column.type))
    reasons = np.full(table.num_rows, "", object)
    for name in (*(name for name in TOKEN_COUNTS if name in missing), *scorers):
        values = scored[name].to_numpy()
        if name in missing:
            rows = (reasons == "") & (missing[name] != "")
            reasons[rows] = [f"{name}: {one_line(reason)}" for reason in missing[name][rows]]
        reasons[(reasons == "") & ~np.isfinite(values)] = f"{name} is not finite"
        if one := scorer.scorers.get(name):
            reasons[(reasons == "") & outside(values, one)] = f"{name} is outside {_range(one)}"
    scored = scored.select(target.names)
    of_rejected = schema.rejected([f for f in target if f.name in table.column_names])
    if (good := reasons == "").all():
        return scored.cast(target), of_rejected.empty_table()
    rejected = table.append_column("reason", pa.array(reasons, pa.string()))
    rejected = rejected.filter(pa.array(~good)).select(of_rejected.names)
    return scored.filter(pa.array(good)).cast(target), rejected.cast(of_rejected)


def _range(scorer: Scorer) -> str:
    low, high = ("" if bound is None else f"{bound:g}" for bound in scorer.range)
    return f"its range {low}..{high}"


class ScoreMeasurements(Measurements):
    """Measurements of a shard."""

    # Column -> digest of everything that its values depend on. While the digest is unchanged, the
    # column can be copied.
    columns: dict[str, str] = Field(default_factory=dict)


@dataclass(eq=False)
class Scoring:
    """The scorers of a job, and the settings with which workers open them."""

    scorers: Sequence[str]  # scores in the output; scores that the input contains are copied
    resources: Mapping[str, str | TranslatorFactory] = field(default_factory=dict)
    sources: Sequence[ScorerSource] = ()  # for scorers that are not in `SCORERS`
    language: str = ENGLISH  # language of references and translations
    threads: int | None = None  # threads of a model; None: all cores
    accelerator: str | None = None  # Beam resource hint, if there is a model
    int8: bool = False  # whether sentence-transformers models use 8-bit weights, on a CPU

    def __post_init__(self) -> None:
        self.scorers, self.resources = tuple(self.scorers), dict(self.resources)
        scorers = [found for name in self.scorers if (found := self.find(name))]
        kinds = [scorer.resource for scorer in scorers if scorer.resource]
        self.models = {kind.name: Shared() for kind in kinds if kind.is_model}

    def find(self, name: str) -> Scorer | None:
        """Return the scorer with this name, or None for a score in the input."""
        sources = {source.name: source for source in self.sources}
        return sources[name].load() if name in sources else SCORERS.get(name)

    def open(self, names: Sequence[str]) -> PairScorer:
        """Open scorers. Open each resource when it is needed, and a model once per process."""
        resources: dict[str, Any] = {}
        for name in names:
            kind = scorer.resource if (scorer := self.find(name)) else None
            if kind is None or kind.name not in self.resources:
                continue  # `PairScorer` reports the missing resource
            opening = partial(self._open_resource, kind)
            shared = self.models.get(kind.name)
            resources[kind.name] = partial(shared.acquire, opening) if shared else opening
        if "encoder" in self.resources and not self.models:  # opening a model sets the threads
            import torch

            torch.set_num_threads(1)
        return PairScorer(names, sources=self.sources, language=self.language, **resources)

    def _open_resource(self, kind: Resource) -> Any:
        resource, threads = self.resources[kind.name], self.threads or cores()
        if isinstance(resource, TranslatorFactory):
            return resource.open(threads, self.accelerator)
        if kind.is_model:
            import torch

            required(self.accelerator)
            torch.set_num_threads(threads)
        opening = kind.open_int8 if self.int8 and kind.open_int8 else kind.open
        opened = opening(Path(localise(resource)))
        if kind.is_model:
            hear_batches(opened)
        return opened


def run(
    units: Sequence[Unit],
    output: str,
    scoring: Scoring,
    arguments: Sequence[str],
    *,
    keys: Mapping[str, str] | None = None,
    max_rejected: float = 1.0,
) -> Result:
    """Score the pairs of `units`, and write the scored pairs into `output`.

    Raise a UserError if the share of rejected rows is larger than `max_rejected`.

    If a resource is a model and the user chose no Beam runner, one process does all the work, so
    that the model is loaded once.
    `keys` maps each score to a digest of everything that it depends on, apart from the pairs. If
    digest and pairs are unchanged, the column is copied from the unit's earlier output.
    """
    scoring = replace(scoring, threads=threads_here(arguments))
    score = beam.ParDo(_Score(output, scoring, dict(keys or {})))
    if scoring.models:
        arguments = dataflow.one_process(arguments, scoring.accelerator)
        if scoring.accelerator:
            score = score.with_resource_hints(accelerator=scoring.accelerator)
    step, limit = "Score" >> score, Limit(share=max_rejected)
    processes = 1 if scoring.models else None
    return launch("score", units, step, output, arguments, processes=processes, limit=limit)


@dataclass(eq=False)
class _Score(OverlappingDoFn):
    scoring: Scoring
    keys: dict[str, str]

    def setup(self) -> None:
        super().setup()
        self.opened: list[PairScorer] = []
        self.opening = Lock()

    def room(self, unit: Unit) -> int:
        """If there is a model, let one more unit begin, so that the model does not wait."""
        return 1 if self.scoring.models else 0

    def make(self, unit: Unit) -> Receipt:
        data = read_whole(unit.shard)
        table = decode(data)
        scorers = self.scoring.scorers
        with self.opening:
            if not self.opened:  # all units have the same columns
                lacking = [n for n in scorers if n not in table.column_names]
                self.opened.append(self.scoring.open(lacking))
        (scorer,) = self.opened
        keys = {name: content_key(key, unit.shard.digest) for name, key in self.keys.items()}
        known, columns = self._computed_before(unit, table, keys)
        sides = pa.chunked_array([*table["reference"].chunks, *table["translation"].chunks])
        texts, done = len(sides.unique()) * len(self.scoring.models), 0

        def listen(batch: int) -> None:
            nonlocal done
            done += batch
            self.tell(unit, len(table) * min(done / texts, 1))

        waits: list[float] = []
        listeners.insert(0, listen)  # only the listener at the end, of the oldest shard, is called
        try:
            parts = [score_table(table.filter(known), scorer, scorers, columns, waits=waits)]
            if columns is not None and len(columns) < len(table):
                new = table.filter(pc.invert(known))
                parts.append(score_table(new, scorer, scorers, waits=waits))
        except UserError as error:
            if error.__cause__:  # a plug-in's error, for the log
                traceback.print_exception(error.__cause__)
            raise UserError(f"{error} (shard {unit.name})") from None  # hides the cause
        finally:
            listeners.remove(listen)
        accepted, rejected = map(pa.concat_tables, zip(*parts, strict=True))
        if len(parts) > 1:
            order = pc.index_in(schema.row_ids(accepted), value_set=schema.row_ids(table))
            accepted = accepted.take(pc.sort_indices(order))
        # If all rows and columns remain, `extended` can copy compressed pages.
        if not rejected.num_rows and set(table.column_names) <= set(accepted.column_names):
            added = accepted.drop_columns(table.column_names)
            accepted = extended(data, added, accepted.schema)
        numbers = ScoreMeasurements(columns=keys) if keys else None
        pieces, started = [(unit.name, accepted, rejected)], self._started + sum(waits)
        return self.commit(table.num_rows, pieces, numbers, started=started)

    def _computed_before(
        self, unit: Unit, table: pa.Table, keys: Mapping[str, str]
    ) -> tuple[pa.Array, pa.Table | None]:
        """Mark the rows that an earlier output contains, bool [n], and return reusable columns.

        Without reusable columns, mark all rows, and return None instead of columns.
        """
        everything = pa.array(np.ones(len(table), bool))
        before = read_receipt(self.output, unit.name, EARLIER)
        had = before.measured(ScoreMeasurements).columns if before else {}
        same = dict(had.items() & keys.items())
        same = {name: key for name, key in same.items() if name not in table.column_names}
        if not before or not same:
            return everything, None
        try:
            earlier = read_shard(before.shards[0])
        except (MissingError, DamagedError):
            return everything, None
        at = pc.index_in(schema.row_ids(table), value_set=schema.row_ids(earlier))
        return at.is_valid(), earlier.select(list(same)).take(at.drop_null())
