"""Cells and tables of contiguous text: "Decoding Decoders" (Zhelezniak et al. 2018).

STS 2012 to 2014 are development data. They select the number of decoder steps, separately for the
dot product and the cosine. STS 2015, SICK trial and the transfer tasks are only reported.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.experiments.bootstrap import resampled
from benchmarks.experiments.cells import (
    DEVELOPMENT,
    Cell,
    Inputs,
    Scores,
    figure,
    transfer_folders,
    transfer_scores,
)
from benchmarks.experiments.tables import Claim, Table, printed_claims, read_figures
from paraloom.models.embeddings.datasets.similarity import read_sick, read_sts
from paraloom.models.embeddings.model import SentenceEncoder
from paraloom.papers.analyses.decoder_spaces import Correlations, Space, compare_spaces, in_space
from paraloom.papers.encoders.context import Vector
from paraloom.papers.options import ContextOptions, SystemOptions

BOOKS = ("holmes.txt", "pride.txt", "cities.txt")
_TASKS = ("MR", "SST", "TREC", "MRPC", "SICK-R", "SICK-E")
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


class ContextCell(Cell):
    """A model that is trained on contiguous text."""

    def _tests(self, inputs: Inputs) -> list[Path]:
        return [inputs.sts, *transfer_folders(inputs)]

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
    paper = {}
    for row, figures in read_figures("decoding").items():
        development = [figures.pop(f"sts_{year}") for year in (2012, 2013, 2014)]
        paper[row] = {"development": round(sum(development) / 3, 1), **figures}
    rows, prefixes, claims = {}, {}, []
    for compare in _COMPARE:
        for name, (cell, vector) in _names(models).items():
            row = f"{name}, {compare}"
            row = row if row in paper else f"{row} (ours)"
            rows[row], prefixes[row] = cell, f"{vector}, {compare} "
        pairs, text = (
            [(f"{a}, {compare}", f"{b}, {compare}") for a, b in of]
            for of in (_COMPARED, _STATED[compare])
        )
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
    named, paper = _names(models), read_figures("decoding-transfer")
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
