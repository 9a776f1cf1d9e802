"""The tables of the pairwise GRU (Zhou, Huang & Ji 2017).

The phrase table is extracted from the corpus, and its pairs are split 80/10/10. The test is to find
the paraphrase of a phrase among 100 phrases. The development pairs select the epoch.

Table 1 needs `semeval2013/`, `turney2012/train.txt` and `turney2012/test.txt` in the folder of the
data. Without these data, Table 1 is left out.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from benchmarks.experiments.bootstrap import share
from benchmarks.experiments.cells import AnyCell, Cell, Inputs, Scores, digest
from benchmarks.experiments.tables import MINUS, Claim, Table, printed_claims, read_figures
from paraloom.beam_jobs import storage
from paraloom.beam_jobs.engine.shards import Shard, units
from paraloom.models.embeddings.comparison import ComparedModel, cosines
from paraloom.models.embeddings.model import SentenceEncoder, load_encoder
from paraloom.models.errors import UserError
from paraloom.models.text.vectors import load_vectors
from paraloom.papers.analyses import phrase_table
from paraloom.papers.analyses.phrase_tests import (
    read_semeval2013,
    read_turney2012,
    semeval2013,
    turney2012,
)
from paraloom.papers.options import PhrasesOptions, SystemOptions
from paraloom.papers.tasks import train
from paraloom.papers.tasks.phrases import read_phrase_data

_NEGATIVES = (9, 29, 99)
_SHARES = {"1%": (0.01, 60), "10%": (0.1, 30), "100%": (1.0, 12)}  # share of pairs, epochs


@dataclass(frozen=True, kw_only=True, eq=False)
class PhraseCell(Cell):
    """A model trained on phrases. The phrase table must allow choices among 100 phrases."""

    options: SystemOptions

    def _tests(self, inputs: Inputs) -> list[Path]:
        return []

    def _measured(
        self, model: SentenceEncoder, metrics: dict[str, Any], inputs: Inputs
    ) -> tuple[Scores, dict[str, Any]]:
        section, file = self.options.phrases, self.options.vector_file
        assert section is not None
        data = read_phrase_data(section, load_vectors(Path(file)).words if file else None)
        scores: Scores = {}
        compared = {"": model.named("model")}
        if not metrics["steps"]:  # the paper does not say how averages are compared
            compared["cosine "] = ComparedModel("cosine", model.embed, cosines)
        for prefix, each in compared.items():
            chosen = data.chosen(each)
            if chosen is None or data.development is None:
                raise UserError(f"{_table(inputs)}: too few phrases to choose among 100")
            scores[f"{prefix}development"] = data.development(each)
            scores[f"{prefix}chosen"] = share(chosen, "phrases")
        return scores, {}


@dataclass(frozen=True, kw_only=True, eq=False)
class PhraseTaskCell(AnyCell):
    """A row of Table 1, with one training for each of the two tasks."""

    semeval: SystemOptions
    turney: SystemOptions

    def _key(self, seed: int, inputs: Inputs) -> dict[str, Any]:
        both = (PhraseCell(options=of) for of in (self.semeval, self.turney))
        cells = [cell.cell_path(seed, inputs).stem for cell in both]
        return {"cells": cells, "tests": [digest(path) for path in _tasks(inputs)]}

    def _scores(self, seed: int, inputs: Inputs, folder: Path) -> tuple[Scores, dict[str, Any]]:
        compared = []
        for name, options in (("semeval", self.semeval), ("turney", self.turney)):
            train(options, folder / name, seed=seed, threads=1)
            model = load_encoder(folder / name)
            # The paper does not say how sums are compared.
            compare = cosines if options.model == "word-sum" else model.compare
            compared.append(ComparedModel(name, model.embed, compare))
        semeval, _, questions = _tasks(inputs)
        accuracy = semeval2013(compared[0], read_semeval2013(semeval))["accuracy"]
        scores = {"semeval": accuracy, **turney2012(compared[1], read_turney2012(questions))}
        return scores, {"options": self.semeval.chosen()}


def _tasks(inputs: Inputs) -> tuple[Path, Path, Path]:
    """Return SemEval's folder, and the files of Turney's training and test questions."""
    turney = inputs.sts.parent / "turney2012"
    return inputs.sts.parent / "semeval2013", turney / "train.txt", turney / "test.txt"


def prepare(chosen: Mapping[str, Table], inputs: Inputs) -> None:
    """Extract the phrase table of the corpus once, if a chosen table needs it."""
    if not {"pgru", "pgru-tasks"} & set(chosen) or _table(inputs).exists():
        return
    paths = sorted(inputs.corpus.glob("*.parquet"))
    shards = [
        Shard(str(path), pq.read_metadata(path).num_rows, storage.digest(data), len(data))
        for path, data in ((path, path.read_bytes()) for path in paths)
    ]
    phrase_table.count_phrases(units(shards, "phrases"), str(_table(inputs)), [])


def _table(inputs: Inputs) -> Path:
    return inputs.folder / "phrases.txt.gz"


def _options(inputs: Inputs, model: str = "gru", epochs: int = 12, **section: Any) -> SystemOptions:
    """Return the paper's options for the GRU, with options of the task in `section`."""
    return SystemOptions(
        task="phrases",
        phrases=PhrasesOptions(**{"table": str(_table(inputs)), **section}),
        model=model,
        cell="cho" if model == "gru" else "torch",
        hidden=200 if model == "gru" else None,
        initial_vectors=str(inputs.vectors),
        epochs=epochs,
        batch_size=128,
    )


def tables(inputs: Inputs) -> dict[str, Table]:
    """Return all tables by name, with Table 1 if its data exist."""
    found = {"pgru": _figure_2(inputs)}
    if all(path.exists() for path in _tasks(inputs)):
        found["pgru-tasks"] = _table_1(inputs)
    return found


def _figure_2(inputs: Inputs) -> Table:
    rows = {
        f"PGRU, k = {k}, {size}": PhraseCell(
            options=_options(inputs, epochs=epochs, samples=k, fraction=share)
        )
        for size, (share, epochs) in _SHARES.items()
        for k in _NEGATIVES
    }
    untrained = PhraseCell(options=_options(inputs, "word-avg", dropout=0.0))
    trained = _options(inputs, "word-avg", dropout=0.0, train_words=True)
    rows |= {
        "AVG, cosine": untrained,
        "AVG, dot": untrained,
        "AVG, trained, k = 29 (ours)": PhraseCell(options=trained),
    }
    claims = [
        Claim(f"PGRU, k = {k}, 100%", f"AVG, {how}")
        for k in _NEGATIVES
        for how in ("cosine", "dot")
    ]
    claims += [
        Claim(f"PGRU, k = {k}, {more}", f"PGRU, k = {k}, {fewer}")
        for k in _NEGATIVES
        for fewer, more in pairwise(_SHARES)
    ]
    by_size = [[f"PGRU, k = {k}, {size}" for k in _NEGATIVES] for size in _SHARES]
    claims += [Claim(more, fewer) for of in by_size for fewer, more in pairwise(of)]
    claims += [
        Claim(f"{middle}{MINUS}{small}", f"{large}{MINUS}{middle}", figures="3.1: more moderate")
        for small, middle, large in by_size
    ]
    return Table(
        "Pairwise GRU, Figure 2: the paraphrase of a phrase, found among 100",
        rows,
        claims,
        measures={"development": "development", "chosen": "correct"},
        prefixes={"AVG, cosine": "cosine "},
        unit="Of 100 choices",
        note="12 epochs with all pairs, 30 with 10%, 60 with 1%. Batches of 128, 200 units. Word "
        "vectors have 300 dimensions, and are not trained with the GRU.",
        paper={"AVG, cosine": {"chosen": 88}, "AVG, dot": {"chosen": 88}},
    )


def _table_1(inputs: Inputs) -> Table:
    semeval, turney, _ = map(str, _tasks(inputs))

    def row(model: str, section: str) -> PhraseTaskCell:
        first, second = (
            _options(inputs, model, 40, **{section: task}) for task in (semeval, turney)
        )
        return PhraseTaskCell(semeval=first, turney=second)

    rows = {
        "SUM": row("word-sum", "development"),
        "GRU(PPDB)": row("gru", "development"),
        "GRU, task-specific": row("gru", "table"),
    }
    measures = {"semeval": "SemEval2013"}
    measures |= {f"{number} choices": f"Turney2012({number})" for number in (5, 10)}
    paper = read_figures("pgru-tasks")
    pairs = [(better, worse) for worse, better in pairwise(rows)]
    return Table(
        "Pairwise GRU, Table 1: phrase similarity tasks",
        rows,
        printed_claims(pairs, paper, stated=pairs),
        measures=measures,
        paper=paper,
        unit="Accuracy in %",
    )
