"""Measures rates and BLEU of back-translation in float32 and in int8, with beam 12.

python -m benchmarks.back_translation [--model DIR] [--hub DIR_OR_NAME] [--sentences N]
    [--data DIR --from cs --to en]

The program measures a fairseq model and, with `--hub`, a model of the Hub. The translations in int8
are compared with the translations in float32. The sentences are the lines of `DIR/val.cs.gz`, and
their references are the lines of `DIR/val.en.gz`.
"""

import tempfile
import time
from pathlib import Path
from typing import Annotated

import numpy as np
import pyarrow as pa
import sacrebleu
import typer

from benchmarks.measure import DATA, MODEL, Measured, command_line, read_side
from paraloom.beam_jobs import back_translate
from paraloom.beam_jobs.engine import schema
from paraloom.beam_jobs.engine.shards import read_shard, units, write_shard
from paraloom.beam_jobs.transforms.translations import TranslatorFactory
from paraloom.models.cpu import cores
from paraloom.models.nmt.families.base import Languages
from paraloom.models.nmt.options import NmtOptions
from paraloom.models.nmt.translate import Translator

VARIANTS = {"float32": NmtOptions(), "int8": NmtOptions(compute_type="int8")}
"""The number types to measure. All types are compared with the first type."""

SHARD_ROWS = 1_000
"""Rows per shard, as in `configs/multi30k.yaml`. A batch does not cross the end of a shard."""


def through_job(
    table: pa.Table,
    model: str,
    options: NmtOptions,
    languages: Languages | None = None,
    *,
    rows: int = SHARD_ROWS,
    workers: int | None = None,
) -> tuple[pa.Table, float]:
    """Back-translate with the Beam job, and return the translated table and the job's seconds."""
    with tempfile.TemporaryDirectory() as folder:
        shards = [
            write_shard(f"{folder}/in/part-{first:06d}.parquet", table.slice(first, rows))
            for first in range(0, len(table), rows)
        ]
        factory = TranslatorFactory(model, options, languages)
        job = back_translate.TranslationJob(model=factory)
        arguments = ["--direct_num_workers", str(workers)] if workers else []
        started = time.monotonic()
        result = back_translate.run(units(shards, "key"), f"{folder}/out", job, arguments)
        seconds = time.monotonic() - started
        parts = [read_shard(shard) for receipt in result.receipts for shard in receipt.shards]
        return pa.concat_tables(parts), seconds


def main(
    model: str = MODEL,
    hub: Annotated[str, typer.Option(help="A model of the Hub, or a folder in its format.")] = "",
    source_language: Annotated[str, typer.Option("--from")] = "cs",
    target_language: Annotated[str, typer.Option("--to")] = "en",
    data: Path = DATA / "multi30k",
    sentences: int = 1_000_000,
) -> None:
    """Measure and print."""
    codes = (source_language, target_language)
    sides = [read_side(code, data, "val")[:sentences] for code in codes]
    table = pa.table([[str(i) for i in range(len(sides[0]))], *sides], schema=schema.INGEST)
    measured = Measured(f"Back-translation at beam 12, {len(table):,} sentences, {cores()} cores")
    measure(measured, table, model, "", Languages(*codes))
    if hub:
        measure(measured, table, hub, "Hub model, ", Languages(*codes))
    measured.done("back_translation")


def measure(measured: Measured, table: pa.Table, model: str, of: str, languages: Languages) -> None:
    """Measure the number types of a model, and compare them with float32."""
    rates, results = {}, {}
    source = table["source"].to_pylist()
    for name, choice in VARIANTS.items():
        translator = Translator(model, choice, languages=languages, threads=cores())
        translator.translate(source[:100])  # converts and warms up
        _, counters = translator.translate(source)
        del translator
        results[name], seconds = through_job(table, model, choice, languages)
        rates[name] = len(source) / seconds
        measured.add(f"{of}{name}: sentences/s through the job", rates[name])
        measured.add(f"{of}{name}: sentences/s of the bare engine", len(source) / counters.seconds)
        measured.add(f"{of}{name}: BLEU", bleu(results[name]))
        measured.ratio(f"{of}{name}: job's seconds against the engine's", seconds, counters.seconds)
    base, *others = rates
    for name in others:
        measured.ratio(f"{of}{name} against {base}, sentences/s", rates[name], rates[base])
        same, largest = compare(results[base], results[name])
        measured.add(f"{of}{name}: same translation as {base}, %", 100 * same)
        measured.add(f"{of}{name}: largest difference of scores of same translations", largest)


def bleu(made: pa.Table) -> float:
    """Return the BLEU of translations against their references."""
    references = [made["reference"].to_pylist()]
    return sacrebleu.corpus_bleu(made["translation"].to_pylist(), references).score


def compare(one: pa.Table, other: pa.Table) -> tuple[float, float]:
    """Return the share of equal translations, and the largest difference of their scores."""
    columns = ["id", "translation", "translation_score"]
    both = one.select(columns).join(
        other.select(columns), "id", right_suffix="_2", join_type="inner"
    )
    same = np.array(both["translation"].to_pylist()) == np.array(both["translation_2"].to_pylist())
    apart = np.abs(both["translation_score"].to_numpy() - both["translation_score_2"].to_numpy())
    return float(same.mean()), float(apart[same].max(initial=0))


if __name__ == "__main__":
    command_line(main)
