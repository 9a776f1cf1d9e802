"""Runs on a sample of the input, for `preview` and `estimate`."""

import io
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from pydantic import computed_field
from pydantic.dataclasses import dataclass as model

from paraloom.beam_jobs import storage
from paraloom.beam_jobs.bitext import find_bitext
from paraloom.beam_jobs.bitext.preview import BitextPreview, preview
from paraloom.beam_jobs.engine import schema
from paraloom.beam_jobs.engine.shards import receipts, write_shard
from paraloom.beam_jobs.transforms.conditions import Predicate
from paraloom.beam_jobs.transforms.corpus_text import tsv_path
from paraloom.models.cpu import cores
from paraloom.models.errors import UserError
from paraloom.models.nmt import gpu
from paraloom.models.scorers import SCORERS
from paraloom.models.scorers.plugins import column_of
from paraloom.pipeline.config import Config
from paraloom.pipeline.config.input import MAX_CHARACTERS
from paraloom.pipeline.config.languages import check_texts, of_codes
from paraloom.pipeline.run.make import run_stages
from paraloom.pipeline.run.notices import notify
from paraloom.pipeline.run.records import PairsRecord
from paraloom.pipeline.run.run import Run
from paraloom.pipeline.stages import RANKED

READ = 20_000
"""A sample is drawn from at most this number of rows at the beginnings of the files."""


@model(frozen=True, slots=True, kw_only=True)
class Job:
    """The estimate of a stage."""

    rows: int  # number of rows that the stage reads or translates
    rate: float  # rows per second on `cores` cores
    size: float  # bytes that the stage writes
    memory: int  # peak memory of a worker, in bytes
    cores: int = 1
    device: str = "a core"

    def of(self, rows: float, share: float = 1.0, many: int = 1) -> "Job":
        """Extrapolate to `rows` rows.

        `share` is the number of bytes per row, relative to the sample. `many` is the number of
        candidates per row. In the sample, each candidate counts as a row.
        """
        size = self.size / self.rows * rows * share
        return replace(self, rows=round(rows), rate=self.rate / many, size=size)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def seconds(self) -> float:
        """The time, extrapolated from `cores` cores to all cores of this machine."""
        return self.rows / self.rate * self.cores / cores()


def read_beginnings(config: Config, command: str) -> BitextPreview:
    """Check the languages of the files, and read the beginnings of the files.

    `command` is the last word of the error about a missing `input`.
    """
    if (options := config.input) is None:
        raise UserError(f"input: is missing, so there is nothing to {command}")
    bitexts = find_bitext(options.format, options.paths, options.layout)
    notify(of_codes(options))
    check_texts(options, bitexts)
    return preview(bitexts, rows=READ, max_characters=MAX_CHARACTERS)


def draw(pairs: pa.Table, rows: int, seed: int) -> pa.Table:
    """Return at most `rows` random pairs, in the order of the input."""
    drawn = np.random.default_rng(seed).permutation(len(pairs))[:rows]
    return pairs.take(pa.array(np.sort(drawn))).combine_chunks()


def write_sample(config: Config, sample: pa.Table, folder: str) -> dict[str, Any]:
    """Write a sample to a folder, and return the keys of `input` for the sample."""
    if config.is_plain_text:
        path = storage.join(folder, "sample.txt")
        lines = (f"{line}\n" for line in sample["reference"].to_pylist())
        storage.write_bytes(path, "".join(lines).encode())
        return {"paths": [path], "clean": []}
    path = write_shard(storage.join(folder, "sample.parquet"), sample).path
    form: dict[str, Any] = {"format": "parquet", "columns": {}}
    if config.is_mined:  # in a sample of mined pairs, `source` contains the translations
        form = {"format": "pairs", "columns": {"translation": "source"}}
    return {**form, "paths": [path], "clean": []}


def scorers_at_hand(run: Run) -> list[str]:
    """Return the scorers that need no resource, or one that is configured or already made."""
    given, there = run.config.score, {None, "translation_model", *run.records}
    if run.config.nmt.forward_model or "forward_nmt" in run.records:
        there.add("forward_model")
    return [
        name
        for name in given.scorers
        if name not in SCORERS
        or (needed := SCORERS[name].resource_name) in there
        or getattr(given, str(needed), None) is not None
    ]


def configured(run: Run, sample: pa.Table, folder: str, *, chats: bool = False) -> Config:
    """Write a sample to `folder`, and return the configuration of a run on this sample.

    If `chats` is true, only language models make candidates.
    """
    config, given = run.config, run.config.score
    score: dict[str, Any] = {"phrases": given.phrases if "paragram" in run.records else None}
    score["scorers"] = scorers_at_hand(run) or ["translation_score"]
    scores = (*map(column_of, score["scorers"]), *given.columns)
    columns = {*schema.bucketed(scores).names, *run.input.keep, *["generator"] * chats}
    where = [t for t in config.select.where if Predicate.parse(t).column in columns]
    by = config.select.by if config.select.by in scores else scores[0]
    keys = config.model_dump()
    keys["input"] |= {"where": [], "unique": None, "shard_rows": -(-len(sample) // 2)}
    keys["input"] |= write_sample(config, sample, folder)
    keys["loop"]["rounds"], keys["embeddings"]["selection"] = 1, None
    keys["nmt"]["reuse"] = None  # reused translations would not show the speed of the model
    keys["score"] |= score
    keys["select"] |= {"by": by, "where": where, "size": None, "named": {}, "per_generator": None}
    keys["generators"] = [of.model_dump() for of in config.chats] if chats else None
    keys |= {"run": folder, "accelerator": None, "max_rejected": 1.0}
    return Config.of(keys)


def _has_models(config: Config) -> bool:
    # Scorers with models run in one process on all cores.
    from paraloom.beam_jobs.score import Scoring

    return bool(Scoring(config.score.names, {}, config.score.sources).models)


def take(base: Run, config: Config, arguments: Sequence[str], first: str, *, ranked: bool) -> Run:
    """Run stages up to `first` on this machine. If `ranked`, also run stages up to selection."""
    # Without models, one process scores the two shards, so it opens the resources only once.
    one = [] if _has_models(config) else ["--direct_num_workers=1"]
    with redirect_stdout(io.StringIO()):
        made = run_stages(config, [first], arguments, base=base)
        if ranked:
            with redirect_stderr(io.StringIO()):  # the run up to `first` has printed all messages
                made = run_stages(config, [RANKED], [*arguments, *one], base=base)
                with suppress(UserError):  # the selection may be empty
                    made = run_stages(config, ["select"], [*arguments, *one], base=base)
    return made


def measured(run: Run, stage: str, record: PairsRecord, workers: int) -> Job:
    """Measure the rate, size and memory of a stage on a sample. Models ran on `workers` cores."""
    done = sorted(receipts(run.folder(stage)), key=lambda receipt: receipt.ended)
    # Except in translation, the time of the first shard includes the opening of resources.
    timed = done if stage in ("pivot", "back_translate") else done[1:] or done
    shards = (shard for of in done for shard in (*of.shards, *of.rejected_shards))
    size = sum(shard.size for shard in shards)
    if stage == "select":
        size += storage.size(tsv_path(run.folder(stage)))
    seconds = max(sum(of.seconds for of in timed), 1e-3)
    job = Job(
        rows=max(record.rows_in, 1),
        rate=max(sum(of.rows_in for of in timed), 1) / seconds,
        size=size,
        memory=record.peak_memory,
    )
    models = stage == "score" and _has_models(run.config)
    if not models and stage not in ("pivot", "back_translate"):
        return job
    name = f"{workers} CPU cores"
    if gpus := gpu.chosen(run.config.nmt):
        import torch

        name = torch.cuda.get_device_name() if torch.cuda.is_available() else "a GPU"
        if len(gpus) > 1 and not models:
            name = f"{len(gpus)} GPUs ({name}), {job.rate / len(gpus):,.0f} rows/s each"
    return replace(job, cores=workers, device=name)
