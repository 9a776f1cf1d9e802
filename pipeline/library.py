"""The functions for notebooks: `paraloom.run`, `open_run` and `score`; see docs/library.md."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.dataset as ds

from paraloom.beam_jobs import storage
from paraloom.beam_jobs.engine.options import connect
from paraloom.beam_jobs.storage import remote
from paraloom.models.errors import UserError
from paraloom.models.scorers import SCORERS, PairScorer
from paraloom.models.scorers.plugins import source_of
from paraloom.models.text.tokens import as_texts
from paraloom.pipeline.config.read import parse_config, read_config
from paraloom.pipeline.run.folder import finished, shards_of
from paraloom.pipeline.run.make import run_stages
from paraloom.pipeline.run.records import PairsRecord, StageRecord
from paraloom.pipeline.stages import TARGETS, folder_of, stage_in

if TYPE_CHECKING:
    from paraloom.models.embeddings.model import SentenceEncoder


class OpenedRun:
    """A run's finished stages: their pairs, their records, and the encoder.

    >>> run = open_run("runs/sample")
    >>> run.pairs("select").count_rows() < run.pairs("score").count_rows()
    True
    >>> run.pairs().to_table(columns=["reference", "trigram_overlap"]).num_columns
    2
    >>> run.record("score").rows_out == run.pairs("score").count_rows()
    True
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._record = finished(folder)

    @property
    def stages(self) -> list[str]:
        """The names of the finished stages, in their order."""
        return list(self._record.stages)

    def record(self, stage: str) -> StageRecord:
        """The record of a finished stage, by the name of the stage or of its folder."""
        stage = stage_in(stage)
        if stage not in self._record.stages:
            finished = ", ".join(self.stages)
            raise UserError(f"{self.folder}: {stage} is not finished; finished stages: {finished}")
        return self._record.stages[stage]

    def pairs(self, stage: str = "select") -> ds.Dataset:
        """The pairs of a stage as an Arrow data set, which reads rows when they are needed.

        The columns of each stage are in docs/columns.md. A run in an object store is fetched.
        """
        if not isinstance(self.record(stage), PairsRecord):
            raise UserError(f"{self.folder}: {stage} is a stage without pairs")
        paths = [shard.path for shard in shards_of(self.folder, stage)]
        if storage.is_remote(self.folder):
            folder = remote.localise(storage.join(self.folder, folder_of(stage)))
            paths = [str(Path(folder, Path(path).name)) for path in paths]
        return ds.dataset(paths, format="parquet")

    def encoder(self) -> SentenceEncoder:
        """The encoder that the run trained; with several rounds, the best round's encoder."""
        from paraloom.models.embeddings.model import load_encoder

        self.record("embeddings")
        return load_encoder(remote.localise(storage.join(self.folder, "embeddings")))


def open_run(folder: str | Path, beam: Sequence[str] = ()) -> OpenedRun:
    """Open a run folder, on this machine or in an object store; `beam` has Beam's options for
    object stores, as on the command line after `--`."""
    connect(beam, [str(folder)])
    return OpenedRun(str(folder))


def run(
    config: str | Path | Mapping[str, Any],
    command: str = "corpus",
    *,
    changes: Sequence[str] = (),
    beam: Sequence[str] = (),
) -> OpenedRun:
    """Bring a run up to date, as the command line does, and open it; progress goes to stderr.

    Args:
        config: a YAML file, "sample", or a configuration's values.
        command: the last stage to make: `ingest`, `score`, `select`, …, or `corpus` for all.
        changes: `key.sub=value`, as on the command line after `--set`.
        beam: Beam's options, as on the command line after `--`.

    >>> config = {
    ...     "run": "runs/own",
    ...     "input": {"format": "tsv", "paths": ["pairs.tsv"]},
    ...     "score": {"scorers": ["trigram_overlap"]},
    ...     "select": {"by": "trigram_overlap", "deciles": None},
    ... }
    >>> run(config, "ingest", beam=["--direct_num_workers", "1"]).stages
    ['ingest']
    """
    if command not in TARGETS:
        known = ", ".join(map(str, TARGETS))
        raise UserError(f"{command} does not run stages; choose among {known}")
    if isinstance(config, Mapping):
        options = parse_config(dict(config), changes)
    else:
        options = read_config(str(config), changes)
    with redirect_stdout(sys.stderr):  # stdout belongs to the calling program
        run_stages(options, TARGETS[command], beam)
    return OpenedRun(options.run)


def score(
    references: Sequence[str] | pa.Array,
    translations: Sequence[str] | pa.Array,
    scorers: Sequence[str] = ("trigram_overlap",),
    *,
    language: str = "en",
    **resources: Any,
) -> pa.Table:
    """Score n pairs of sentences.

    Args:
        scorers: names of Paraloom's scorers (docs/scorers.md) or of plug-ins.
        language: the code of both sides' language.
        resources: paths of the scorers' resources, by name: `paragram="vectors.txt"`.

    Returns:
        Columns `reference_tokens`, `translation_tokens` (int16) and one for each scorer
        (float32), n rows.

    >>> score(["a dog runs fast ."], ["a dog runs ."])["trigram_overlap"].to_pylist()
    [0.5]
    """
    if "translation_score" in scorers:
        raise UserError("translation_score: comes from the translation model, not from texts")
    sources = [source_of(name) for name in scorers if name not in SCORERS]
    names = [name for name in scorers if name in SCORERS] + [source.name for source in sources]
    scorer = PairScorer(names, sources=sources, language=language, **resources)
    return pa.table(dict(scorer.score(as_texts(references), as_texts(translations))))
