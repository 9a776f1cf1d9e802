"""Writes the sample: the corpus in CzEng 1.6's format, phrase pairs, labelled similarity."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from random import Random
from typing import Any

from models.errors import UserError
from models.files import atomic_folder
from pipeline.sample import noise
from pipeline.sample.corpus import Pair, pairs
from pipeline.sample.phrases import phrase_pairs
from pipeline.sample.similarity import Labelled, labelled_pairs

FILES = ("00train", "01train", "02train")
SECTIONS = ("fiction-b1", "subtitlesM-b2", "navajo-b3")
DOCUMENT = 25  # sentences
SHARE_REJECTED = 0.001  # of the pairs, for each kind of row that ingest must reject
SHARE_ACCEPTED = 0.002  # for each kind that is only bad in content

COUNTS = "sample.json"


def write_sample(folder: Path, *, pairs: int = 10_000, seed: int = 1) -> dict[str, Any]:
    """Write `czeng16/*.gz`, `phrases.tsv` and `similarity/sample/*.tsv`; the same bytes every time.

    Args:
        folder: where to; one that holds something other than an earlier sample is left alone.
        pairs: distinct sound pairs; bad rows come on top.
        seed: of all that is drawn.

    Returns:
        What was written, as `sample.json` in the folder has it: pairs, rows, rejected and accepted
        bad rows by kind, phrases, similarity (pairs by data set).

    Raises:
        UserError: the folder cannot be written or holds something else; `pairs` are too many.
        ValueError: `pairs` is less than 1.
    """
    if pairs < 1:
        raise ValueError("pairs: must be at least 1")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / COUNTS).is_file():
        raise UserError(f"{folder}: holds other files; choose an empty folder for the sample")
    with atomic_folder(folder) as new:
        counts, known = _write_corpus(new / "czeng16", pairs, seed)
        counts["phrases"] = _write_phrases(new / "phrases.tsv", pairs, seed)
        counts["similarity"] = _write_similarity(new / "similarity" / "sample", known, seed)
        text = json.dumps(counts, indent=1, ensure_ascii=False)
        (new / COUNTS).write_text(text + "\n", encoding="utf-8")
    return counts


def _write_corpus(folder: Path, count: int, seed: int) -> tuple[dict[str, Any], set[str]]:
    random = Random(f"corpus {seed}")
    drawn = list(pairs(count, random))
    rejected = dict.fromkeys(noise.REJECTED, max(1, round(count * SHARE_REJECTED)))
    accepted = dict.fromkeys(noise.ACCEPTED, max(1, round(count * SHARE_ACCEPTED)))
    kinds = [
        *[None] * count,
        *(kind for kind, n in {**rejected, **accepted}.items() for _ in range(n)),
    ]
    random.shuffle(kinds)
    first = kinds.index(None)  # a sound row stands first, so that an id can come twice
    kinds[0], kinds[first] = kinds[first], kinds[0]
    lines = _lines(kinds, drawn, random)
    folder.mkdir()
    size = -(-len(lines) // len(FILES))
    for i, name in enumerate(FILES):
        _gzip(folder / f"{name}.gz", lines[i * size : (i + 1) * size])
    known = {pair.english for pair in drawn}
    summary = {"pairs": count, "rows": len(lines), "rejected": rejected, "accepted": accepted}
    return summary, known


def _lines(kinds: Sequence[str | None], drawn: Sequence[Pair], random: Random) -> list[bytes]:
    """The rows in order; a bad one is made from a sound pair drawn from among all."""
    sound = iter(drawn)
    lines: list[bytes] = []
    ids: list[str] = []
    size = -(-len(kinds) // len(FILES))
    for i, kind in enumerate(kinds):
        file, place = divmod(i, size)
        document, sentence = divmod(place, DOCUMENT)
        section = SECTIONS[document % len(SECTIONS)]
        name = f"{section}-{FILES[file]}-f{document + 1:06d}-s{sentence + 1}"
        score = f"{random.betavariate(8, 1):.6f}".rstrip("0")
        pair = next(sound) if kind is None else random.choice(drawn)
        row = (name, score, pair.czech, pair.english)
        if kind is None:
            lines.append("\t".join(row).encode())
            ids.append(name)
        elif kind in noise.REJECTED:
            lines.append(noise.broken(kind, row, random.choice(ids), random))
        else:
            other = random.choice(drawn).english
            lines.append(noise.poor(kind, row, other, random))
    return lines


def _gzip(path: Path, lines: Iterable[bytes]) -> None:
    with path.open("wb") as raw, gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as stream:
        stream.write(b"".join(line + b"\n" for line in lines))


def _write_phrases(path: Path, sentences: int, seed: int) -> int:
    found = phrase_pairs(sentences, Random(f"phrases {seed}"))
    path.write_text("".join(f"{a}\t{b}\n" for a, b in found), encoding="utf-8")
    return len(found)


def _write_similarity(folder: Path, known: set[str], seed: int) -> dict[str, int]:
    folder.mkdir(parents=True)
    sizes = {}
    for name in ("development", "test"):
        random = Random(f"similarity {name} {seed}")
        found: list[Labelled] = labelled_pairs(random, known)
        known = known | {sentence for _, *sentences in found for sentence in sentences}
        text = "".join(f"{score:g}\t{one}\t{two}\n" for score, one, two in found)
        (folder / f"{name}.tsv").write_text(text, encoding="utf-8")
        sizes[name] = len(found)
    return sizes
