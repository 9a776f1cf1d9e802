"""What `input.where` finds, and what `input.unique: source` saves, on Multi30k.

python -m benchmarks.untranslated [--rows N] [--repeated SHARE] [--rounds N] [--beam N]

One worker translates in this process, so that its processor time can be measured, too: unlike the
wall-clock time, it hardly depends on other load on the machine.
"""

import random
import time
from collections.abc import Sequence
from functools import partial

import numpy as np
import pyarrow as pa

from benchmarks.back_translation import through_job
from benchmarks.noisy_bitext import KINDS, Line, Sides, add_noise, read_sides
from benchmarks.report import MODEL, Measured, command_line
from paraloom.beam_jobs.engine import schema
from paraloom.beam_jobs.transforms.conditions import Predicate, reasons
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
"""The conditions that docs/choosing-pairs.md recommends for Czech and English."""


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


def main(
    model: str = MODEL, rows: int = 6_000, repeated: float = 0.35, rounds: int = 2, beam: int = 12
) -> None:
    """Measure and print."""
    sides = read_sides()
    measured = Measured(f"{rows:,} rows, {repeated:.0%} repeat a source, beam {beam}")
    measure_conditions(add_noise(sides, share=0.1, seed=1), measured)

    table = repeat(sides, rows, repeated, seed=1)
    seconds = {"every row": np.zeros(2), "unique: source": np.zeros(2)}
    through = partial(through_job, model=model, options=NmtOptions(beam=beam), workers=1)
    through(table[:100])  # converts the model
    for _ in range(rounds):  # in turns, since other load on the machine changes
        plain, spent = through(table)
        seconds["every row"] += spent
        once, spent = through(table, distinct=True)
        seconds["unique: source"] += spent
    for what, spent in seconds.items():
        measured.add(f"{what}: seconds", spent[0] / rounds)
        measured.add(f"{what}: processor seconds", spent[1] / rounds)
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
    measured.done("untranslated")


if __name__ == "__main__":
    command_line(main)
