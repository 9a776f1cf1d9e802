"""Splits of labelled pairs, and additional training pairs in which synonyms replace words."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from random import Random
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import xxhash
from numpy.typing import NDArray

from paraloom.models.embeddings.datasets.lines import numbered_lines
from paraloom.models.embeddings.datasets.phrases import read_phrases
from paraloom.models.embeddings.datasets.similarity import STS_SCALE, LabelledPairs, read_labelled
from paraloom.models.errors import UserError, in_one_line

STS_SHARES = (0.4, 0.1, 0.5)
"""Shares of STS data sets for training, development and test (Wieting & Gimpel 2017, 4.3)."""


class LabelledSplit(NamedTuple):
    """Pairs for training, pairs for selection of the epoch, and test sets."""

    train: LabelledPairs
    development: LabelledPairs
    test: list[LabelledPairs]


def split(
    paths: Sequence[str], *, held_out: float | None, train_trial: bool = False
) -> LabelledSplit:
    """Read labelled pairs, and split them in the same way in every run.

    Args:
        held_out: share of SICK's training pairs for development. None: use the trial pairs (W&G).
        train_trial: whether the trial pairs are training pairs if there are test pairs (MaLSTM).
    """
    sets = [data for path in paths for data in read_labelled(path)]
    if len({data.scale for data in sets}) > 1:
        raise UserError(
            f"{', '.join(paths)}: SICK's labels go from 1 to 5, and STS's labels from 0 to 5; "
            "train on SICK or on STS"
        )
    if sets[0].scale == STS_SCALE:
        first, second, third = zip(*(shares(data, STS_SHARES) for data in sets), strict=True)
        return LabelledSplit(pool(first), pool(second), [*third])
    trial, test = ([data for data in sets if data.name == name] for name in ("trial", "test"))
    train = [data for data in sets if data.name not in ("trial", "test")]
    if not train:
        raise UserError(f"{', '.join(paths)}: no pairs of SICK to train on (SICK_train.txt)")
    if train_trial and test:
        train, trial = [*train, *trial], []
    if held_out is None:
        if not trial:
            raise UserError(
                f"{', '.join(paths)}: no SICK_trial.txt, whose pairs choose the epoch; add it, or "
                "set embeddings.similarity.held_out"
            )
        return LabelledSplit(pool(train), pool(trial), test)
    rest, development = shares(pool(train), (1 - held_out, held_out))
    return LabelledSplit(rest, development, [*trial, *test])


def shares(data: LabelledPairs, sizes: Sequence[float]) -> list[LabelledPairs]:
    """Split a data set at random into parts with the shares `sizes`. The set's name is the seed."""
    name = f"{data.group} {data.name}"
    random = np.random.default_rng(xxhash.xxh3_64_intdigest(name.encode()))
    order = random.permutation(len(data))
    ends = np.round(np.cumsum(sizes) * len(order)).astype(int)
    parts = [np.sort(rows) for rows in np.split(order, ends[:-1])]
    if not all(map(len, parts)):
        raise UserError(f"{name}: {len(order)} pairs are too few to cut into {len(sizes)} parts")
    return [take(data, rows) for rows in parts]


def take(data: LabelledPairs, rows: NDArray[np.int64]) -> LabelledPairs:
    """Return the pairs at `rows`."""
    return replace(
        data,
        first=data.first.take(pa.array(rows)),
        second=data.second.take(pa.array(rows)),
        scores=data.scores[rows],
        unscored=0,
        entailment=None if data.entailment is None else data.entailment.take(pa.array(rows)),
    )


def pool(sets: Sequence[LabelledPairs]) -> LabelledPairs:
    """Concatenate data sets. Entailment judgments are kept if all sets have them."""
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


_WORDNET = ("data.noun", "data.verb", "data.adj", "data.adv")

Synonyms = Mapping[str, Sequence[str]]
"""The synonyms of each word, in lower case."""


def read_synonyms(path: Path | str) -> Synonyms:
    """Read synonyms from a WordNet folder (`data.noun` …) or from a file for `read_phrases`."""
    path = Path(path)
    pairs = _wordnet(path) if path.is_dir() else read_phrases(path)
    found: dict[str, dict[str, None]] = {}
    for left, right in pairs:
        left, right = left.lower(), right.lower()
        if left != right and left.isalpha() and right.isalpha():
            found.setdefault(left, {})[right] = None
    if not found:
        raise UserError(f"{path}: no two words that mean the same")
    return {word: list(others) for word, others in found.items()}


def _wordnet(folder: Path) -> Iterator[tuple[str, str]]:
    files = [folder / name for name in _WORDNET if (folder / name).is_file()]
    if not files:
        raise UserError(f"{folder}: no WordNet here (none of {', '.join(_WORDNET)})")
    for file in files:
        for number, line in numbered_lines(file):
            if line.startswith("  "):  # a line of the licence
                continue
            with in_one_line(f"{file}: line {number} is no synset"):
                # A line is: offset, file, type, number of words (hexadecimal), (word, sense) …
                fields = line.split(" ")
                words = fields[4 : 4 + 2 * int(fields[3], 16) : 2]
            # Adjectives may end in a marker, as in galore(ip).
            yield from permutations((word.partition("(")[0] for word in words), 2)


def augmented(data: LabelledPairs, synonyms: Synonyms, count: int, *, seed: int) -> LabelledPairs:
    """Return `count` copies of random pairs, in which words are replaced by random synonyms.

    In each pair, r words are replaced with the probability 2⁻ʳ, at most all words with synonyms.
    """
    random = Random(f"augment {seed}")
    sides = data.first.to_pylist(), data.second.to_pylist()
    rows = [random.randrange(len(data.scores)) for _ in range(count)]
    texts: list[list[str]] = []
    for row in rows:
        words = [side[row].split(" ") for side in sides]
        replaceable = [
            (i, j)
            for i, side in enumerate(words)
            for j, word in enumerate(side)
            if word.lower() in synonyms
        ]
        random.shuffle(replaceable)
        replaced = 1
        while random.random() < 0.5:
            replaced += 1
        for i, j in replaceable[:replaced]:
            words[i][j] = random.choice(synonyms[words[i][j].lower()])
        texts.append([" ".join(side) for side in words])
    first, second = (pa.array([text[i] for text in texts], pa.string()) for i in (0, 1))
    return replace(
        take(data, np.array(rows, np.int64)),
        name=f"{data.name}, augmented",
        first=first,
        second=second,
        entailment=None,
    )
