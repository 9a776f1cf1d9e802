"""Cells and tables of contiguous text: "Decoding Decoders" (Zhelezniak et al. 2018).

Encoders and decoders are BOW or GRU. Training is small, so that no cell takes more than some
minutes: the data are the first 15 words of each of the 21,000 sentences of three books (the paper
has about 70 million), and decoders predict the 1000 most frequent words. Word vectors start from
PARAGRAM vectors, which also cover other words (vocabulary expansion).

STS 2012 to 2014 are development data: the learning rate was tuned on them, and for each way to
compare two vectors they select the number of decoder steps and whether the states are concatenated
or averaged. STS 2015 and SICK trial are only reported.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.experiments.cells import Inputs, Scores, save_scores, task_cell
from benchmarks.experiments.tables import Claim, Table
from models.embeddings import tasks
from models.embeddings.applications.decoder_spaces import Agreement, Space, compare_spaces
from models.embeddings.datasets.similarity import LabelledPairs, read_sick, read_sts
from models.embeddings.model import load_encoder
from models.embeddings.options import EmbeddingOptions
from models.embeddings.tasks.options import ContextOptions
from models.files import digest

VERSION = 1  # bump when cells have other scores: all cells are then computed again
_BOOKS = ("holmes.txt", "pride.txt", "cities.txt")
_COMPARE = ("dot", "cosine")
_STEPS = 10
_SMALL = "Decoding Decoders on three books with 1000 words"


@dataclass(frozen=True, kw_only=True, eq=False)
class ContextCell:
    """A model trained on contiguous text; its options name the files."""

    options: EmbeddingOptions


def cell_path(cell: ContextCell, seed: int, inputs: Inputs) -> Path:
    """The file of a cell's scores; its name is a hash of what they depend on."""
    tests = [digest(inputs.sts), digest(inputs.sick)]
    return task_cell(cell.options, inputs, version=VERSION, seed=seed, evaluation=tests)


def run(cell: ContextCell, seed: int, inputs: Inputs, path: Path) -> Scores:
    """Train on one thread, compare the spaces, and write the scores to `path`.

    There are scores of every space, and of `states`: the best space of decoder states.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        metrics = tasks.train(cell.options, Path(folder) / "model", seed=seed, threads=1)
        found = compare_spaces(load_encoder(Path(folder) / "model"), _data(inputs), steps=_STEPS)
    scores, chosen = {}, {}
    for compare in _COMPARE:
        of = {space: _scores(agreement, compare) for space, agreement in found.items()}
        states = [space for space in of if space.steps]
        named = {str(space): scores for space, scores in of.items()}
        if states:
            best = max(states, key=lambda space: of[space]["development"])
            chosen[compare], named["states"] = str(best), of[best]
        for name, values in named.items():
            scores.update({f"{name}, {compare} {key}": value for key, value in values.items()})
    save_scores(path, scores, cell.options, seed=seed, chosen=chosen, metrics=metrics)
    return scores


def _data(inputs: Inputs) -> list[LabelledPairs]:
    return read_sts(inputs.sts) + [p for p in read_sick(inputs.sick) if p.name == "trial"]


def _scores(agreement: Agreement, compare: str) -> Scores:
    groups = dict(agreement[compare])
    reported = {"sts_2015": groups.pop("STS 2015"), "sick": groups.pop("SICK")}
    return {"development": float(np.mean(list(groups.values()))), **reported}


def tables(inputs: Inputs) -> dict[str, Table]:
    """All tables by name; the second has all steps of one model of the first."""
    models = {
        f"{encoder}–{decoder}": ContextCell(options=_options(encoder, decoder, inputs))
        for decoder in ("GRU", "BOW")
        for encoder in ("GRU", "BOW")
    }
    longer = ContextCell(options=models["GRU–GRU"].options.replace(epochs=6))
    all_spaces = ["encoder"] + [
        str(Space(how, steps)) for how in ("concat", "mean") for steps in range(1, _STEPS + 1)
    ]
    steps = Table(
        f"{_SMALL}: the spaces of the GRU–GRU model",
        dict.fromkeys(all_spaces, models["GRU–GRU"]),
        [],
        prefixes={space: f"{space}, " for space in all_spaces},
        measures={
            f"{compare} {key}": f"{head}, {compare}"
            for compare in _COMPARE
            for key, head in (("development", "STS 2012–2014"), ("sts_2015", "STS 2015"))
        },
    )
    two = {"GRU–GRU, 3 epochs": models["GRU–GRU"], "GRU–GRU, 6 epochs": longer}
    return {
        "decoding": _encoder_or_states("", models),
        "decoding-steps": steps,
        "decoding-longer": _encoder_or_states(", longer training", two),
    }


def _encoder_or_states(what: str, models: Mapping[str, ContextCell]) -> Table:
    rows, prefixes, claims = {}, {}, []
    for compare in _COMPARE:
        for name, cell in models.items():
            of = {space: f"{name}, {space}, {compare}" for space in ("encoder", "states")}
            if "–GRU" in name:
                claims.append(Claim(of["states"], of["encoder"]))
            else:
                del of["states"]
            rows.update(dict.fromkeys(of.values(), cell))
            prefixes.update({row: f"{space}, {compare} " for space, row in of.items()})
    title = f"{_SMALL}{what}: encoder–decoder, sentence vector, comparison"
    return Table(title, rows, claims, prefixes=prefixes)


def _options(encoder: str, decoder: str, inputs: Inputs) -> EmbeddingOptions:
    vectors = str(inputs.folder / "paragram.txt")
    section = ContextOptions(
        text=[str(inputs.books / name) for name in _BOOKS],
        decoder="gru" if decoder == "GRU" else "bow",
        max_words=15,
        expand=vectors,
    )
    return EmbeddingOptions(
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
