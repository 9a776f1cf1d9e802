"""The configuration `triplets` of a release: (anchor, positive, negative, kind)."""

import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import astuple
from hashlib import sha256
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from paraloom.beam_jobs.transforms.equal_texts import normalised
from paraloom.models.errors import UserError
from paraloom.models.files import atomic_file, digest
from paraloom.models.progress import meter
from paraloom.pipeline.pages.metadata import Configuration, SplitFiles
from paraloom.pipeline.release.files import PAIRS, SplitWriter
from paraloom.pipeline.release.negatives import Block, Maker, Rows, TripletOptions, makers

_TRIPLETS = pa.schema(
    [*PAIRS, *(pa.field(name, pa.string(), nullable=False) for name in ("negative", "kind"))]
)


def write_triplets(
    folder: Path, splits: Sequence[SplitFiles], options: TripletOptions, work: Path, seed: int
) -> tuple[Configuration, Counter[str]]:
    """Write the triplets of a release's pairs, and count them by kind.

    The negatives of a pair come from its split. The triplets of each block of pairs stay in `work`
    until all are made: after a kill, the same command goes on there.
    """
    key = sha256(repr((astuple(options), options.digests(), seed)).encode())
    for split in splits:
        for name in split.files:
            key.update(digest(folder / name).encode())
    (folder / "triplets").mkdir()
    found, counts = [], Counter[str]()
    place = work / key.hexdigest()
    place.mkdir(parents=True, exist_ok=True)
    for split in splits:
        writer = SplitWriter(folder / "triplets", split.name, _TRIPLETS)
        files = [folder / name for name in split.files]
        for table in _blocks(Rows(files, place / split.name, seed), split, options):
            writer.write(table)
            counts.update(table["kind"].to_pylist())
        found.append(writer.finish())
    shutil.rmtree(work)
    if not counts:
        raise UserError(f"--triplets: no pair has a negative of kind {' or '.join(options.kinds)}")
    return Configuration(
        name="triplets",
        folder="triplets",
        columns=_TRIPLETS,
        splits=tuple(split for split in found if split.rows),
    ), counts


def _blocks(rows: Rows, split: SplitFiles, options: TripletOptions) -> Iterator[pa.Table]:
    """The triplets of a split in blocks; finished blocks in its folder are not made again."""
    opened: list[Maker] = []
    with meter(f"triplets {split.name}", split.rows, "pairs") as progress:
        for block in rows.blocks():
            path = rows.work.with_suffix(f".{block.start}.parquet")
            try:
                made = pq.read_table(path, schema=_TRIPLETS)
            except (OSError, pa.ArrowException):  # not there, or damaged
                opened = opened or [*makers(rows, options)]
                made = _triplets(block, opened)
                with atomic_file(path) as temporary:
                    pq.write_table(made, temporary)
            progress.set(block.start + len(block.anchors))
            yield made


def _triplets(block: Block, opened: Sequence[Maker]) -> pa.Table:
    """The triplets of a block; the triplets of a pair stand together.

    A negative that differs from its anchor or positive in case and punctuation only is left out.
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
    keep = pa.compute.and_(*(pa.compute.not_equal(side, plain[2]) for side in plain[:2]))
    order = [("row", "ascending"), ("kind", "ascending")]
    return table.filter(keep).sort_by(order).select(_TRIPLETS.names)
