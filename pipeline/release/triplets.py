"""The configuration `triplets` of a release. Its columns are anchor, positive, negative, kind."""

import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass, field, replace
from hashlib import sha256
from pathlib import Path, PurePath
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from paraloom.beam_jobs.transforms.equal_texts import normalised
from paraloom.models.embeddings.applications.hard_negatives import (
    Bounds,
    Neighbours,
    unit_vectors,
    write_vectors,
)
from paraloom.models.errors import UserError, reading
from paraloom.models.files import atomic_file, digest, locked
from paraloom.models.hashing import text_hashes
from paraloom.models.hub import fetch, is_hub_name
from paraloom.models.progress import meter
from paraloom.models.text.changes import CHANGES, Antonyms, Sentence, antonyms_by_tag, words
from paraloom.models.text.tokens import PairText
from paraloom.pipeline.pages.metadata import Configuration, SplitFiles
from paraloom.pipeline.release.files import PAIRS, SplitWriter

NEAR = "near"
KINDS = {
    NEAR: "a sentence similar to the anchor: the positive of another pair",
    **{name: f"the positive with {meaning}" for name, (_, meaning) in CHANGES.items()},
}
"""The kinds of negatives and their descriptions."""

_TRIPLETS = pa.schema(
    [*PAIRS, *(pa.field(name, pa.string(), nullable=False) for name in ("negative", "kind"))]
)
_ROWS = 8192  # number of pairs in a block
_JUDGED = 4  # number of neighbours that the cross-encoder scores for each pair
_COLUMNS = ("source", "reference", "translation")


@dataclass(frozen=True, slots=True, kw_only=True)
class TripletOptions:
    """The options of `paraloom publish --triplets`."""

    kinds: tuple[str, ...]
    model: str | None = None  # an encoder, or None for the encoder of the run
    cross_encoder: str | None = None
    spacy: str = "en_core_web_sm"
    wordnet: str = "/usr/share/wordnet"
    bounds: Bounds = field(default_factory=Bounds)

    def check(self, language: str) -> None:
        """Raise UserError for unknown kinds, wrong bounds, or kinds that `language` lacks."""
        if unknown := set(self.kinds) - {*KINDS}:
            raise UserError(f"--triplets {min(unknown)}: choose among {', '.join(KINDS)}, all")
        if not self.bounds.min_score <= min(self.bounds.max_score, 1 - self.bounds.relative_margin):
            raise UserError("--min-score: is above the limit of --max-score or --relative-margin")
        changes = [kind for kind in self.kinds if kind in CHANGES]
        if changes and language != "en":
            raise UserError(f"--triplets {', '.join(changes)}: for English only; use {NEAR}")

    def neighbours(self) -> str:
        """Return the names of the models that find neighbours, or "" without the kind `near`."""
        if NEAR not in self.kinds:
            return ""
        models = [self.model or "the run's encoder", self.cross_encoder or ""]
        shown = [name if is_hub_name(name) else PurePath(name).name for name in models if name]
        return " and ".join(shown)

    def digests(self) -> list[str]:
        """Return the digests of the models that find neighbours."""
        names = {"--triplets-model": self.model, "--triplets-cross-encoder": self.cross_encoder}
        return [digest(fetch(name, option)) for option, name in names.items() if name]


class Block(NamedTuple):
    """Consecutive pairs of a split."""

    start: int  # index of the first pair in the split
    anchors: pa.Array
    positives: pa.Array


class Rows(NamedTuple):
    """The pairs of a split."""

    files: Sequence[Path]  # files of the configuration `full`
    work: Path  # prefix of the paths of temporary files
    seed: int

    def blocks(self) -> Iterator[Block]:
        """Yield all pairs in order."""
        start = 0
        for batch in self._batches("reference", "translation"):
            yield Block(start, *batch.columns)
            start += len(batch)

    def hashes(self) -> list[np.ndarray]:
        """Return hashes of the sources, the references and the translations: uint64 [n] each."""
        batches = [
            [text_hashes(normalised(column)) for column in batch.columns]
            for batch in self._batches(*_COLUMNS)
        ]
        return [np.concatenate(column) for column in zip(*batches, strict=True)]

    def _batches(self, *columns: str) -> Iterator[pa.RecordBatch]:
        for file in self.files:
            yield from pq.ParquetFile(file).iter_batches(_ROWS, columns=list(columns))


Negatives = dict[str, list[str | None]]
"""For each kind, a list with the negative of each pair, or None."""

Maker = Callable[[Block], Negatives]


def makers(rows: Rows, options: TripletOptions) -> Iterator[Maker]:
    """Yield the makers of the wanted kinds of negatives."""
    if wanted := [kind for kind in options.kinds if kind in CHANGES]:
        yield _Changed(rows, options, wanted)
    if NEAR in options.kinds:
        yield _Near(rows, options)


class _Near:
    """Makes negatives of the kind `near`: similar positives of other pairs, within bounds."""

    def __init__(self, rows: Rows, options: TripletOptions) -> None:
        from paraloom.models.embeddings.applications.mining import write_texts
        from paraloom.models.embeddings.applications.opened import open_model

        self.embed = open_model(str(options.model), "--triplets-model").evaluated.embed
        self.bounds = options.bounds
        texts = (block.positives for block in rows.blocks())
        self.positives = write_texts(rows.work.with_suffix(".texts"), texts)
        self.hashes = rows.hashes()
        self.vectors = write_vectors(
            rows.work.with_suffix(".f16"), self.embed, (block.positives for block in rows.blocks())
        )
        self.index = Neighbours(self.vectors, rows.seed)
        self.cross_encoder: Any = None
        if options.cross_encoder:
            from paraloom.models.scorers.learned.sentence_similarity import open_cross_encoder

            with reading("--triplets-cross-encoder"):
                self.cross_encoder = open_cross_encoder(Path(options.cross_encoder))

    def __call__(self, block: Block) -> Negatives:
        anchors = unit_vectors(self.embed, block.anchors)
        own = np.arange(block.start, block.start + len(anchors))
        found, scores = self.index.nearest(anchors)
        positive = np.einsum("nd,nd->n", anchors, self.vectors[own], dtype=np.float32)
        usable = self.bounds.hold(scores, positive) & (found >= 0) & ~self._same(own, found)
        if self.cross_encoder is not None:
            usable &= self._judged(block, found, usable)
        best = usable.argmax(axis=1)
        rows = np.take_along_axis(found, best[:, None], 1)[:, 0].tolist()
        texts = (self.positives[row].as_py() for row in rows)
        return {NEAR: [text if any(ok) else None for text, ok in zip(texts, usable, strict=True)]}

    def _same(self, own: np.ndarray, found: np.ndarray) -> np.ndarray:
        """Compare each of the n pairs `own` with its k neighbours in `found`: bool [n, k].

        A value is true if both pairs have the same source or share a text.
        """
        source, *texts = self.hashes
        none = text_hashes(pa.array([""]))  # pairs that were not translated have an empty source
        same = [(source[found] == source[own][:, None]) & (source[found] != none)]
        same += [theirs[found] == mine[own][:, None] for mine in texts for theirs in texts]
        return np.asarray(np.any(same, axis=0))

    def _judged(self, block: Block, found: np.ndarray, usable: np.ndarray) -> np.ndarray:
        """Find which of the first _JUDGED usable neighbours pass the cross-encoder: bool [n, k]."""
        from paraloom.models.scorers.learned.sentence_similarity import cross_encoder

        asked = usable & (np.cumsum(usable, axis=1) <= _JUDGED)
        rows, _ = np.nonzero(asked)
        anchors = pa.concat_arrays([block.anchors, block.anchors.take(pa.array(rows))])
        near = [self.positives[row].as_py() for row in found[asked].tolist()]
        texts = PairText(anchors, pa.concat_arrays([block.positives, pa.array(near, pa.string())]))
        values = cross_encoder(texts, self.cross_encoder)
        scores = np.full(asked.shape, np.inf, np.float32)
        scores[asked] = values[len(found) :]
        return replace(self.bounds, min_score=-np.inf).hold(scores, values[: len(found)])


class _Changed:
    """Makes negatives by changing words of the positive."""

    def __init__(self, rows: Rows, options: TripletOptions, kinds: Sequence[str]) -> None:
        from paraloom.models.text.parses import Parser
        from paraloom.models.text.wordnet import open_antonyms

        with reading("--triplets-spacy"):
            self.parser = Parser(options.spacy)
            if self.parser.language != "en":
                raise UserError(f"{options.spacy} parses {self.parser.language}, not English")
        self.kinds, self.seed = kinds, rows.seed
        self.antonyms: Antonyms = {}
        if "antonym" in kinds:
            with reading("--triplets-wordnet"):
                nouns, adjectives = (open_antonyms(Path(options.wordnet), kind) for kind in "na")
            texts = next(rows.blocks()).positives.to_pylist()
            counts = Counter(word for text in texts for word in words(text))
            self.antonyms = antonyms_by_tag(nouns, adjectives, counts)

    def __call__(self, block: Block) -> Negatives:
        longest = self.parser.pipeline.max_length  # longer texts get no negatives
        texts = (text if len(text) <= longest else "" for text in block.positives.to_pylist())
        found: Negatives = {kind: [] for kind in self.kinds}
        for doc, anchor in zip(self.parser.parse(texts), block.anchors.to_pylist(), strict=True):
            for kind in self.kinds:
                chance = random.Random(f"{self.seed} {kind} {anchor}")
                sentence = Sentence(doc, words(anchor), self.antonyms, chance)
                found[kind].append(CHANGES[kind][0](sentence))
        return found


def write_triplets(
    folder: Path, splits: Sequence[SplitFiles], options: TripletOptions, work: Path, seed: int
) -> tuple[Configuration, Counter[str]]:
    """Write triplets for the pairs of a release, and count the triplets by kind.

    A negative and its pair are in the same split. An interrupted command resumes from the blocks in
    `work`.
    """
    key = sha256(repr((astuple(options), options.digests(), seed)).encode())
    for split in splits:
        for name in split.files:
            key.update(digest(folder / name).encode())
    (folder / "triplets").mkdir()
    found, counts = [], Counter[str]()
    place = work / key.hexdigest()
    work.mkdir(exist_ok=True)
    with locked(work / ".lock", f"{work}: another `paraloom publish` works here; wait for it"):
        place.mkdir(parents=True, exist_ok=True)
        for split in splits:
            writer = SplitWriter(folder / "triplets", split.name, _TRIPLETS)
            files = [folder / name for name in split.files]
            for table in _blocks(Rows(files, place / split.name, seed), split, options):
                writer.write(table)
                counts.update(table["kind"].to_pylist())
            found.append(writer.finish())
        shutil.rmtree(work, ignore_errors=True)  # NFS keeps the open lock file
    with suppress(OSError):
        work.rmdir()
    if not counts:
        raise UserError(f"--triplets: no pair has a negative of kind {' or '.join(options.kinds)}")
    return Configuration(
        name="triplets",
        folder="triplets",
        columns=_TRIPLETS,
        splits=tuple(split for split in found if split.rows),
    ), counts


def _blocks(rows: Rows, split: SplitFiles, options: TripletOptions) -> Iterator[pa.Table]:
    """Yield the triplets of a split in blocks. Load stored blocks, and store new blocks."""
    opened: list[Maker] = []
    with meter(f"triplets {split.name}", split.rows, "pairs") as progress:
        for block in rows.blocks():
            path = rows.work.with_suffix(f".{block.start}.parquet")
            try:
                made = pq.read_table(path, schema=_TRIPLETS)
            except (OSError, pa.ArrowException):  # the file is missing or damaged
                opened = opened or [*makers(rows, options)]
                made = _triplets(block, opened)
                with atomic_file(path) as temporary:
                    pq.write_table(made, temporary)
            progress.set(block.start + len(block.anchors))
            yield made


def _triplets(block: Block, opened: Sequence[Maker]) -> pa.Table:
    """Return the triplets of a block.

    Negatives that equal the anchor or the positive after normalisation are left out.
    """
    rows, negatives, kinds = [], [], []
    for kind, texts in ((kind, of) for make in opened for kind, of in make(block).items()):
        there = [row for row, text in enumerate(texts) if text is not None]
        rows += there
        negatives += [texts[row] for row in there]
        kinds += [kind] * len(there)
    at = pa.array(rows, pa.int64())
    sides = [side.take(at) for side in (block.anchors, block.positives)]
    table = pa.table(
        [*sides, negatives, kinds, at], schema=_TRIPLETS.append(pa.field("row", pa.int64()))
    )
    plain = [normalised(table[name].combine_chunks()) for name in _TRIPLETS.names[:3]]
    keep = pc.and_(*(pc.not_equal(side, plain[2]) for side in plain[:2]))
    order = [("row", "ascending"), ("kind", "ascending")]
    return table.filter(keep).sort_by(order).select(_TRIPLETS.names)
