"""Measures how well `paraloom mine` and sentence-transformers find known paraphrases.

python -m benchmarks.mining --model DIR [--nmt DIR] [--books DIR] [--known N] [--others N]

English captions of Multi30k and their back-translations are the known pairs. The other sentences
are lines of books, or are joined from halves of different captions. A found pair that is not known
counts as wrong, although two joined captions may have the same meaning. The precisions are
therefore lower bounds.
"""

import random
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import pyarrow.parquet as pq
import typer

from benchmarks.measure import MODEL, command_line, cost, paraloom, print_table, read_side
from paraloom.models.nmt import Translator

MARGINS = (1.06, 1.1, 1.15, 1.2, 1.25, 1.3, 1.4)
COSINES = (0.7, 0.75, 0.8, 0.85, 0.9, 0.95)
_THEIRS = """
import sys
import numpy as np, pyarrow as pa, pyarrow.parquet as pq
from sentence_transformers.util import paraphrase_mining_embeddings
from paraloom.models.embeddings.applications.opened import open_model
lines = open(sys.argv[2], encoding="utf-8").read().split("\\n")[:-1]
vectors = open_model(sys.argv[1]).evaluated.embed(pa.array(lines))
found = paraphrase_mining_embeddings(np.asarray(vectors), top_k=4, max_pairs=4 * len(lines))
score, i, j = zip(*found)
lines = pa.array(lines)
table = {"reference": lines.take(pa.array(i)), "translation": lines.take(pa.array(j))}
pq.write_table(pa.table({**table, "cosine": pa.array(score, pa.float32())}), sys.argv[3])
"""
"""A program that encodes the sentences with the same encoder and calls `paraphrase_mining`."""


def sentences(nmt: str, books: Path | None, known: int, others: int) -> list[list[str]]:
    """Return the two sides of the known pairs, and the other sentences."""
    sides = [[line.strip() for line in read_side(code)] for code in ("cs", "en")]
    rng = random.Random(1)
    translated, _ = Translator(nmt).translate(sides[0][:known])
    pairs = zip(sides[1], translated["translation"].to_pylist(), strict=False)
    kept = [(a, b) for a, b in pairs if b and a.lower() != b.lower()]
    rest = [line.split() for line in sides[1][known:]]
    files = books.glob("*.txt") if books else ()
    lines = (line for file in files for line in file.read_text("utf-8").splitlines())
    found = {line.strip() for line in lines if len(line.split()) > 4}
    while len(found) < others:
        one, two = rng.sample(rest, 2)
        found.add(" ".join(one[: len(one) // 2] + two[len(two) // 2 :]))
    return [*map(list, zip(*kept, strict=True)), sorted(found)[:others]]


def show(
    name: str, command: list[str], found: Path, known: set[frozenset[str]], bounds: Sequence[float]
) -> None:
    """Run a command and print its cost. For each bound, print the precision and recall of pairs."""
    used = cost(command)
    rows = pq.read_table(found).to_pylist()
    score = "margin" if name == "paraloom mine" else "cosine"
    shown = []
    for bound in bounds:
        kept = (row for row in rows if row[score] >= bound)
        pairs = {frozenset((row["reference"], row["translation"])) for row in kept}
        right = len(pairs & known)
        shares = (right / max(len(pairs), 1), right / len(known))
        shown.append((str(bound), f"{len(pairs):,}", *(f"{share:.3f}" for share in shares)))
    title = f"{name}: {used.seconds:,.0f} s, {used.cpu_seconds:,.0f} CPU s, "
    title += f"at most {used.peak_pss / 1e6:,.0f} MB"
    print_table(title, [score], ("pairs", "precision", "recall"), shown)


def main(
    model: Annotated[str, typer.Option()],
    nmt: str = MODEL,
    books: Path | None = None,
    known: int = 3_000,
    others: int = 500_000,
) -> None:
    """Run both programs on the same sentences and print the tables."""
    with tempfile.TemporaryDirectory() as folder:
        text, ours, theirs = (f"{folder}/{name}" for name in ("all.txt", "ours", "theirs"))
        *sides, rest = sentences(nmt, books, known, others)
        lines = [*sides[0], *sides[1], *rest]
        random.Random(2).shuffle(lines)
        Path(text).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        pairs = {frozenset(pair) for pair in zip(*sides, strict=True)}
        print(f"{len(pairs):,} known pairs among {len(lines):,} sentences\n")
        given = ("--model", model, "--output", f"{ours}.parquet", "--margin", str(MARGINS[0]))
        command = paraloom("mine", text, *given)
        show("paraloom mine", command, Path(f"{ours}.parquet"), pairs, MARGINS)
        command = [sys.executable, "-c", _THEIRS, model, text, theirs]
        show("paraphrase_mining", command, Path(theirs), pairs, COSINES)


if __name__ == "__main__":
    command_line(main)
