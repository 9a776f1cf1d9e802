"""Measures operations, requests and time of a run on a disk, S3 and Google Cloud Storage.

python -m benchmarks.stores [--shards N] [--rows N] [--places NAME] …
    [--receipts N --delay SECONDS]

The program runs `ingest`, `score`, `bucket` and `select` on generated pairs in many small shards,
with one worker. The stores are this machine's disk, moto's server and `gcp-storage-emulator`. Both
servers run in this process and count the requests. An operation is a call of
`paraloom.beam_jobs.storage`.

With `--receipts`, the program measures only how long it takes to read N receipts and to mark them
as outdated. The emulator of Google's store then answers each request after a delay.
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from benchmarks.report import ROOT, command_line, print_table
from benchmarks.scale import make_run
from paraloom.beam_jobs import storage
from paraloom.beam_jobs.engine import shards
from paraloom.beam_jobs.engine.options import connect

OPERATIONS = (
    *("open_file", "read_bytes", "write_bytes", "writing", "copy", "exists"),
    *("names", "sizes", "match", "remove", "size", "file_digest"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A store: the folder of the run, Beam options, environment variables, and counted requests."""

    folder: str
    options: Sequence[str] = ()
    env: dict[str, str]
    requests: Counter[str]


@contextmanager
def on_disk() -> Iterator[Place]:
    """Use a folder on this machine."""
    with tempfile.TemporaryDirectory() as folder:
        yield Place(folder=folder, env={}, requests=Counter())


@contextmanager
def on_s3() -> Iterator[Place]:
    """Start moto's server."""
    from werkzeug.serving import WSGIRequestHandler

    from tests import object_store

    requests: Counter[str] = Counter()

    def count(self: Any, *_: Any) -> None:
        requests[self.command] += 1

    before = WSGIRequestHandler.log_request
    WSGIRequestHandler.log_request = count  # type: ignore[method-assign, assignment]
    try:
        with object_store.object_store() as options:
            keys = object_store.KEYS
            yield Place(folder=object_store.BUCKET, options=options, env=keys, requests=requests)
    finally:
        WSGIRequestHandler.log_request = before  # type: ignore[method-assign]


@contextmanager
def on_google() -> Iterator[Place]:
    """Start the emulator of Google Cloud Storage."""
    from tests import google_store

    with google_store.google_store() as store:
        os.environ.update(store.env)
        yield Place(folder=google_store.BUCKET, env=store.env, requests=store.requests)


PLACES = {"disk": on_disk, "s3": on_s3, "gs": on_google}


def measure(name: str, shards_: int, rows: int) -> list[tuple[str, int, int, float]]:
    """Run the stages, and return each stage's name, operations, requests and seconds."""
    found = []
    with PLACES[name]() as place, tempfile.TemporaryDirectory() as scratch:
        connect(place.options)
        config = yaml.safe_load(make_run(Path(scratch), shards_ * rows, rows).read_text())
        folder = Path(scratch, "run")
        for path in (path for path in folder.rglob("*") if path.is_file()):
            if not path.name.startswith("."):
                target = f"{place.folder}/run/{path.relative_to(folder)}"
                storage.write_bytes(target, path.read_bytes())
        config["run"] = f"{place.folder}/run"
        Path(scratch, "made.yaml").write_text(yaml.safe_dump(config))
        pairs = "".join(f"a {i}\tb {i}\n" for i in range(shards_ * rows))
        storage.write_bytes(f"{place.folder}/pairs.tsv", pairs.encode())
        config["run"] = f"{place.folder}/other"
        config["input"] |= {"paths": [f"{place.folder}/pairs.tsv"], "shard_rows": rows}
        Path(scratch, "pairs.yaml").write_text(yaml.safe_dump(config))
        for stage in ("ingest", "score", "bucket", "select"):
            place.requests.clear()
            counted = Path(scratch, "operations.json")
            which = "pairs" if stage == "ingest" else "made"
            command = [sys.executable, __file__, "--inside", str(counted)]
            command += [stage, "--config", f"{scratch}/{which}.yaml", "--"]
            command += ["--direct_num_workers", "1", *place.options]
            env = {**os.environ, **place.env, "PYTHONPATH": str(ROOT)}
            env |= {"OMP_NUM_THREADS": "1", "XDG_CACHE_HOME": f"{scratch}/cache"}
            started = time.monotonic()
            subprocess.run(command, cwd=ROOT, env=env, check=True, capture_output=True)
            seconds = time.monotonic() - started
            operations: Counter[str] = Counter(json.loads(counted.read_text()))
            found.append((stage, operations.total(), place.requests.total(), seconds))
    return found


def inside(counted: Path, arguments: list[str]) -> int:
    """Run a command, write the counts of its operations, and return its exit status."""
    from paraloom.pipeline.cli import main as paraloom

    operations: Counter[str] = Counter()
    busy = threading.local()

    def counting(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **more: Any) -> Any:
            outer, busy.now = getattr(busy, "now", False), True
            operations[name] += not outer
            try:
                return function(*args, **more)
            finally:
                busy.now = outer

        return call

    for name in OPERATIONS:
        setattr(storage, name, counting(name, getattr(storage, name)))
    code = paraloom(arguments)
    counted.write_text(json.dumps(operations))
    return code


def measure_receipts(number: int, delay: float) -> None:
    """Print the time of reading and outdating receipts if each request takes `delay` seconds."""
    from tests import google_store

    with google_store.google_store() as store:
        os.environ.update(store.env)
        connect([])
        folder = f"{google_store.BUCKET}/score"
        for i in range(number):
            name = f"part-{i:05d}"
            receipt = shards.Receipt(name=name, key="key", rows_in=0, shards=(), rejected={})
            shards.write_receipt(folder, receipt)
        store.delay = delay
        for what in ("first", "second"):
            started = time.monotonic()
            found = shards.receipts(folder)
            print(f"{what} reading of {len(found)} receipts: {time.monotonic() - started:.1f} s")
        started = time.monotonic()
        shards.outdate(folder, found)  # one request for each receipt
        print(f"outdating of {len(found)}: {time.monotonic() - started:.1f} s")


def main(
    shards: int = 1000,
    rows: Annotated[int, typer.Option(help="Rows per shard.")] = 20,
    places: list[str] | None = None,
    receipts: int = 0,
    delay: float = 0.1,
) -> None:
    """Measure and print a table."""
    if receipts:
        measure_receipts(receipts, delay)
        return
    shown = [
        (name, stage, f"{operations:,}", f"{requests:,}", f"{seconds:.1f}")
        for name in places or PLACES
        for stage, operations, requests, seconds in measure(name, shards, rows)
    ]
    print_table(None, ("place", "stage"), ("operations", "requests", "s"), shown)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--inside"]:
        sys.exit(inside(Path(sys.argv[2]), sys.argv[3:]))
    command_line(main)
