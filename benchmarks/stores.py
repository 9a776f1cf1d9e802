"""Measures requests and time of a run on emulators of S3 and Google Cloud Storage.

python -m benchmarks.stores [--shards N] [--rows N]

The program runs `ingest`, `score`, `bucket` and `select` on generated pairs in many small shards,
with one worker. moto's server emulates S3, and `gcp-storage-emulator` emulates Google's store. Both
servers run in this process and count the requests.
"""

import os
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
import yaml

from benchmarks.measure import command_line, cost, paraloom, print_table
from benchmarks.scale import make_run
from paraloom.beam_jobs import storage
from paraloom.beam_jobs.engine.options import connect


class EmulatedStore(NamedTuple):
    """The bucket, Beam options and counted requests of a store."""

    bucket: str
    options: Sequence[str]
    requests: Counter[str]


@contextmanager
def on_s3() -> Iterator[EmulatedStore]:
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
            yield EmulatedStore(object_store.BUCKET, options, requests)
    finally:
        WSGIRequestHandler.log_request = before  # type: ignore[method-assign]


@contextmanager
def on_google() -> Iterator[EmulatedStore]:
    """Start the emulator of Google Cloud Storage."""
    from tests import google_store

    with google_store.google_store() as store:
        os.environ.update(store.env)
        yield EmulatedStore(google_store.BUCKET, (), store.requests)


def measure(store: EmulatedStore, shards: int, rows: int) -> list[tuple[str, int, float]]:
    """Run the stages, and return each stage's name, requests and seconds."""
    found = []
    with tempfile.TemporaryDirectory() as scratch:
        connect(store.options)
        config = yaml.safe_load(make_run(Path(scratch), shards * rows, rows).read_text())
        folder = Path(scratch, "run")
        for path in (path for path in folder.rglob("*") if path.is_file()):
            if not path.name.startswith("."):
                target = f"{store.bucket}/run/{path.relative_to(folder)}"
                storage.write_bytes(target, path.read_bytes())
        config["run"] = f"{store.bucket}/run"
        Path(scratch, "made.yaml").write_text(yaml.safe_dump(config))
        pairs = "".join(f"a {i}\tb {i}\n" for i in range(shards * rows))
        storage.write_bytes(f"{store.bucket}/pairs.tsv", pairs.encode())
        config["run"] = f"{store.bucket}/other"
        config["input"] |= {"paths": [f"{store.bucket}/pairs.tsv"], "shard_rows": rows}
        Path(scratch, "pairs.yaml").write_text(yaml.safe_dump(config))
        os.environ["XDG_CACHE_HOME"] = f"{scratch}/cache"  # for the commands, which copy files
        for stage in ("ingest", "score", "bucket", "select"):
            store.requests.clear()
            name = "pairs" if stage == "ingest" else "made"
            command = paraloom(stage, "--config", f"{scratch}/{name}.yaml", workers=1)
            used = cost([*command, *store.options], log=Path(scratch, "log.txt"))
            found.append((stage, store.requests.total(), used.seconds))
    return found


def main(
    shards: int = 1000,
    rows: Annotated[int, typer.Option(help="Rows per shard.")] = 20,
) -> None:
    """Measure and print a table."""
    shown = []
    for name, start in {"s3": on_s3, "gs": on_google}.items():
        with start() as store:
            for stage, requests, seconds in measure(store, shards, rows):
                each = f"{requests / shards:,.1f}"
                shown.append((name, stage, f"{requests:,}", each, f"{seconds:.1f}"))
    print_table(None, ("store", "stage"), ("requests", "a shard", "s"), shown)


if __name__ == "__main__":
    command_line(main)
