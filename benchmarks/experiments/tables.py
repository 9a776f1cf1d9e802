"""The tables: their cells, and the claims of the papers.

W&G is Wieting & Gimpel 2017, ParaNMT Wieting & Gimpel 2018. As in W&G, vectors have 300
dimensions and start from PARAGRAM, mini-batches have 100 pairs, and negatives come from the
mini-batch; in the tables of ParaNMT they come from mega-batches. Each training has one epoch, so
that all tables together take less than two hours.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.experiments.cells import Cell, Scores
from models.embeddings.options import EmbeddingOptions

Found = Mapping[Any, Sequence[Scores]]
"""Scores by cell, one entry per seed."""


@dataclass(frozen=True)
class Claim:
    """A claim of the paper: one row is better than another."""

    better: str
    worse: str
    printed: Mapping[str, float | None] = field(default_factory=dict)
    """The measures that the paper claims it by, with the difference that it prints (None: only in a
    figure); empty: all reported measures."""
    figures: str = ""
    """The paper's figures of both rows by its own measure, if that is none of the table."""


def printed_claims(
    pairs: Iterable[tuple[str, str]], paper: Mapping[str, Mapping[str, float]]
) -> list[Claim]:
    """The order of rows as the paper prints them: a claim for each direction that occurs."""
    claims = []
    for rows in pairs:
        for better, worse in (rows, rows[::-1]):
            found = {
                measure: round(figure - paper[worse][measure], 4)
                for measure, figure in paper[better].items()
                if measure in paper[worse] and measure not in (*ERRORS, "development")
            }
            if ahead := {measure: gain for measure, gain in found.items() if gain > 0}:
                claims.append(Claim(better, worse, ahead))
    return claims


ERRORS = ("mse",)
MEASURES = {"development": "STS 2012–2014", "sts_2015": "STS 2015", "sick": "SICK trial"}


@dataclass(frozen=True)
class Table:
    """Rows of cells by name, and claims about them."""

    title: str
    rows: Mapping[str, Any]
    claims: list[Claim]
    measures: Mapping[str, str] = field(default_factory=lambda: MEASURES)
    """Heads of the columns; `development` is measured on the development data."""
    prefixes: Mapping[str, str] = field(default_factory=dict)
    """For rows that share a cell: the prefix of each row's own measures."""
    unit: str = "Pearson × 100"
    paper: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Figures of the paper, by row and measure."""
    paper_measures: Mapping[str, str] = field(default_factory=dict)
    """Heads of columns with figures of the paper by measures that only the paper has."""
    transposed: bool = False
    """Write a column for each row."""

    @property
    def reported(self) -> list[str]:
        """The measures that claims are judged by: no development data, no errors."""
        return [m for m in self.measures if "development" not in m and m not in ERRORS]

    def values(self, row: str, measure: str, found: Found) -> list[float]:
        """The scores of a row, one per seed; NaN where the data of a measure are missing."""
        key = self.prefixes.get(row, "") + measure
        return [scores.get(key, math.nan) for scores in found[self.rows[row]]]


def tables(vectors: Path) -> dict[str, Table]:
    """All tables by name; `vectors` are the initial word vectors (PARAGRAM)."""
    words = EmbeddingOptions(initial_vectors=str(vectors), epochs=1, mega_batch=1, loaders=0)
    names = {
        "AVG": "word-avg",
        "LSTM": "lstm",
        "LSTM Avg": "lstm-avg",
        "BiLSTM Avg": "bilstm-avg",
        "GRAN": "gran",
        "GRAN-2": "gran-2",
        "GRAN-3": "gran-3",
        "GRAN-4": "gran-4",
        "GRAN-5": "gran-5",
        "BiGRAN": "bigran",
    }
    plain = {
        name: words.replace(model=model, cell="peephole", combine="tanh")
        for name, model in names.items()
    }
    return {
        "wg1": _wg1(plain),
        "wg2": _wg2(plain),
        "wg3": _wg3(plain),
    }


def _wg1(plain: dict[str, EmbeddingOptions]) -> Table:
    models = ("AVG", "LSTM", "LSTM Avg")
    rows = {f"{name}, phrases": Cell(options=plain[name], pairs="phrases") for name in models}
    rows |= {f"{name}, sentences": Cell(options=plain[name]) for name in models}
    claims = [Claim(f"{name}, sentences", f"{name}, phrases") for name in models]
    claims += [Claim(f"LSTM Avg, {pairs}", f"LSTM, {pairs}") for pairs in ("phrases", "sentences")]
    claims += [Claim(f"AVG, {pairs}", f"LSTM Avg, {pairs}") for pairs in ("phrases", "sentences")]
    title = "W&G Table 1: last state or average; phrase pairs or sentence pairs"
    return Table(title, rows, claims)


def _wg2(plain: dict[str, EmbeddingOptions]) -> Table:
    noises = {
        "": {},
        ", dropout": {"dropout": 0.3},
        ", word dropout": {"word_dropout": 0.3},
        ", scrambling": {"scramble": 0.5},
        ", dropout and scrambling": {"dropout": 0.3, "scramble": 0.5},
    }
    rows = {
        f"{name}{noise}": Cell(options=plain[name].replace(**keys))
        for name in ("AVG", "LSTM", "LSTM Avg")
        for noise, keys in noises.items()
        if not (name == "AVG" and "scramble" in keys)  # an average ignores word order
    }
    claims = [
        Claim(f"{row}", row.split(",")[0]) for row in rows if row.startswith("LSTM") and "," in row
    ]
    claims += [Claim("LSTM Avg, dropout and scrambling", "AVG")]
    return Table("W&G Table 2: regularisers", rows, claims)


def _wg3(plain: dict[str, EmbeddingOptions]) -> Table:
    regular = {"dropout": 0.3, "scramble": 0.5}
    rows = {
        name: Cell(options=options.replace(**regular))
        for name, options in plain.items()
        if name not in ("LSTM", "AVG")
    }
    rows = {"AVG": Cell(options=plain["AVG"]), **rows}
    others = [name for name in rows if name != "GRAN"]
    claims = [Claim("GRAN", other) for other in others] + [Claim("LSTM Avg", "AVG")]
    return Table("W&G Table 3: gated recurrent averaging networks", rows, claims)
