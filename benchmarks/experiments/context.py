"""Cells and tables of contiguous text: "Decoding Decoders" (Zhelezniak et al. 2018).

Encoders and decoders are BOW or GRU, trained in small, so that none takes more than some minutes:
on the 21,000 sentences of three books where the paper has some 70 million, of each its first 15
words; decoders choose among the 1000 most frequent words. Words start from PARAGRAM vectors,
through which others are known, too (vocabulary expansion).

STS 2012 to 2014 chose the learning rate, and choose how many steps decoders are unrolled and
whether their states are joined or averaged, for either way to compare two vectors; STS 2015 and
SICK trial are only reported.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.experiments.cells import Inputs, Scores, keep, task_cell
from benchmarks.experiments.tables import Claim, Table
from models.embeddings import tasks
from models.embeddings.applications.decoder_spaces import Agreement, Space, compare_spaces
from models.embeddings.datasets.similarity import LabelledPairs, read_sick, read_sts
from models.embeddings.model import load_encoder
from models.embeddings.options import EmbeddingOptions
from models.embeddings.tasks.options import ContextOptions
from models.files import digest

VERSION = 1  # of what is computed here: a change makes all cells anew
_BOOKS = ("holmes.txt", "pride.txt", "cities.txt")
_COMPARE = ("dot", "cosine")
_STEPS = 10
_SMALL = "Decoding Decoders on three books with 1000 words"


@dataclass(frozen=True, kw_only=True, eq=False)
class ContextCell:
    """A model to train on contiguous text; its options name the files."""

    options: EmbeddingOptions


def kept(cell: ContextCell, seed: int, inputs: Inputs) -> Path:
    """Where the scores of a cell are, or will be: named by what they depend on."""
    tests = [digest(inputs.sts), digest(inputs.sick)]
    return task_cell(cell.options, inputs, version=VERSION, seed=seed, evaluation=tests)


def run(cell: ContextCell, seed: int, inputs: Inputs, path: Path) -> Scores:
    """Train on one thread, compare the spaces, keep the scores at `path`.

    The scores of every space, and of `states`, which is the best one that is not the encoder's.
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
    keep(path, scores, cell.options, seed=seed, chosen=chosen, metrics=metrics)
    return scores


def _data(inputs: Inputs) -> list[LabelledPairs]:
    return read_sts(inputs.sts) + [p for p in read_sick(inputs.sick) if p.name == "trial"]


def _scores(agreement: Agreement, compare: str) -> Scores:
    groups = dict(agreement[compare])
    reported = {"sts_2015": groups.pop("STS 2015"), "sick": groups.pop("SICK")}
    return {"development": float(np.mean(list(groups.values()))), **reported}


def tables(inputs: Inputs) -> dict[str, Table]:
    """All tables by name; the second shows all steps of one model of the first."""
    models = {
        f"{encoder}–{decoder}": ContextCell(options=_options(encoder, decoder, inputs))
        for decoder in ("GRU", "BOW")
        for encoder in ("GRU", "BOW")
    }
    longer = ContextCell(options=replace(models["GRU–GRU"].options, epochs=6))
    all_spaces = ["encoder"] + [
        str(Space(how, steps)) for how in ("concat", "mean") for steps in range(1, _STEPS + 1)
    ]
    steps = Table(
        f"{_SMALL}: the spaces of the GRU–GRU model",
        dict.fromkeys(all_spaces, models["GRU–GRU"]),
        [],
        parts={space: f"{space}, " for space in all_spaces},
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
        "decoding-longer": _encoder_or_states(", trained for longer", two),
    }


def _encoder_or_states(what: str, models: Mapping[str, ContextCell]) -> Table:
    rows, parts, claims = {}, {}, []
    for compare in _COMPARE:
        for name, cell in models.items():
            of = {space: f"{name}, {space}, {compare}" for space in ("encoder", "states")}
            if "–GRU" in name:
                claims.append(Claim(of["states"], of["encoder"]))
            else:
                del of["states"]
            rows.update(dict.fromkeys(of.values(), cell))
            parts.update({row: f"{space}, {compare} " for space, row in of.items()})
    title = f"{_SMALL}{what}: encoder–decoder, what a sentence's vector is, how two are compared"
    return Table(title, rows, claims, parts=parts)


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
