"""Stage `exclude`: reads the evaluation sentences that the corpus must not contain."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pydantic import Field

from paraloom.beam_jobs import storage
from paraloom.beam_jobs.storage import remote
from paraloom.beam_jobs.transforms.equal_texts import normalised
from paraloom.beam_jobs.transforms.exclusion import SENTENCES, VECTORS, embed
from paraloom.models.embeddings.datasets.sentences import sentence_blocks, sentence_files
from paraloom.models.errors import UserError
from paraloom.models.files import atomic_folder, digest
from paraloom.models.scorers.learned.sentence_similarity import open_sentence_model
from paraloom.models.sentence_models import find_model
from paraloom.pipeline.config import Config
from paraloom.pipeline.run.records import StageRecord
from paraloom.pipeline.run.run import Run, excluding_model
from paraloom.pipeline.run.stage import folder_is_valid

is_valid = folder_is_valid


class ExcludeRecord(StageRecord, stage="exclude"):
    """The record of the stage `exclude`, with the number of sentences in each data set."""

    data_sets: dict[str, int] = Field(default_factory=dict)


_SCHEMA = pa.schema({"data_set": pa.string(), "row": pa.int64(), "text": pa.string()})


def read_data_sets(paths: Sequence[str]) -> pa.Table:
    """Return the distinct sentences of each data set, each with the row of its first occurrence."""
    found = []
    for name, file in sentence_files(*paths).items():
        parts = [
            pa.table([[name] * len(texts), block.rows[at], texts], _SCHEMA)
            for block in sentence_blocks(file)
            for at, texts in block.columns
        ]
        whole = pa.concat_tables(parts).sort_by("row")
        normal = normalised(whole["text"].combine_chunks())
        whole = whole.filter(pc.not_equal(normal, ""))
        codes = normal.filter(pc.not_equal(normal, "")).dictionary_encode().indices.to_numpy()
        found.append(whole.take(pa.array(np.sort(np.unique(codes, return_index=True)[1]))))
    table = pa.concat_tables(found)
    if not len(table):
        raise UserError(f"{', '.join(paths)}: no sentences in these files")
    return table


def sentences_of(table: pa.Table) -> dict[str, int]:
    """Count the distinct sentences of each data set."""
    counts = pc.value_counts(table["data_set"].combine_chunks())
    return dict(zip(*(of.to_pylist() for of in counts.flatten()), strict=True))


def _model(config: Config) -> Path | None:
    if (name := excluding_model(config)) is None:
        return None
    return find_model(remote.localise(name), "score.sentence_model", "modules.json")


def fingerprint(run: Run) -> Any:
    """Return the digests of the files, and the digest of the model that encodes sentences."""
    files = {
        name: digest(file) for name, file in sentence_files(*run.config.select.exclude).items()
    }
    return [files, digest(model) if (model := _model(run.config)) else None]


def make(run: Run, key: str) -> ExcludeRecord:
    """Read the data sets, and encode their sentences for `select.exclude_similarity`."""
    table = read_data_sets(run.config.select.exclude)
    with atomic_folder(run.local_folder("exclude")) as folder:
        pq.write_table(table, folder / SENTENCES, compression="zstd")
        if model := _model(run.config):
            texts = table["text"].combine_chunks()
            np.save(folder / VECTORS, embed(open_sentence_model(model), texts))
    return ExcludeRecord(data_sets=sentences_of(table), digest=run.publish("exclude"))


def check(config: Config) -> None:
    """Check the model of `select.exclude_similarity`, unless it is in an object store."""
    if (name := excluding_model(config)) and not storage.is_remote(name):
        _model(config)
