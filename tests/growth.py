"""Bitext in five formats, with random changes like the changes of growing corpora."""

import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from xml.sax.saxutils import escape

import pyarrow as pa
import pyarrow.parquet as pq

from paraloom.beam_jobs.bitext import Paths

Pair = tuple[str, str]
Files = dict[str, list[Pair]]
KINDS = 8
"""Number of ways in which `change` changes files."""


def lines(path: Path, rows: list[str]) -> Path:
    path.write_text("".join(f"{row}\n" for row in rows), "utf-8")
    return path


def tsv(path: Path, pairs: list[Pair]) -> Path:
    return lines(path, [f"{source}\t{reference}" for source, reference in pairs])


def moses(path: Path, pairs: list[Pair]) -> Path:
    lines(path.with_suffix(".en"), [reference for _, reference in pairs])
    return lines(path.with_suffix(".cs"), [source for source, _ in pairs])


def jsonl(path: Path, pairs: list[Pair]) -> Path:
    return lines(path, [json.dumps({"source": a, "reference": b}) for a, b in pairs])


def parquet(path: Path, pairs: list[Pair]) -> Path:
    columns = dict(zip(("source", "reference"), zip(*pairs, strict=True), strict=True))
    pq.write_table(pa.table(columns), path, row_group_size=3)
    return path


def tmx(path: Path, pairs: list[Pair]) -> Path:
    unit = '<tu><tuv lang="cs"><seg>{}</seg></tuv><tuv lang="en"><seg>{}</seg></tuv></tu>'
    units = "".join(unit.format(*map(escape, pair)) for pair in pairs)
    path.write_text(f"<tmx><body>{units}</body></tmx>", "utf-8")
    return path


Write = Callable[[Path, list[Pair]], Path]
WRITERS: list[Write] = [tsv, moses, jsonl, parquet, tmx]


def write_files(write: Write, folder: Path, files: Files) -> Paths:
    """Write all files in the order of their names, and return their `input.paths`."""
    folder.mkdir()
    written = [str(write(folder / name, files[name])) for name in sorted(files)]
    if write is moses:
        return {"source": written, "reference": [path[:-2] + "en" for path in written]}
    return written


def change(random: Random, files: Files, number: int, pair: Callable[[], Pair]) -> None:
    """Change, add or remove a file in one of 8 ways, by `number`. No file becomes empty."""
    rows = files[random.choice(sorted(files))]
    at = random.randrange(len(rows))
    source, reference = rows[at]
    kind = number % KINDS
    if kind == 0:
        files[random.choice("az") + f"{number}"] = [pair() for _ in range(random.randrange(1, 9))]
    elif kind == 1:
        rows.extend(pair() for _ in range(3))
    elif kind == 2:
        rows.insert(at, pair())
    elif kind == 3:
        rows[at] = f"{source} {number}", reference
    elif kind == 4:
        rows[at] = source, f"{reference} {number}"
    elif kind == 5:
        random.shuffle(rows)
    elif kind == 6 and len(rows) > 1:
        del rows[at]
    elif kind == 7 and len(files) > 1:
        del files[random.choice(sorted(files))]
