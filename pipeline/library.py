"""Functions for notebooks and programs. docs/library.md describes them."""

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
from paraloom.models.errors import UserError, in_one_line
from paraloom.models.languages import no_code
from paraloom.models.scorers import SCORERS, PairScorer
from paraloom.models.scorers.plugins import source_of
from paraloom.models.text.tokens import as_texts
from paraloom.pipeline.config.read import parse_config, read_config
from paraloom.pipeline.run.folder import finished, shards_of
from paraloom.pipeline.run.make import run_stages
from paraloom.pipeline.run.notices import notify, of_similarities
from paraloom.pipeline.run.records import PairsRecord, StageRecord
from paraloom.pipeline.stages import TARGETS, folder_of, stage_in

if TYPE_CHECKING:
    from paraloom.models.embeddings.model import SentenceEncoder


class OpenedRun:
    """A run folder, opened to read its pairs, its records and its encoder.

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
        """The names of the finished stages, in the order in which they run."""
        return list(self._record.stages)

    def record(self, stage: str) -> StageRecord:
        """Return the record of a finished stage. `stage` is its name or its folder's name."""
        stage = stage_in(stage)
        if stage not in self._record.stages:
            finished = ", ".join(self.stages)
            raise UserError(f"{self.folder}: {stage} is not finished; finished stages: {finished}")
        return self._record.stages[stage]

    def pairs(self, stage: str = "select") -> ds.Dataset:
        """Return the pairs of a stage as an Arrow data set, which reads rows lazily.

        docs/columns.md lists the columns. Part files in an object store are downloaded.
        """
        if not isinstance(self.record(stage), PairsRecord):
            raise UserError(f"{self.folder}: the stage {stage} makes no pairs")
        paths = [shard.path for shard in shards_of(self.folder, stage)]
        if storage.is_remote(self.folder):
            folder = remote.localise(storage.join(self.folder, folder_of(stage)))
            paths = [str(Path(folder, Path(path).name)) for path in paths]
        with in_one_line(f"{self.folder}: the pairs of {stage} cannot be read"):
            return ds.dataset(paths, format="parquet")

    def encoder(self) -> SentenceEncoder:
        """Load the encoder of the run. If the run has several rounds, load the best encoder."""
        from paraloom.models.embeddings.model import load_encoder

        self.record("embeddings")
        return load_encoder(remote.localise(storage.join(self.folder, "embeddings")))


def open_run(folder: str | Path, beam: Sequence[str] = ()) -> OpenedRun:
    """Open a run folder. `beam` contains Beam's options for an object store."""
    connect(beam, [str(folder)])
    return OpenedRun(str(folder))


def run(
    config: str | Path | Mapping[str, Any],
    command: str = "corpus",
    *,
    changes: Sequence[str] = (),
    beam: Sequence[str] = (),
) -> OpenedRun:
    """Run the stages that are not up to date, and open the run. Progress is printed on stderr.

    Args:
        config: the path of a YAML file, "sample", or the values of a configuration.
        command: a command that runs stages, such as `ingest`, `select` or `corpus`.
        changes: changes of single keys, `key.sub=value`, as after `--set` on the command line.
        beam: Beam's options, as after `--` on the command line.

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
    with redirect_stdout(sys.stderr):  # only the calling program writes to stdout
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
    """Compute scores of n pairs of sentences.

    Args:
        scorers: names of scorers (see docs/scorers.md) or plug-ins. Scorers that read a source, an
            id or `translation_score` work only in a run.
        language: the language code of both sides.
        resources: paths of the resources that scorers read, such as `paragram="vectors.txt"`.

    Returns:
        A table of n rows with the int16 columns `reference_tokens` and `translation_tokens`, and
        a float32 column for each scorer.

    >>> score(["a dog runs fast ."], ["a dog runs ."])["trigram_overlap"].to_pylist()
    [0.5]
    """
    scorers = [scorers] if isinstance(scorers, str) else scorers
    if "translation_score" in scorers:
        raise UserError("translation_score: comes from the translation model, not from texts")
    if problem := no_code(language):
        raise UserError(f"language: {problem}")
    sources = [source_of(name) for name in scorers if name not in SCORERS]
    names = [name for name in scorers if name in SCORERS] + [source.name for source in sources]
    scorer = PairScorer(names, sources=sources, language=language, **resources)
    scores = pa.table(dict(scorer.score(as_texts(references), as_texts(translations))))
    if (name := "paragram_similarity") in names:
        notify(of_similarities(scores[name].to_numpy(), "all pairs"))
    return scores
