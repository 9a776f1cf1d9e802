"""The sample corpus, input and run in an object store: killed, resumed elsewhere, as a local run.

`python -m tests.faults.object_storage [s3 | gs]`; both one after the other without a name.
"""

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import yaml

from paraloom.beam_jobs import storage
from paraloom.beam_jobs.engine.options import connect
from paraloom.beam_jobs.storage import remote
from tests.faults.ground import HERE, Ground, main
from tests.google_store import BUCKET as GOOGLE_BUCKET
from tests.google_store import google_store
from tests.object_store import BUCKET, KEYS, object_store
from tests.run_helpers import ran
from tests.sample import PHRASES, SAMPLE, SIMILARITY, sample_rows

SMALL: dict[str, dict[str, Any]] = {
    "input": {"format": "czeng16", "shard_rows": 60},
    "nmt": {
        "beam": 2,
        "training": {
            **{"pieces": 500, "layers": 1, "dim": 64, "heads": 2, "ffn": 128, "updates": 150},
            **{"warmup": 30, "learning_rate": 0.005, "batch_tokens": 800, "checkpoints": 2},
            "held_out": 50,
        },
    },
    "score": {"training": {"dim": 16, "epochs": 1}},
    "select": {"deciles": None},
    "embeddings": {"dim": 16, "epochs": 1},
}


@contextmanager
def store(name: str) -> Iterator[tuple[str, dict[str, str], list[str]]]:
    """A bucket, and the environment and the Beam options that lead there."""
    if name == "s3":
        with object_store() as options:
            yield BUCKET, KEYS, options
    else:
        with google_store() as google:
            os.environ.update(google.env)
            yield GOOGLE_BUCKET, google.env, []


def fault(ground: Ground) -> None:
    """Run all stages on this machine's disk, and in each object store."""
    os.environ["XDG_CACHE_HOME"] = ground.env["XDG_CACHE_HOME"] = str(ground.folder / "cache")
    configure(ground, "local", str(ground.folder))
    ground.finish("local", stage="corpus")
    ground.say("ran on this machine's disk")
    for name in {"s3", "gs"} & set(sys.argv[1:]) or ("s3", "gs"):
        in_store(ground, name)


def in_store(ground: Ground, name: str) -> None:
    """Run all stages with input and run folder in a store, and kill them in the middle."""
    ground.say(f"now in {name}://")
    with store(name) as (bucket, env, options):
        ground.env.update(env)
        ground.beam = (*HERE, *options)
        connect(options)
        configure(ground, "remote", bucket)
        run = f"{bucket}/run"

        def shards() -> dict[str, bytes]:
            found = storage.match(f"{run}/back_translate/_receipts/*")
            return {entry.path: storage.read_bytes(entry.path) for entry in found}

        process = ground.start("remote", stage="corpus")
        ground.until(lambda: len(shards()) >= 3, process, every=0.2)
        ground.kill(process)
        before = shards()
        ground.say(f"killed after {len(before)} shards were translated")
        shutil.rmtree(ground.env["XDG_CACHE_HOME"])
        ground.say("removed this machine's copies, as if it were another one that goes on")
        said = ground.finish("remote", stage="corpus")
        ground.say("gave the command again")
        stages = ran(said)
        said = f"it goes on with {stages[0]}, without training the translation model again"
        ground.expect(said, stages[0] == "back_translate")
        now = shards()
        kept = sum(now[path] == content for path, content in before.items())
        ground.expect(f"{kept} of {len(before)} finished shards stayed", kept == len(before) > 0)
        ground.same(run, str(ground.folder / "run"))
        for name in ("embeddings/model.safetensors", "evaluation.json", "corpus.tsv.gz"):
            here = Path(ground.folder, "run", name).read_bytes()
            ground.expect(f"{name} is the same", here == storage.read_bytes(f"{run}/{name}"))
        left = [path.name for path in remote.local_workdir(run).iterdir() if path.name != ".lock"]
        ground.expect(f"of the run this machine keeps {left} alone", left == ["logs"])
        again = ground.finish("remote", stage="corpus")
        ground.expect("given once more, the command does nothing", " …" not in again)


def configure(ground: Ground, name: str, place: str) -> None:
    """The sample corpus, small, below `place`."""
    config = {section: dict(values) for section, values in SMALL.items()}
    rows = b"\n".join(islice(sample_rows(), 600))
    storage.write_bytes(f"{place}/sample/rows.tsv", rows)
    for path in (PHRASES, *SIMILARITY.rglob("*.tsv")):
        below = path.relative_to(SAMPLE).as_posix()
        storage.write_bytes(f"{place}/sample/{below}", path.read_bytes())
    config["input"]["paths"] = [f"{place}/sample/rows.tsv"]
    config["score"]["phrases"] = f"{place}/sample/phrases.tsv.gz"
    config["evaluate"] = {"sts": f"{place}/sample/similarity"}
    (ground.folder / f"{name}.yaml").write_text(yaml.safe_dump({"run": f"{place}/run", **config}))


if __name__ == "__main__":
    sys.exit(main(fault, __doc__))
