"""Both engines in the Beam job, with the same model, sentences and beam: sentences/s and BLEU.

python -m benchmarks.back_translation --model DIR --source FILE --reference FILE [--sentences N]
"""

from __future__ import annotations

import argparse
import gzip
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import sacrebleu

from beam_jobs import back_translate
from beam_jobs.io import schema
from beam_jobs.io.shards import Shard, commit, content_key, read_shard, units
from benchmarks.report import Measured
from models.cpu import cores
from models.errors import UserError
from models.nmt.options import NmtOptions
from models.nmt.translate import Translator

VARIANTS = {
    "fairseq, float32": NmtOptions(engine="fairseq"),
    "ctranslate2, float32": NmtOptions(engine="ctranslate2"),
    "ctranslate2, int8": NmtOptions(engine="ctranslate2", compute_type="int8"),
}
SHARD_ROWS = 1_000
"""As in `configs/multi30k.yaml`; batches do not cross shards."""


def through_job(table: pa.Table, model: str, options: NmtOptions, folder: Path) -> Any:
    """Back-translate with the Beam job: the table with translations, and the seconds."""
    nothing = schema.rejected(schema.INGEST).empty_table()
    shards: list[Shard] = []
    for first in range(0, len(table), SHARD_ROWS):
        name, part = f"part-{first:06d}", table.slice(first, SHARD_ROWS)
        made = commit(str(folder / "in"), name, name, len(part), [(name, part, nothing)], started=0)
        shards += made.shards
    work = units(shards, content_key(repr(options)))
    started = time.monotonic()
    result = back_translate.run(work, str(folder / "out"), model, options, [])
    seconds = time.monotonic() - started
    parts = [read_shard(shard) for receipt in result.receipts for shard in receipt.shards]
    return pa.concat_tables(parts), seconds


def main(arguments: Sequence[str] = ()) -> dict[str, Any]:
    """Measure and print."""
    data = Path(os.environ.get("PARALOOM_DATA", "../shared/data"))
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default=str(data.parent / "nmt" / "multi30k-cs-en"))
    parser.add_argument("--source", type=Path, default=data / "multi30k" / "val.cs.gz")
    parser.add_argument("--reference", type=Path, default=data / "multi30k" / "val.en.gz")
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
    rates, results = {}, {}
    measured = Measured(f"Back-translation at beam 12, {len(source):,} sentences, {cores()} cores")
    for name, choice in VARIANTS.items():
        translator = Translator(options.model, choice, threads=cores())
        translator.translate(source[:100])  # converts and warms up
        _, counters = translator.translate(source)
        del translator
        with tempfile.TemporaryDirectory() as folder:
            results[name], seconds = through_job(table, options.model, choice, Path(folder))
        rates[name] = len(source) / seconds
        bleu = sacrebleu.corpus_bleu(results[name]["translation"].to_pylist(), [reference]).score
        measured.add(f"{name}: sentences/s through the job", rates[name])
        measured.add(f"{name}: sentences/s of the bare engine", len(source) / counters.seconds)
        measured.add(f"{name}: BLEU", bleu)
        measured.ratio(f"{name}: job's seconds against the engine's", seconds, counters.seconds)
    base = "fairseq, float32"
    for name in rates:
        if name != base:
            measured.ratio(f"{name} against {base}, sentences/s", rates[name], rates[base])
            same, largest = compare(results[base], results[name])
            measured.add(f"{name}: same translation as {base}, %", 100 * same)
            measured.add(f"{name}: largest difference of score where so", largest)
    return measured.done("back_translation")


def compare(one: pa.Table, other: pa.Table) -> tuple[float, float]:
    """Share of equal translations, and the largest score difference among them."""
    same = np.array(one["translation"].to_pylist()) == np.array(other["translation"].to_pylist())
    scores = [table["translation_score"].to_numpy() for table in (one, other)]
    return float(same.mean()), float(np.abs(scores[0] - scores[1])[same].max())


if __name__ == "__main__":
    main(sys.argv[1:])
