"""Tables 1 to 4 of W&G (Wieting & Gimpel 2017): transfer from paraphrase pairs to STS and SICK.

AVG has 7 epochs. To save time, all other encoders have one epoch. Rates of dropout and scrambling
are the lowest of the paper's grids. The paper chose its settings on all data sets (`oracle`) or on
the sets of 2016 (`2016 STS`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

from benchmarks.experiments.cells import WORD_PAIRS, AnyCell, Cell, Inputs, Scores, figure
from benchmarks.experiments.tables import (
    MEASURES,
    MINUS,
    Claim,
    Figures,
    Pairs,
    Table,
    printed_claims,
    read_figures,
)
from paraloom.models.embeddings.applications.evaluation import correlation
from paraloom.models.embeddings.datasets.similarity import SEMEVAL
from paraloom.models.embeddings.vocabulary import Tags
from paraloom.papers.options import SystemOptions

ENCODERS = {
    "AVG": "word-avg",
    "LSTM": "lstm",
    "LSTM Avg": "lstm-avg",
    "BiLSTM Avg": "bilstm-avg",
    **{name: name.lower() for name in ("GRAN", "GRAN-2", "GRAN-3", "GRAN-4", "GRAN-5", "BiGRAN")},
    "GRAN without a gate, tanh": "gran-tanh",
    "GRAN without a gate, ReLU": "gran-relu",
}
DROPOUT, SCRAMBLE = 0.2, 0.25  # grids of the paper: 0.2, 0.4, 0.6 and 0.25, 0.5, 0.75
REGULARISERS: dict[str, dict[str, Any]] = {
    "L2": {"lambda_c": 1e-5},
    "dropout": {"dropout": DROPOUT},
    "word dropout": {"word_dropout": DROPOUT},
    "scrambling": {"scramble": SCRAMBLE},
    "dropout and scrambling": {"dropout": DROPOUT, "scramble": SCRAMBLE},
}
BOTH = "dropout and scrambling"
_NOTE = (
    "27,359 pairs of captions, 1 epoch (AVG 7), batches of 100, 300 units, M = 1. The paper's "
    "figures are means over 22 data sets. Our means are over the data sets in the header."
)
_PAPER = {"oracle": "W&G, oracle", "sts_2016": "W&G, 2016 STS"}


@dataclass(frozen=True, kw_only=True)
class CorrelationCell(AnyCell):
    """The correlation of two encoders' results on the data sets of Table 4 (4.2)."""

    first: Cell
    second: Cell

    def _key(self, seed: int, inputs: Inputs) -> Mapping[str, Any]:
        both = [cell.cell_path(seed, inputs).stem for cell in (self.first, self.second)]
        return {"correlation": both}

    def _scores(self, seed: int, inputs: Inputs, folder: Path) -> tuple[Scores, dict[str, Any]]:
        return _correlated(*(cell.known(seed, inputs) for cell in (self.first, self.second))), {}


def _correlated(first: Scores, second: Scores) -> Scores:
    """Correlate the figures, and each of their resamples, over the common data sets of Table 4."""
    sets = [name for name in read_figures("wg4") if name in first and name in second]
    sides = [np.array([np.atleast_1d(of[name]) for name in sets]).T for of in (first, second)]
    found = np.array([correlation(*pair)[:2] for pair in zip(*sides, strict=True)])
    return {"pearson": found[:, 0], "spearman": found[:, 1]}


def options_of(name: str, vectors: Path) -> SystemOptions:
    """Return the paper's settings for one of `ENCODERS`. `vectors` has the initial vectors."""
    return SystemOptions(
        model=ENCODERS[name],
        cell="peephole",
        combine="tanh",
        initial_vectors=str(vectors),
        negatives="same",
        mega_batch=1,
        epochs=7 if name == "AVG" else 1,
    )


def as_printed(pairs: Pairs, paper: Figures, key: str, stated: Pairs = ()) -> list[Claim]:
    """Make claims about pairs of rows, in the order of the paper's figures by the measure `key`.

    Pairs with equal figures, or with a row that the paper does not have, are left out.

    Args:
        stated: the pairs (better, worse) that the text of the paper orders, too.
    """
    claims = []
    for rows in pairs:
        figures = [paper.get(row, {}).get(key) for row in rows]
        if None in figures or figures[0] == figures[1]:
            continue
        better, worse = sorted(rows, key=lambda row: -paper[row][key])
        both = [m for m in paper[better] if m in paper[worse]]
        text = ", ".join(f"{_sign(paper[better][m], paper[worse][m])}" for m in reversed(both))
        of_text = (better, worse) in stated
        claims.append(Claim(better, worse, figures=text, stated=of_text))
    return claims


def _sign(first: float, second: float) -> str:
    sign = ">" if first > second else "<" if first < second else "="
    return f"{first:g} {sign} {second:g}"


def tables(inputs: Inputs) -> dict[str, Table]:
    """Return the tables by name."""
    plain = {name: options_of(name, inputs.vectors) for name in ENCODERS}
    return {
        "wg1": _wg1(plain),
        "wg2": _wg2(plain),
        "wg3": _wg3(plain),
        "wg4": _wg4(plain, inputs),
        "wg4-correlation": _correlations(plain, inputs),
    }


def _wg1(plain: dict[str, SystemOptions]) -> Table:
    """Return Table 1, with word pairs of PPDB, and the corpus instead of SimpWiki.

    The encoders have the tags that help according to footnote 4.
    """
    models = ("AVG", "LSTM", "LSTM Avg")
    words, sentences = sources = ("PPDB's word pairs", "sentences")
    paper = read_figures("wg1")
    rows = {}
    for row in paper:
        name, source = row.split(", ")
        tags = _TAGS.get(row, (False, ""))[0]
        rows[row] = Cell(options=plain[name].replace(tags=tags), pairs=_PAIRS[source])
    compared = [(f"{name}, {sentences}", f"{name}, {words}") for name in models]
    for one, other in (("LSTM Avg", "LSTM"), ("AVG", "LSTM Avg")):
        compared += [(f"{one}, {source}", f"{other}, {source}") for source in sources]
    claims = as_printed(compared, paper, "sts_2016", stated=compared)
    wide, narrow = (f"AVG, {source}{MINUS}LSTM, {source}" for source in (words, sentences))
    claims.append(Claim(wide, narrow, figures="4.1.2: 13.5 > 9.1"))
    for row, (_, gain) in _TAGS.items():
        name, source = row.split(", ")
        rows[f"{row}, no tags"] = Cell(options=plain[name], pairs=_PAIRS[source])
        claims.append(Claim(row, f"{row}, no tags", figures=f"footnote 4: {gain}"))
    title = "W&G Table 1: last state or average; word pairs (the paper: phrase pairs) or sentences"
    return _table(title, rows, claims, paper)


_PAIRS = {"PPDB's word pairs": WORD_PAIRS, "sentences": ""}
_TAGS: dict[str, tuple[Tags, str]] = {
    "LSTM, PPDB's word pairs": ("end", "+1.6"),
    "LSTM Avg, PPDB's word pairs": ("start", "+0.9"),
    "LSTM, sentences": ("end", "+6"),
    "LSTM Avg, sentences": ("end", "+0.3"),
}
"""The tag that helps the encoder of a row, and the gain in the paper (footnote 4)."""


def _wg2(plain: dict[str, SystemOptions]) -> Table:
    paper = read_figures("wg2")
    rows = {name: _regular(name, plain) for name in paper}
    for name in ("AVG", f"LSTM Avg, {BOTH}"):  # as in the authors' code
        options = rows[name].options.replace(negatives="both")
        rows[f"{name}, negatives of both sides (ours)"] = Cell(options=options)
    pairs = [(name, name.split(",")[0]) for name in paper if "," in name]
    both = f"LSTM Avg, {BOTH}"
    pairs += [(both, "AVG"), (f"BiLSTM Avg, {BOTH}", both), ("LSTM Avg", "LSTM")]
    most = [("LSTM Avg", f"LSTM, {single}") for single in REGULARISERS if single != BOTH]
    improved = (f"LSTM, {BOTH}", "LSTM, word dropout", "LSTM, scrambling", "LSTM Avg")
    stated = [(better, "LSTM") for better in improved]
    stated += [("AVG", "AVG, dropout"), ("AVG", "AVG, word dropout"), (both, "AVG"), (both, "LSTM")]
    claims = as_printed([*pairs, (both, "LSTM"), *most], paper, "sts_2016", [*stated, *most])
    return _table("W&G Table 2: regularisers", rows, claims, paper)


def _wg3(plain: dict[str, SystemOptions]) -> Table:
    paper = read_figures("wg3")
    ungated = [name for name in ENCODERS if "without" in name]
    rows = {
        name: _regular(f"{name}, {BOTH}" if "," not in name else name.split(",")[0], plain)
        for name in paper
    }
    rows |= {name: Cell(options=regularised(plain[name], BOTH)) for name in ungated}
    pairs = [("GRAN", name) for name in paper if name != "GRAN"]
    stated = [pair for pair in pairs if pair[1] not in ("GRAN, no regulariser", "BiGRAN")]
    claims = as_printed(pairs, paper, "sts_2016", stated)
    claims += [Claim("GRAN", name, figures="footnote 2") for name in ungated]
    return _table("W&G Table 3: gated recurrent averaging networks", rows, claims, paper)


_WG4_MODELS = ("LSTM Avg", "AVG", "GRAN")
_WG4_ROWS = {name: name if name == "AVG" else f"{name}, {BOTH}" for name in _WG4_MODELS}
"""The encoder and the regulariser of each row."""


def _figures_at_hand(inputs: Inputs) -> dict[str, dict[str, float]]:
    """Return, by row, the paper's figures for the available data sets, and their means by year."""
    of_sts = {f"STS {year} {name}" for year, names in SEMEVAL.items() for name in names}
    there = {f"STS {path.parent.name} {path.stem}" for path in inputs.sts.glob("*/*.tsv")}
    sets = {n: of for n, of in read_figures("wg4").items() if n not in of_sts or n in there}
    found: dict[str, dict[str, float]] = {name: {} for name in _WG4_MODELS}
    for model, figures in found.items():
        for year in dict.fromkeys(name[:8] for name in sets if name in of_sts):
            of_year = {name: of[model] for name, of in sets.items() if name.startswith(year)}
            figures |= of_year | {year: round(mean(of_year.values()), 1)}
        figures |= {name: of[model] for name, of in sets.items() if name not in of_sts}
    return found


def _wg4(plain: dict[str, SystemOptions], inputs: Inputs) -> Table:
    rows = {name: _regular(row, plain) for name, row in _WG4_ROWS.items()}
    paper = _figures_at_hand(inputs)
    measures = {key: key if key.count(" ") > 1 else f"{key}, mean" for key in paper["AVG"]}
    measures["sick"] = "SICK trial (W&G: test)"
    glosses = [key for key in ("STS 2013 OnWN", "STS 2013 FNWN") if key in measures]
    claims = [
        Claim(name, "AVG", {key: round(paper[name][key] - paper["AVG"][key], 1) for key in glosses})
        for name in ("LSTM Avg", "GRAN")
        if glosses
    ]
    note = "All means by year are over the data sets of the table."
    title = "W&G Table 4: by data set"
    return Table(title, rows, claims, measures, paper=paper, transposed=True, note=note)


def _correlations(plain: dict[str, SystemOptions], inputs: Inputs) -> Table:
    cells = {name: _regular(row, plain) for name, row in _WG4_ROWS.items()}
    printed = _figures_at_hand(inputs)
    rows, paper = {}, {}
    for a, b in (("LSTM Avg", "GRAN"), ("LSTM Avg", "AVG"), ("GRAN", "AVG")):
        rows[f"{a}, {b}"] = CorrelationCell(first=cells[a], second=cells[b])
        both = _correlated(dict(printed[a]), dict(printed[b]))
        paper[f"{a}, {b}"] = {m: round(figure(value), 1) for m, value in both.items()}
    closest, other, last = rows
    pairs = [(closest, other), (closest, last), (last, other)]  # the last pair is of 5.1
    return Table(
        "W&G 4.2: correlation of the results by data set",
        rows,
        printed_claims(pairs, paper, stated=pairs),
        measures={"pearson": "r", "spearman": "ρ"},
        paper=paper,
        unit="× 100",
        note="The paper prints no correlations. Its figures here are computed from its Table 4, "
        "over the same data sets.",
    )


def _regular(name: str, plain: dict[str, SystemOptions]) -> Cell:
    """Return the cell of a row `encoder` or `encoder, regulariser`."""
    encoder, _, regulariser = name.partition(", ")
    return Cell(options=regularised(plain[encoder], regulariser))


def regularised(options: SystemOptions, regulariser: str) -> SystemOptions:
    """Return options with one of `REGULARISERS`, or unchanged options if it is ""."""
    return options.replace(**REGULARISERS[regulariser]) if regulariser else options


def _table(title: str, rows: dict[str, Cell], claims: list[Claim], paper: Figures) -> Table:
    heads = {key: head for key, head in _PAPER.items() if any(key in of for of in paper.values())}
    note = _NOTE if "Table 1" in title else "Settings as in Table 1."
    return Table(title, rows, claims, MEASURES, paper=paper, paper_measures=heads, note=note)
