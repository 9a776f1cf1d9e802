"""Negatives of the pairs of a release: sentences near the anchor that mean something else."""

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from paraloom.beam_jobs.transforms.duplicates import normalised
from paraloom.models.embeddings.applications.hard_negatives import (
    Bounds,
    Neighbours,
    unit_vectors,
    write_vectors,
)
from paraloom.models.errors import reading
from paraloom.models.hashing import text_hashes
from paraloom.models.text.changes import CHANGES, Antonyms, Sentence, antonyms_by_tag, words

NEAR = "near"
KINDS = {
    NEAR: "a translation of another sentence that is near the anchor",
    **{name: f"the positive with {meaning}" for name, (_, meaning) in CHANGES.items()},
}
"""Kinds of negatives, and what they are."""

WORDNET = "/usr/share/wordnet"
_SPACY = "en_core_web_sm"
_ROWS = 8192  # pairs at once
_COLUMNS = ("source", "reference", "translation")
_TEXTS = pa.schema([("positive", pa.string())])


@dataclass(frozen=True, slots=True, kw_only=True)
class TripletOptions:
    """What a user says of triplets."""

    kinds: tuple[str, ...]
    model: str | None = None  # of sentence vectors; None: the run's encoder
    wordnet: str = WORDNET
    bounds: Bounds = field(default_factory=Bounds)


class Block(NamedTuple):
    """Pairs of a split that follow each other."""

    start: int  # number of the first one
    anchors: pa.Array
    positives: pa.Array


class Rows(NamedTuple):
    """The pairs of a split, in files with all columns, and a folder for what is made of them."""

    files: Sequence[Path]
    work: Path
    seed: int

    def blocks(self) -> Iterator[Block]:
        """All pairs, in their order."""
        start = 0
        for batch in self._batches("reference", "translation"):
            yield Block(start, *batch.columns)
            start += len(batch)

    def hashes(self) -> list[np.ndarray]:
        """Hashes of all sources, references and translations, uint64 [n] each; they ignore case."""
        batches = [
            [text_hashes(normalised(column)) for column in batch.columns]
            for batch in self._batches(*_COLUMNS)
        ]
        return [np.concatenate(column) for column in zip(*batches, strict=True)]

    def _batches(self, *columns: str) -> Iterator[pa.RecordBatch]:
        for file in self.files:
            yield from pq.ParquetFile(file).iter_batches(_ROWS, columns=list(columns))


Negatives = dict[str, list[str | None]]
"""By kind, the negative of each pair, or None."""

Maker = Callable[[Block], Negatives]


def makers(rows: Rows, options: TripletOptions) -> Iterator[Maker]:
    """Open what makes the wanted kinds of negatives."""
    if wanted := [kind for kind in options.kinds if kind in CHANGES]:
        yield _Changed(rows, options, wanted)
    if NEAR in options.kinds:
        yield _Near(rows, options)


class _Near:
    """The nearest positive of another pair within the bounds that is not known as a paraphrase."""

    def __init__(self, rows: Rows, options: TripletOptions) -> None:
        from paraloom.models.embeddings.applications.opened import open_model

        self.embed = open_model(str(options.model), "--triplets-model").evaluated.embed
        self.bounds = options.bounds
        texts = rows.work.with_suffix(".arrow")
        with pa.OSFile(str(texts), "wb") as file, pa.ipc.new_file(file, _TEXTS) as writer:
            for block in rows.blocks():
                writer.write_batch(pa.record_batch([block.positives.cast(pa.string())], _TEXTS))
        self.positives = pa.ipc.open_file(pa.memory_map(str(texts))).read_all()["positive"]
        self.hashes = rows.hashes()
        self.vectors = write_vectors(
            rows.work.with_suffix(".f16"), self.embed, (block.positives for block in rows.blocks())
        )
        self.index = Neighbours(self.vectors, rows.seed)

    def __call__(self, block: Block) -> Negatives:
        """The negatives of a block."""
        anchors = unit_vectors(self.embed, block.anchors)
        own = np.arange(block.start, block.start + len(anchors))
        found, scores = self.index.nearest(anchors)
        positive = np.einsum("nd,nd->n", anchors, self.vectors[own], dtype=np.float32)
        usable = self.bounds.hold(scores, positive) & (found >= 0) & ~self._same(own, found)
        rows = np.take_along_axis(found, usable.argmax(axis=1)[:, None], 1)[:, 0].tolist()
        texts = (self.positives[row].as_py() for row in rows)
        return {NEAR: [text if any(ok) else None for text, ok in zip(texts, usable, strict=True)]}

    def _same(self, own: np.ndarray, found: np.ndarray) -> np.ndarray:
        """Whether the source, or a text of each pair, equals the pair in question: [n, k]."""
        source, *texts = self.hashes
        same = [source[found] == source[own][:, None]]
        same += [theirs[found] == mine[own][:, None] for mine in texts for theirs in texts]
        return np.asarray(np.any(same, axis=0))


class _Changed:
    def __init__(self, rows: Rows, options: TripletOptions, kinds: Sequence[str]) -> None:
        from paraloom.models.text.parses import Parser
        from paraloom.models.text.wordnet import open_antonyms

        with reading("--triplets"):
            self.parser = Parser(_SPACY)
        self.kinds, self.seed = kinds, rows.seed
        self.antonyms: Antonyms = {}
        if "antonym" in kinds:
            with reading("--triplets-wordnet"):
                nouns, adjectives = (open_antonyms(Path(options.wordnet), kind) for kind in "na")
            texts = next(rows.blocks()).positives.to_pylist()
            counts = Counter(word for text in texts for word in words(text))
            self.antonyms = antonyms_by_tag(nouns, adjectives, counts)

    def __call__(self, block: Block) -> Negatives:
        """The negatives of a block; a text too long to parse has none."""
        longest = self.parser.pipeline.max_length
        texts = (text if len(text) <= longest else "" for text in block.positives.to_pylist())
        found: Negatives = {kind: [] for kind in self.kinds}
        for doc, anchor in zip(self.parser.parse(texts), block.anchors.to_pylist(), strict=True):
            for kind in self.kinds:
                chance = random.Random(f"{self.seed} {kind} {anchor}")
                sentence = Sentence(doc, words(anchor), self.antonyms, chance)
                found[kind].append(CHANGES[kind][0](sentence))
        return found
