"""What `input.where` finds, and what `input.unique: source` saves, on Multi30k.

python -m benchmarks.untranslated [--rows N] [--repeated SHARE] [--rounds N] [--beam N]

One worker translates in this process, so that its processor time can be measured, too: unlike the
wall-clock time, it hardly depends on other load on the machine.
"""

import argparse
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.noisy_bitext import KINDS, Line, Sides, add_noise, read_sides
from benchmarks.report import MODEL, Measured
from paraloom.beam_jobs import back_translate
from paraloom.beam_jobs.engine import schema
from paraloom.beam_jobs.engine.shards import Unit, read_shard, units, write_shard
from paraloom.beam_jobs.transforms.conditions import Predicate, reasons
from paraloom.beam_jobs.transforms.translations import TranslatorFactory
from paraloom.models.nmt.options import NmtOptions

CONDITIONS = (
    "source_language = cs",
    "reference_language = en",
    "identical = no",
    "source_letters >= 0.6",
    "reference_letters >= 0.6",
    "token_ratio in 0.45..1.35",
    "character_ratio in 0.5..1.35",
)
"""Those that docs/choosing-pairs.md recommends for Czech and English."""
SHARD_ROWS = 1_000


def measure_conditions(lines: Sequence[Line], measured: Measured) -> None:
    """Apply `CONDITIONS` to sound and broken lines."""
    source, reference = (pa.array([line[side] for line in lines]) for side in (0, 1))
    kinds = np.array([line.kind for line in lines])
    conditions = [Predicate.parse(text) for text in CONDITIONS]
    reasons(source[:100], reference[:100], conditions)  # loads the identifier
    started = time.process_time()
    rejected = reasons(source, reference, conditions) != ""
    seconds = time.process_time() - started
    measured.add("pairs/s of input.where on a core", len(lines) / seconds)
    measured.add("broken lines rejected, %", float(100 * rejected[kinds != ""].mean()))
    measured.add("sound lines rejected, %", float(100 * rejected[kinds == ""].mean()))
    for kind in KINDS:
        measured.add(f"{kind}: rejected, %", float(100 * rejected[kinds == kind].mean()))


def repeat(sides: Sides, rows: int, share: float, seed: int) -> pa.Table:
    """`rows` pairs, of which `share` repeat the source of another one, in random order."""
    draw = random.Random(seed)
    pairs = list({czech: (czech, english) for czech, english, _ in sides}.values())
    distinct = draw.sample(pairs, round(rows * (1 - share)))
    chosen = [*distinct, *draw.choices(distinct, k=rows - len(distinct))]
    draw.shuffle(chosen)
    sources, references = zip(*chosen, strict=True)
    return pa.table([list(map(str, range(rows))), sources, references], schema=schema.INGEST)


def translate(
    work: Sequence[Unit], model: str, folder: Path, distinct: bool, beam: int
) -> tuple[pa.Table, np.ndarray]:
    """Back-translate from scratch: the pairs, and the seconds of wall-clock and processor time."""
    shutil.rmtree(folder, ignore_errors=True)
    factory = TranslatorFactory(model, NmtOptions(beam=beam))
    job = back_translate.TranslationJob(model=factory, distinct=distinct)
    started = np.array([time.monotonic(), time.process_time()])
    result = back_translate.run(work, str(folder), job, ["--direct_num_workers", "1"])
    seconds = np.array([time.monotonic(), time.process_time()]) - started
    parts = [read_shard(shard) for receipt in result.receipts for shard in receipt.shards]
    return pa.concat_tables(parts), seconds


def main(arguments: Sequence[str] = ()) -> dict[str, Any]:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default=MODEL)
    parser.add_argument("--rows", type=int, default=6_000)
    parser.add_argument("--repeated", type=float, default=0.35)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--beam", type=int, default=12)
    options = parser.parse_args(arguments)
    sides = read_sides()
    measured = Measured(
        f"{options.rows:,} rows, {options.repeated:.0%} repeat a source, beam {options.beam}"
    )
    measure_conditions(add_noise(sides, share=0.1, seed=1), measured)

    table = repeat(sides, options.rows, options.repeated, seed=1)
    seconds = {"every row": np.zeros(2), "unique: source": np.zeros(2)}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shards = [
            write_shard(f"{folder}/in/part-{first:06d}.parquet", table.slice(first, SHARD_ROWS))
            for first in range(0, len(table), SHARD_ROWS)
        ]
        work = units(shards, "key")
        # Converts the model.
        translate(work[:1], options.model, folder / "warm", False, options.beam)
        for _ in range(options.rounds):  # in turns, since other load on the machine changes
            plain, spent = translate(work, options.model, folder / "plain", False, options.beam)
            seconds["every row"] += spent
            once, spent = translate(work, options.model, folder / "once", True, options.beam)
            seconds["unique: source"] += spent
    for what, spent in seconds.items():
        measured.add(f"{what}: seconds", spent[0] / options.rounds)
        measured.add(f"{what}: processor seconds", spent[1] / options.rounds)
    scores = [found["translation_score"].to_numpy() for found in (plain, once)]
    texts = [found.drop_columns("translation_score") for found in (plain, once)]
    same = np.array(texts[0]["translation"].to_pylist()) == texts[1]["translation"].to_pylist()
    measured.add("rows equal but for the score, %", 100 * float(same.mean()))
    measured.add("all other columns equal (1 = yes)", float(texts[0].equals(texts[1])))
    measured.add(
        "largest difference of a score, millionths",
        float(1e6 * np.abs(scores[0] - scores[1]).max()),
    )
    once_seconds, plain_seconds = seconds["unique: source"], seconds["every row"]
    measured.ratio("time of unique: source", once_seconds[0], plain_seconds[0])
    measured.ratio("processor time of unique: source", once_seconds[1], plain_seconds[1])
    return measured.done("untranslated")


if __name__ == "__main__":
    main(sys.argv[1:])
