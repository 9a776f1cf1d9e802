"""Data augmentation: training pairs with words replaced by synonyms (Zhang et al. 2015)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa

from paraloom.models.embeddings.datasets.lines import numbered_lines
from paraloom.models.embeddings.datasets.phrases import read_phrases
from paraloom.models.embeddings.datasets.similarity import LabelledPairs
from paraloom.models.errors import UserError, in_one_line
from paraloom.papers.datasets.splits import take

_WORDNET = ("data.noun", "data.verb", "data.adj", "data.adv")

Synonyms = Mapping[str, Sequence[str]]
"""The synonyms of each word. All are single words in lower case."""


def read_synonyms(path: Path | str) -> Synonyms:
    """Read a thesaurus: a WordNet folder (`data.noun` …), or a file for `read_phrases`. Synonyms
    are the words of a synset, or paraphrases that are single words."""
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
    """Yield ordered pairs of words of a synset."""
    files = [folder / name for name in _WORDNET if (folder / name).is_file()]
    if not files:
        raise UserError(f"{folder}: no WordNet here (none of {', '.join(_WORDNET)})")
    for file in files:
        for number, line in numbered_lines(file):
            if line.startswith("  "):  # a line of the licence
                continue
            with in_one_line(f"{file}: line {number} is no synset"):
                # offset, file, type, number of words (hexadecimal), then each word and its sense
                fields = line.split(" ")
                words = fields[4 : 4 + 2 * int(fields[3], 16) : 2]
            # Adjectives may end in a marker, as in galore(ip).
            yield from permutations((word.partition("(")[0] for word in words), 2)


def augmented(data: LabelledPairs, synonyms: Synonyms, count: int, *, seed: int) -> LabelledPairs:
    """Return `count` copies of random pairs of `data`, with words replaced by synonyms. In each
    pair, r words that have synonyms are replaced, where P(r) ∝ 2⁻ʳ. A pair without such words is
    unchanged."""
    random = Random(f"augment {seed}")
    sides = data.first.to_pylist(), data.second.to_pylist()
    rows = [random.randrange(len(data.scores)) for _ in range(count)]
    first, second = [], []
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
        first.append(" ".join(words[0]))
        second.append(" ".join(words[1]))
    return replace(
        take(data, np.array(rows, np.int64)),
        name=f"{data.name}, augmented",
        first=pa.array(first, pa.string()),
        second=pa.array(second, pa.string()),
        entailment=None,
    )
