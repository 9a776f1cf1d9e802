"""Labelled pairs cut into training, development and test data, the same way every time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import xxhash

from models.embeddings.datasets.similarity import STS_SCALE, LabelledPairs, read_labelled
from models.errors import UserError

STS_SHARES = (0.4, 0.1, 0.5)
"""Of every STS data set: to train on, to choose by, to report (Wieting & Gimpel 2017, 4.3)."""


class Split(NamedTuple):
    """What to train on, what to choose by, and what is only reported."""

    train: LabelledPairs
    development: LabelledPairs
    test: list[LabelledPairs]


def split(paths: Sequence[str], *, held_out: float) -> Split:
    """Read labelled pairs and cut them.

    Every STS data set is cut by `STS_SHARES`, then pooled. Of SICK, `held_out` of the training
    pairs choose; its trial and test pairs, where they are there, are reported. How a set is cut
    depends on its name alone, so that a test pair is one whatever the seed.

    Raises:
        UserError: nothing there, a broken row, SICK without its training pairs, or both SICK and
            STS, whose labels have different scales.
    """
    sets = [data for path in paths for data in read_labelled(path)]
    if len({data.scale for data in sets}) > 1:
        raise UserError(
            f"{', '.join(paths)}: SICK's labels go from 1 to 5, those of STS from 0 to 5: "
            "train on one of them"
        )
    if sets[0].scale == STS_SCALE:
        cut = [shares(data, STS_SHARES) for data in sets]
        return Split(pool([c[0] for c in cut]), pool([c[1] for c in cut]), [c[2] for c in cut])
    train = [data for data in sets if data.name not in ("trial", "test")]
    if not train:
        raise UserError(f"{', '.join(paths)}: no pairs of SICK to train on (SICK_train.txt)")
    rest = [data for data in sets if data.name in ("trial", "test")]
    kept, chooses = shares(pool(train), (1 - held_out, held_out))
    return Split(kept, chooses, rest)


def shares(data: LabelledPairs, parts: Sequence[float]) -> list[LabelledPairs]:
    """A data set cut at random into parts of these shares.

    Raises:
        UserError: a part would be empty.
    """
    name = f"{data.group} {data.name}"
    order = np.random.default_rng(xxhash.xxh3_64_intdigest(name.encode())).permutation(
        len(data.scores)
    )
    ends = np.round(np.cumsum(parts) * len(order)).astype(int)
    cut = [np.sort(rows) for rows in np.split(order, ends[:-1])]
    if not all(map(len, cut)):
        raise UserError(f"{name}: {len(order)} pairs are too few to cut into {len(parts)} parts")
    return [take(data, rows) for rows in cut]


def take(data: LabelledPairs, rows: np.ndarray) -> LabelledPairs:
    """Some pairs of a data set."""
    return LabelledPairs(
        group=data.group,
        name=data.name,
        first=data.first.take(pa.array(rows)),
        second=data.second.take(pa.array(rows)),
        scores=data.scores[rows],
        scale=data.scale,
        entailment=None if data.entailment is None else data.entailment.take(pa.array(rows)),
    )


def pool(sets: Sequence[LabelledPairs]) -> LabelledPairs:
    """The pairs of all sets as one; with judgments of entailment if all of them have them."""
    judged = [data.entailment for data in sets if data.entailment is not None]
    return LabelledPairs(
        group=sets[0].group if len(sets) == 1 else "pooled",
        name=sets[0].name if len(sets) == 1 else f"{len(sets)} data sets",
        first=pa.concat_arrays([data.first for data in sets]),
        second=pa.concat_arrays([data.second for data in sets]),
        scores=np.concatenate([data.scores for data in sets]),
        scale=sets[0].scale,
        entailment=pa.concat_arrays(judged) if len(judged) == len(sets) else None,
    )
