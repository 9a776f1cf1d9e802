"""Cells and tables of contiguous text: "Decoding Decoders" (Zhelezniak et al. 2018).

Encoders and decoders are BOW or GRU. The experiments are small, so that each cell takes only a few
minutes. The data are 21,000 sentences of three books. The paper has about 70 million sentences.
Decoders predict the 1000 most frequent words. Word vectors start from PARAGRAM vectors, which also
cover other words (vocabulary expansion). In the paper, word vectors start at random.

STS 2012 to 2014 are development data, on which the learning rate was tuned. They also select the
number of decoder steps, separately for the dot product and the cosine. STS 2015, SICK trial and the
transfer tasks are only reported.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from benchmarks.experiments.bootstrap import resampled
from benchmarks.experiments.cells import (
    DEVELOPMENT,
    Inputs,
    Scores,
    TaskCell,
    digest,
    figure,
    transfer_folders,
    transfer_scores,
)
from benchmarks.experiments.tables import Claim, Table, printed_claims
from paraloom.models.embeddings.datasets.similarity import read_sick, read_sts
from paraloom.models.embeddings.model import SentenceEncoder
from paraloom.papers.analyses.decoder_spaces import Correlations, Space, compare_spaces, in_space
from paraloom.papers.encoders.context import Vector
from paraloom.papers.options import ContextOptions, SystemOptions

BOOKS = ("holmes.txt", "pride.txt", "cities.txt")
_STS: dict[str, dict[str, tuple[float, ...]]] = {
    "dot": {
        "GRU–BOW, encoder": (28.6, 38.1, 36.5, 26.2, 39.2),
        "GRU–GRU, encoder": (26.7, 37.1, 35.7, 37.9, 37.9),
        "GRU–GRU, mean": (33.0, 42.0, 43.8, 41.9, 42.6),
        "GRU–GRU, concat": (33.5, 41.1, 41.3, 41.4, 41.9),
        "BOW–BOW, encoder": (35.1, 41.8, 44.2, 45.5, 53.5),
        "BOW–GRU, encoder": (31.0, 36.5, 39.6, 41.2, 46.9),
        "BOW–GRU, mean": (39.4, 46.9, 49.0, 49.5, 53.0),
        "BOW–GRU, concat": (42.2, 47.8, 49.8, 51.2, 54.4),
    },
    "cosine": {
        "GRU–BOW, encoder": (46.6, 37.6, 47.8, 42.4, 45.4),
        "GRU–GRU, encoder": (32.3, 32.0, 34.5, 40.2, 40.9),
        "GRU–GRU, concat": (41.9, 42.6, 46.6, 49.7, 50.3),
        "BOW–BOW, encoder": (49.7, 52.6, 57.6, 60.4, 60.5),
        "BOW–GRU, encoder": (50.8, 48.3, 57.5, 64.4, 64.1),
        "BOW–GRU, concat": (52.1, 49.1, 56.1, 62.7, 62.5),
    },
}
"""Tables 1 and 5 (dot) and Table 4 (cosine): Pearson on STS 2012 to 2015, then Spearman on STS
2015."""

_TASKS = ("MR", "SST", "TREC", "MRPC", "SICK-R", "SICK-E")
_FIGURES = {
    "GRU–BOW, encoder": (75.78, 81.99, 84.60, 70.55, 80, 78.81),
    "GRU–GRU, encoder": (77.06, 82.65, 86.60, 71.94, 83, 81.10),
    "GRU–GRU, mean": (76.55, 81.11, 84.80, 73.51, 84, 78.22),
    "GRU–GRU, concat": (76.20, 80.83, 87.20, 71.59, 82, 80.35),
    "BOW–BOW, encoder": (76.16, 81.66, 84.20, 71.07, 84, 80.58),
    "BOW–GRU, encoder": (76.05, 80.83, 87.20, 72.99, 82, 78.87),
    "BOW–GRU, mean": (75.85, 80.12, 84.00, 71.13, 81, 77.76),
    "BOW–GRU, concat": (77.27, 81.82, 89.60, 73.68, 85, 82.26),
}
_TRANSFER = {row: dict(zip(_TASKS, figures, strict=True)) for row, figures in _FIGURES.items()}
"""Tables 2 and 6, without CR, MPQA and SUBJ, whose data were not available."""
_COMPARE = ("dot", "cosine")
_HOW: tuple[Vector, ...] = ("concat", "mean")
_COMPARED = (
    *((f"{name}, {how}", f"{name}, encoder") for name in ("GRU–GRU", "BOW–GRU") for how in _HOW),
    ("GRU–GRU, mean", "GRU–GRU, concat"),
    ("BOW–GRU, concat", "BOW–GRU, mean"),
    *((f"{name}–BOW, encoder", f"{name}–GRU, encoder") for name in ("GRU", "BOW")),
    *((f"{name}–GRU, concat", f"{name}–BOW, encoder") for name in ("GRU", "BOW")),
)
"""Pairs of rows that the paper compares."""
_STATED = {
    "dot": [pair for pair in _COMPARED if pair != ("BOW–GRU, concat", "BOW–GRU, mean")],
    "cosine": [(f"GRU–{row}", "GRU–GRU, encoder") for row in ("GRU, concat", "BOW, encoder")],
}
"""The comparisons on STS that the text of the paper makes: in the abstract, in section 5, in
Appendix C and in the caption of Table 4. On transfer tasks, section 5 says that BOW–GRU, concat is
best."""
_STEPS = 10
_SMALL = "Decoding Decoders on three books with 1000 words"
_NOTE = (
    "21,000 sentences, 3 epochs with a rate of 0.003, batches of 32, words of 300 components, GRUs "
    "of 200 units. The paper's means of STS include MSRvid (2012) and SMT (2013), and ours do not."
)


class ContextCell(TaskCell):
    """A model that is trained on contiguous text."""

    def _tests(self, inputs: Inputs) -> dict[str, Any]:
        return {"evaluation": [digest(path) for path in (inputs.sts, *transfer_folders(inputs))]}

    def _measured(
        self, model: SentenceEncoder, metrics: dict[str, Any], inputs: Inputs
    ) -> tuple[Scores, dict[str, Any]]:
        """Return scores, and the numbers of steps that are best on the development data.

        The scores on STS and SICK are for every space, and for `concat` and `mean` with their best
        numbers of steps. The scores of the transfer tasks are for the encoder's vector, and for
        `concat` and `mean` with the numbers of steps that are best by the dot product.
        """
        data = read_sts(inputs.sts) + [p for p in read_sick(inputs.sick) if p.name == "trial"]
        found = compare_spaces(model, data, steps=_STEPS, agree=resampled)
        scores: Scores = {}
        chosen: dict[str, int] = {}
        transferred = {"encoder": Space("encoder")}
        for compare in _COMPARE:
            of = {space: _scores(agreement, compare) for space, agreement in found.items()}
            named = {str(space): scores for space, scores in of.items()}
            for how in _HOW if len(of) > 1 else ():
                best = max(
                    (space for space in of if space.vector == how),
                    key=lambda space: figure(of[space]["development"]),
                )
                chosen[f"{how}, {compare}"] = best.steps
                named[how] = {**of[best], "steps": best.steps}
                if compare == "dot":
                    transferred[how] = best
                two, three = (of[Space(how, steps)] for steps in (2, 3))
                named[f"{how} 2–3"] = {key: (two[key] + three[key]) / 2 for key in two}
            for name, values in named.items():
                scores.update({f"{name}, {compare} {key}": value for key, value in values.items()})
        return scores | _transfer(model, transferred, inputs), {"chosen": chosen}


def _scores(agreement: Correlations, compare: str) -> Scores:
    pearson, spearman = dict(agreement[compare]), agreement[f"{compare}_spearman"]
    reported = {
        "sts_2015": pearson.pop("STS 2015"),
        "sts_2015_spearman": spearman["STS 2015"],
        "sick": pearson.pop("SICK"),
        "steps": 0,
    }
    development = [pearson[year] for year in DEVELOPMENT if year in pearson]
    return {"development": np.mean(development, axis=0), **reported}


def _transfer(model: SentenceEncoder, spaces: Mapping[str, Space], inputs: Inputs) -> Scores:
    """Return the accuracy per space and task (SICK-R: Pearson's r), or NaN without data."""
    scores: Scores = {f"{name} {task}": np.nan for name in spaces for task in _TASKS}
    for name, space in spaces.items():
        for measure, value in transfer_scores(in_space(model, space).embed, inputs).items():
            task, _, kind = measure.partition(" ")
            if kind != "f1":
                scores[f"{name} {task}"] = value
    return scores


def tables(inputs: Inputs) -> dict[str, Table]:
    """Return all tables by name."""
    models = {
        f"{encoder}–{decoder}": ContextCell(options=_options(encoder, decoder, inputs))
        for decoder in ("GRU", "BOW")
        for encoder in ("GRU", "BOW")
    }
    return {
        "decoding": _similarity(models),
        "decoding-steps": _steps(models),
        "decoding-transfer": _transfer_tasks(models),
    }


def _names(models: Mapping[str, ContextCell]) -> dict[str, tuple[ContextCell, str]]:
    """Return the rows of the paper's tables, each with its cell and its vector."""
    return {
        f"{name}, {vector}": (cell, vector)
        for name, cell in models.items()
        for vector in ("encoder", *(_HOW if name.endswith("–GRU") else ()))
    }


def _similarity(models: Mapping[str, ContextCell]) -> Table:
    rows: dict[str, ContextCell] = {}
    prefixes: dict[str, str] = {}
    paper: dict[str, dict[str, float]] = {}
    claims: list[Claim] = []
    for compare in _COMPARE:
        for name, (cell, vector) in _names(models).items():
            row = f"{name}, {compare}"
            if name not in _STS[compare]:
                row += " (ours)"
            rows[row], prefixes[row] = cell, f"{vector}, {compare} "
            if figures := _STS[compare].get(name):
                r2012, r2013, r2014, r2015, rho2015 = figures
                paper[row] = {
                    "development": round((r2012 + r2013 + r2014) / 3, 1),
                    "sts_2015": r2015,
                    "sts_2015_spearman": rho2015,
                }
        pairs = [(f"{a}, {compare}", f"{b}, {compare}") for a, b in _COMPARED]
        text = [(f"{a}, {compare}", f"{b}, {compare}") for a, b in _STATED[compare]]
        claims += printed_claims([pair for pair in pairs if {*pair} <= {*paper}], paper, text)
    return Table(
        f"{_SMALL}: encoder–decoder, vector, comparison (Tables 1, 4 and 5)",
        rows,
        claims,
        measures={
            "development": "STS 2012–2014 r",
            "sts_2015": "STS 2015 r",
            "sts_2015_spearman": "STS 2015 ρ",
            "sick": "SICK trial r (ours)",
            "steps": "steps",
        },
        prefixes=prefixes,
        paper=paper,
        note=_NOTE,
    )


def _steps(models: Mapping[str, ContextCell]) -> Table:
    """Return the table of Figures 2 and 3. Only the values in the paper's text are known."""
    rows, prefixes, claims = {}, {}, []
    spaces = ["encoder"] + [f"{how} {step}" for how in _HOW for step in range(1, _STEPS + 1)]
    for name in ("GRU–GRU", "BOW–GRU"):
        for space in [*spaces, "concat 2–3"]:
            row = f"{name}, {space}" + (" (ours)" if "mean" in space else "")
            rows[row], prefixes[row] = models[name], f"{space}, "
        one, peak = f"{name}, concat 1", f"{name}, concat 2–3"
        cosine = dict.fromkeys(("cosine sts_2015", "cosine sts_2015_spearman"))
        shown = dict.fromkeys(("dot sts_2015", "dot sts_2015_spearman"))
        claims += [
            Claim(one, f"{name}, encoder", shown),
            Claim(peak, one, shown),
            Claim(peak, f"{name}, concat 10", shown),
            Claim(peak, f"{name}, encoder", cosine, figures="Figure 3"),
        ]
    return Table(
        f"{_SMALL}: unrolled steps (Figure 2; cosine: Figure 3)",
        rows,
        claims,
        note="The models are the same as in the first table.",
        prefixes=prefixes,
        measures={
            f"{compare} {key}": f"{head}, {compare}"
            for compare in _COMPARE
            for key, head in (
                ("development", "STS 2012–2014 r"),
                ("sts_2015", "STS 2015 r"),
                ("sts_2015_spearman", "STS 2015 ρ"),
            )
        },
    )


def _transfer_tasks(models: Mapping[str, ContextCell]) -> Table:
    named, paper = _names(models), _TRANSFER
    best = [("BOW–GRU, concat", f"BOW–{other}, encoder") for other in ("GRU", "BOW")]
    return Table(
        f"{_SMALL}: transfer tasks (Tables 2 and 6; of Table 3, GRU–GRU) on the parts at hand: "
        "development sets of SST and MRPC, SICK trial, else 10-fold",
        {name: cell for name, (cell, _) in named.items()},
        printed_claims(_COMPARED, paper, best),
        measures={task: task for task in _TASKS},
        prefixes={name: f"{vector} " for name, (_, vector) in named.items()},
        paper=paper,
        note="The models are the same as in the first table.",
        unit="Accuracy in %; SICK-R: Pearson × 100",
    )


def _options(encoder: str, decoder: str, inputs: Inputs) -> SystemOptions:
    vectors = str(inputs.vectors)
    section = ContextOptions(
        text=[str(inputs.books / name) for name in BOOKS],
        decoder="gru" if decoder == "GRU" else "bow",
        expand=vectors,
    )
    return SystemOptions(
        task="context",
        context=section,
        model="gru" if encoder == "GRU" else "word-sum",
        cell="normalised",
        hidden=200 if encoder == "GRU" else None,
        initial_vectors=vectors,
        max_vocabulary=1000,
        learning_rate=0.003,
        epochs=3,
        batch_size=32,
        clip=5.0,
    )
