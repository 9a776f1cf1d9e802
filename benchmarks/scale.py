"""Measures time, memory and disk space of commands on a run of generated pairs.

python -m benchmarks.scale ROWS … [--workers N] … [--shard-rows N]

The program makes a run folder with finished translations and runs the real commands on it, for each
number of workers. The run is below `TMPDIR`, and is removed afterwards.

The column "own" has the CPU seconds of the launcher alone. From the second shard on, one pair in 50
repeats a pair of the previous shard.
"""

import tempfile
from pathlib import Path
from typing import Annotated

import typer
import yaml

from benchmarks import generated
from benchmarks.measure import Cost, command_line, cost, paraloom, print_table
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


def make_run(
    folder: Path, rows: int, shard_rows: int, changes: generated.Changes | None = None
) -> Path:
    """Write a run with finished translations, and return the path of its configuration."""
    run = folder / "run"
    made = run / "back_translate"
    generated.write(made, rows, shard_rows=shard_rows, repeats=0.02, changes=changes)
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
    records: dict[str, StageRecord] = {
        "ingest": pairs_record(PairsRecord, Result(receipts=())),
        "nmt": StageRecord(digest=digest(run / "nmt")),
        "back_translate": pairs_record(
            BackTranslateRecord, Result(receipts=tuple(receipts(str(made))))
        ),
    }
    for step in steps:
        if step.path in records:
            records[step.path].key = step.key()
            journal.finish(step, records[step.path])
    return path


def size(folder: Path) -> int:
    """Return the size of the files in a folder, in bytes."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def measure(folder: Path, rows: int, config: Path, workers: int) -> list[tuple[str, Cost, int]]:
    """Return the name, cost and added bytes on disk of each command."""
    run, log = folder / "run", folder / "log.txt"
    found = [("input", Cost(), size(run / "back_translate"))]
    for name, arguments in COMMANDS.items():
        before = size(run)
        command = paraloom(*arguments, "--config", str(config), workers=workers)
        found.append((name, cost(command, log=log), size(run) - before))
    others = {"status": (), "explain": (f"generated-{rows // 2}",), "compare": (str(run),)}
    for name, more in others.items():
        found.append((name, cost(paraloom(name, str(run), *more), log=log), 0))
    return found


def main(
    rows: Annotated[list[int] | None, typer.Argument()] = None,
    workers: list[int] | None = None,
    shard_rows: int = 10_000,
) -> None:
    """Measure and print a table."""
    shown = []
    for count in rows or (400_000, 2_000_000):
        with tempfile.TemporaryDirectory() as temporary:
            config = make_run(Path(temporary), count, shard_rows)
            for number in workers or (2,):
                for name, spent, disk in measure(Path(temporary), count, config, number):
                    rate = count / spent.seconds if spent.seconds else 0
                    peaks = (spent.peak_rss / 1e6, spent.peak_pss / 1e6, spent.peak_files)
                    own = (f"{spent.cpu_seconds:,.1f}", f"{spent.own_seconds:,.1f}")
                    more = (f"{each:,.0f}" for each in (*peaks, disk / 1e6))
                    which = (f"{count:,}", str(number), name)
                    shown.append((*which, f"{spent.seconds:,.0f}", f"{rate:,.0f}", *own, *more))
    heads = ("s", "rows/s", "CPU s", "own", "RSS MB", "PSS MB", "files", "disk MB")
    print_table(f"{shard_rows:,} rows a shard", ("rows", "workers", "stage"), heads, shown)


if __name__ == "__main__":
    command_line(main)
