"""Number types in the Beam job, with the same sentences and beam: sentences/s and BLEU.

Of a fairseq model and, with --hub, of a model of the Hub. Their translations are compared.

python -m benchmarks.back_translation --model DIR --source FILE --reference FILE [--sentences N]
    [--hub DIR_OR_NAME --from cs --to en]
"""

import argparse
import gzip
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import sacrebleu

from benchmarks.report import DATA, MODEL, Measured
from paraloom.beam_jobs import back_translate
from paraloom.beam_jobs.engine import schema
from paraloom.beam_jobs.engine.shards import Shard, commit, content_key, read_shard, units
from paraloom.beam_jobs.transforms.translations import TranslatorFactory
from paraloom.models.cpu import cores
from paraloom.models.errors import UserError
from paraloom.models.nmt.families.base import Languages
from paraloom.models.nmt.options import NmtOptions
from paraloom.models.nmt.translate import Translator

VARIANTS = {"float32": NmtOptions(), "int8": NmtOptions(compute_type="int8")}
"""The first is what the others are compared with."""

SHARD_ROWS = 1_000
"""As in `configs/multi30k.yaml`; batches do not cross shards."""


def through_job(
    table: pa.Table,
    model: str,
    options: NmtOptions,
    folder: Path,
    languages: Languages | None,
    rows: int = SHARD_ROWS,
    arguments: Sequence[str] = (),
) -> Any:
    """Back-translate with the Beam job: the table with translations, and the seconds."""
    nothing = schema.rejected(schema.INGEST).empty_table()
    shards: list[Shard] = []
    for first in range(0, len(table), rows):
        name, part = f"part-{first:06d}", table.slice(first, rows)
        made = commit(str(folder / "in"), name, name, len(part), [(name, part, nothing)], started=0)
        shards += made.shards
    work = units(shards, content_key(repr(options)))
    job = back_translate.TranslationJob(model=TranslatorFactory(model, options, languages))
    started = time.monotonic()
    result = back_translate.run(work, str(folder / "out"), job, arguments)
    seconds = time.monotonic() - started
    parts = [read_shard(shard) for receipt in result.receipts for shard in receipt.shards]
    return pa.concat_tables(parts), seconds


def main(arguments: Sequence[str] = ()) -> dict[str, Any]:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default=MODEL)
    parser.add_argument("--hub", help="a model of the Hub, or a folder in its format")
    parser.add_argument("--from", dest="source_language", default="cs")
    parser.add_argument("--to", dest="target_language", default="en")
    parser.add_argument("--source", type=Path, default=DATA / "multi30k" / "val.cs.gz")
    parser.add_argument("--reference", type=Path, default=DATA / "multi30k" / "val.en.gz")
    parser.add_argument("--sentences", type=int, default=1_000_000)
    options = parser.parse_args(arguments)
    sides = []
    for path in (options.source, options.reference):
        if not path.is_file():
            raise UserError(f"{path}: not there; give --model, --source and --reference")
        with gzip.open(path, "rt", encoding="utf-8") as stream:
            sides.append(stream.read().split("\n")[:-1][: options.sentences])
    source, reference = sides
    ids = [str(i) for i in range(len(source))]
    table = pa.table([ids, source, reference], schema=schema.INGEST)
    measured = Measured(f"Back-translation at beam 12, {len(source):,} sentences, {cores()} cores")
    languages = Languages(options.source_language, options.target_language)
    measure(measured, table, options.model, "", languages)
    if options.hub:
        measure(measured, table, options.hub, "Hub model, ", languages)
    return measured.done("back_translation")


def measure(measured: Measured, table: pa.Table, model: str, of: str, languages: Languages) -> None:
    """Measure the number types of a model, and compare them with float32."""
    rates, results = {}, {}
    source = table["source"].to_pylist()
    for name, choice in VARIANTS.items():
        translator = Translator(model, choice, languages=languages, threads=cores())
        translator.translate(source[:100])  # converts and warms up
        _, counters = translator.translate(source)
        del translator
        with tempfile.TemporaryDirectory() as folder:
            results[name], seconds = through_job(table, model, choice, Path(folder), languages)
        rates[name] = len(source) / seconds
        made = results[name]
        references = [made["reference"].to_pylist()]
        bleu = sacrebleu.corpus_bleu(made["translation"].to_pylist(), references).score
        measured.add(f"{of}{name}: sentences/s through the job", rates[name])
        measured.add(f"{of}{name}: sentences/s of the bare engine", len(source) / counters.seconds)
        measured.add(f"{of}{name}: BLEU", bleu)
        measured.ratio(f"{of}{name}: job's seconds against the engine's", seconds, counters.seconds)
    base = next(iter(rates))
    for name in list(rates)[1:]:
        measured.ratio(f"{of}{name} against {base}, sentences/s", rates[name], rates[base])
        same, largest = compare(results[base], results[name])
        measured.add(f"{of}{name}: same translation as {base}, %", 100 * same)
        measured.add(f"{of}{name}: largest difference of score where so", largest)


def compare(one: pa.Table, other: pa.Table) -> tuple[float, float]:
    """Share of equal translations, and the largest score difference among them."""
    columns = ["id", "translation", "translation_score"]
    both = one.select(columns).join(
        other.select(columns), "id", right_suffix="_2", join_type="inner"
    )
    same = np.array(both["translation"].to_pylist()) == np.array(both["translation_2"].to_pylist())
    apart = np.abs(both["translation_score"].to_numpy() - both["translation_score_2"].to_numpy())
    return float(same.mean()), float(apart[same].max(initial=0))


if __name__ == "__main__":
    main(sys.argv[1:])
