"""A run of generated pairs from their translations to the data card, stage by stage.

python -m benchmarks.scale ROWS … [--workers N …] [--shard-rows N] [--folder FOLDER]

Makes a run folder whose translations are finished, and runs the real commands on it: `score`,
`bucket`, `select` (with duplicates, `size` and `where`; it writes report and data card), `select`
once more with nothing to do, and those that look at a run, for each number of workers. The column
"own" has the CPU seconds of the launcher alone. One pair in 50 repeats one of the shard before.
"""

import argparse
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console
from rich.table import Table

from benchmarks import generated
from benchmarks.measure import Cost, cost
from paraloom.beam_jobs.engine.launch import Result
from paraloom.beam_jobs.engine.shards import receipts
from paraloom.models.files import digest
from paraloom.pipeline.config import read_config
from paraloom.pipeline.run.journal import Journal
from paraloom.pipeline.run.plan import plan
from paraloom.pipeline.run.records import BackTranslateRecord, PairsRecord, StageRecord
from paraloom.pipeline.run.run import Run
from paraloom.pipeline.run.stage import pairs_record

COMMANDS: dict[str, tuple[str, ...]] = {
    "score": ("score", "--force"),
    "bucket": ("bucket", "--force"),
    "select, report, data card": ("select", "--force"),
    "nothing to do": ("select",),
}


def make_run(folder: Path, rows: int, shard_rows: int) -> Path:
    """Write a configuration and a run with finished translations; the configuration."""
    run = folder / "run"
    generated.write(run / "back_translate", rows, shard_rows=shard_rows, repeats=0.02)
    generated.write_vectors_for(folder)
    (folder / "pairs.tsv").write_text("generated\tgenerated\n")
    (run / "nmt").mkdir()
    (run / "nmt" / "model.txt").write_text("generated")
    values = {
        "run": str(run),
        "input": {"format": "tsv", "paths": [str(folder / "pairs.tsv")]},
        "score": {"paragram": str(folder / "vectors.txt")},
        "select": {
            "by": "paragram_similarity",
            "deciles": [5, 6, 7, 8, 9],
            "max_tokens": 30,
            "size": rows // 4,
            "where": ["trigram_overlap <= 0.9"],
        },
    }
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump(values))
    config = read_config(path)
    at_work = Run(config)
    steps, journal = plan(at_work), Journal(at_work)
    journal.begin(config, [step.path for step in steps], [], ())
    made: dict[str, StageRecord] = {
        "ingest": pairs_record(PairsRecord, Result(receipts=())),
        "nmt": StageRecord(digest=digest(run / "nmt")),
        "back_translate": pairs_record(
            BackTranslateRecord, Result(receipts=tuple(receipts(str(run / "back_translate"))))
        ),
    }
    for step in steps:
        if step.path in made:
            made[step.path].key = step.key()
            journal.finish(step, made[step.path])
    return path


def size(folder: Path) -> int:
    """Bytes of the files in a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def measure(folder: Path, rows: int, config: Path, workers: int) -> list[tuple[str, Cost, int]]:
    """Measure the commands of a run: name, cost, and bytes that were added on disk."""
    run, log = folder / "run", folder / "log.txt"
    paraloom = [sys.executable, "-m", "paraloom.pipeline.cli"]
    beam = ["--", "--direct_num_workers", str(workers)]
    found = []
    before = size(run / "back_translate")
    found.append(("input", Cost(0.0, 0.0, 0.0, 0, 0, 0), before))
    before = size(run)
    for name, arguments in COMMANDS.items():
        spent = cost([*paraloom, *arguments, "--config", str(config), *beam], log=log)
        found.append((name, spent, size(run) - before))
        before = size(run)
    asked: dict[str, tuple[str, ...]] = {
        "status": ("status", str(run)),
        "explain": ("explain", str(run), f"generated-{rows // 2}"),
        "compare": ("compare", str(run), str(run)),
    }
    for name, arguments in asked.items():
        found.append((name, cost([*paraloom, *arguments], log=log), 0))
    return found


def main(arguments: Sequence[str] = ()) -> dict[str, Any]:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale")
    parser.add_argument("--workers", type=int, nargs="+", default=[2])
    parser.add_argument("--shard-rows", type=int, default=10_000)
    parser.add_argument("--folder", type=Path, help="keep the runs in this folder")
    parser.add_argument("rows", type=int, nargs="*", default=[400_000, 2_000_000])
    options = parser.parse_args(arguments)
    columns = ("rows", "workers", "stage", "s", "rows/s", "CPU s", "own", "RSS MB", "PSS MB")
    table = Table(*columns, "files", "disk MB", title=f"{options.shard_rows:,} rows a shard")
    for column in table.columns[3:]:
        column.justify = "right"
    results: dict[str, Any] = {}
    for rows in options.rows:
        folder = options.folder and options.folder / str(rows)
        with tempfile.TemporaryDirectory() as temporary:
            if folder:
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir(parents=True)
            place = folder or Path(temporary)
            config = make_run(place, rows, options.shard_rows)
            for workers in options.workers:
                for name, spent, disk in measure(place, rows, config, workers):
                    results[f"{rows} {workers} {name}"] = (spent, disk)
                    seconds, cpu = spent.seconds, (spent.cpu_seconds, spent.own_seconds)
                    figures = (seconds, rows / seconds if seconds else 0, *cpu)
                    peaks = (spent.peak_rss / 1e6, spent.peak_pss / 1e6, spent.peak_files)
                    shown = (f"{each:,.1f}" if each in cpu else f"{each:,.0f}" for each in figures)
                    more = (f"{each:,.0f}" for each in (*peaks, disk / 1e6))
                    table.add_row(f"{rows:,}", str(workers), name, *shown, *more)
        table.add_section()
    Console(width=120).print(table)
    return results


if __name__ == "__main__":
    main(sys.argv[1:])
