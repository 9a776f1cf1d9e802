"""Cells and table of phrases: the pairwise GRU (Zhou, Huang & Ji 2017) beside the average.

The phrase table is extracted from the corpus. A tenth of its phrases is held out; the test is to
find the paraphrase of a held-out phrase among 100 phrases. The number of epochs of each model was
tuned with all of the data, by the same test on phrases held out from the training phrases.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

from beam_jobs.analysis import phrase_table
from beam_jobs.io import storage
from beam_jobs.io.shards import Shard, units
from benchmarks.experiments.cells import Inputs, Scores, save_scores, task_cell
from benchmarks.experiments.tables import Claim, Table
from models.embeddings import tasks
from models.embeddings.options import EmbeddingOptions
from models.embeddings.tasks.options import PhrasesOptions
from models.errors import UserError

VERSION = 1  # bump when cells have other scores: all cells are then computed again
_MODELS = {"PGRU": ("gru", 30), "AVG": ("word-avg", 100)}  # and epochs
_NEGATIVES = (9, 29, 99)
_SHARES = (0.01, 0.1, 1.0)


@dataclass(frozen=True, kw_only=True, eq=False)
class PhraseCell:
    """A model trained on phrases; its options name the table."""

    options: EmbeddingOptions


def cell_path(cell: PhraseCell, seed: int, inputs: Inputs) -> Path:
    """The file of a cell's scores; its name is a hash of what they depend on."""
    return task_cell(cell.options, inputs, version=VERSION, seed=seed)


def run(cell: PhraseCell, seed: int, inputs: Inputs, path: Path) -> Scores:
    """Train on one thread, and write the scores to `path`.

    Raises:
        UserError: the table has too few phrases to choose among 100.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        metrics = tasks.train(cell.options, Path(folder) / "model", seed=seed, threads=1)
    if metrics["choose_among_100"] is None:
        raise UserError(f"{_table(inputs)}: too few phrases to choose among 100")
    scores = {"chosen": metrics["choose_among_100"]}
    save_scores(path, scores, cell.options, seed=seed, metrics=metrics)
    return scores


def prepare(chosen: Mapping[str, Table], inputs: Inputs) -> None:
    """Extract the phrase table of the corpus once, if a chosen table needs it."""
    cells = (cell for table in chosen.values() for cell in table.rows.values())
    if not any(isinstance(cell, PhraseCell) for cell in cells) or _table(inputs).exists():
        return
    shards = [
        Shard(str(path), pq.read_metadata(path).num_rows, storage.digest(path.read_bytes()))
        for path in sorted(inputs.corpus.glob("*.parquet"))
    ]
    phrase_table.run(units(shards, "phrases"), str(_table(inputs)), [])


def _table(inputs: Inputs) -> Path:
    return inputs.folder / "phrases.txt.gz"


def tables(inputs: Inputs) -> dict[str, Table]:
    """The table by its name."""
    settings = {f"k = {k}": (k, 1.0) for k in _NEGATIVES}
    settings |= {f"k = 29, {share:.0%} of the data": (29, share) for share in _SHARES[:-1]}
    rows = {
        f"{name}, {setting}": PhraseCell(
            options=EmbeddingOptions(
                task="phrases",
                phrases=PhrasesOptions(table=str(_table(inputs)), samples=samples, fraction=share),
                model=model,
                initial_vectors=str(inputs.folder / "paragram.txt"),
                epochs=epochs,
            )
        )
        for setting, (samples, share) in settings.items()
        for name, (model, epochs) in _MODELS.items()
    }
    claims = [Claim(f"PGRU, k = {k}", f"AVG, k = {k}") for k in _NEGATIVES]
    title = "Pairwise GRU: the paraphrase of a held-out phrase, found among 100"
    return {
        "pgru": Table(title, rows, claims, measures={"chosen": "correct"}, unit="Of 100 choices")
    }
