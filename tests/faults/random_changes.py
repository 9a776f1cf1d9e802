"""Keys of one run's configuration change at random, with kills between: it says what it is.

`PARALOOM_STEPS` is the number of changes (40), `PARALOOM_SEED` chooses them. After each, a command
for some stage ends or is killed; what then stands must be of this configuration or be told as an
earlier one's. The whole command follows: rows and every page must be those of a fresh run.
"""

import difflib
import json
import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

import yaml

from paraloom.beam_jobs.engine.shards import read_shard
from paraloom.pipeline.commands.run.status import status
from paraloom.pipeline.config.options import Config
from paraloom.pipeline.run.folder import current, outdated, read_run, shards_of
from paraloom.pipeline.stages import PAIR_STAGES
from tests.faults.ground import Ground, main, told
from tests.sample import LABELLED, PHRASES, SIMILARITY

NAME = "changed"
CARD = "README.md"
TEXTS = (".md", ".json", ".yaml", ".html")
COMMANDS = ("ingest", "back-translate", "score", "bucket", "select", "train-embeddings", "corpus")

ALL = ["translation_score", "trigram_overlap", "paragram_similarity", "mean_idf", "unigram_f1"]
KEYS: dict[str, tuple[Any, ...]] = {
    "seed": (1, 2, 3),
    "max_rejected": (0.9, 1.0),
    "input.shard_rows": (20, 45),
    "input.source_language": ("cs", "ces"),
    "input.license": ("cc-by-4.0", "cc0-1.0"),
    "input.where": ([], ["reference_tokens <= 6"], ["reference_characters >= 12"]),
    "input.unique": (None, "source", "pair"),
    "nmt.beam": (2, 3),
    "nmt.candidates": (1, 2),
    "nmt.sampling": (None, {"top_k": 5}, {"top_k": 3, "temperature": 0.7}),
    "nmt.compute_type": ("float32", "int8"),
    "nmt.batch_tokens": (1, 2),  # a sentence a batch, so that kept scores are those of a fresh run
    "nmt.max_source_subwords": (200, 12),
    "score.scorers": (ALL[:2], ALL[:3], ALL[:4], ALL[1:], [*ALL[:2], "edit_distance"]),
    "score.training.dim": (8, 12),
    "score.training.epochs": (1, 2),
    "select.by": ("trigram_overlap", "translation_score", "unigram_f1", "auto"),
    "select.deciles": ([2, 3, 4, 5, 6], [1, 3, 4, 5, 7, 9], None),
    "select.max_tokens": (30, 9, None),
    "select.size": (None, 40),
    "select.per_source": ("diverse", "best", "all"),
    "select.max_overlap": (0.5, 0.2),
    "select.where": ([], ["reference_tokens >= 4"], ["trigram_overlap <= 0.9"]),
    "select.good": (70.0, 60.0),
    "select.auto.pairs": (20, 30),
    "select.auto.seeds": (1, 2),
    "embeddings.model": ("word-avg", "trigram-avg"),
    "embeddings.dim": (8, 12),
    "embeddings.epochs": (1, 2),
    "embeddings.batch_size": (10, 20),
    "embeddings.mega_batch": (2, 1),
    "embeddings.margin": (0.4, 0.5),
    "embeddings.dropout": (0.0, 0.2),
    "embeddings.max_vocabulary": (200_000, 50),
    "loop.rounds": (1, 1, 2),
    "evaluate.sts": (None, str(SIMILARITY)),
}
"""Values of each key that changes; the first ones are those of the beginning."""

VOLATILE = re.compile(r".*seconds|.*_per_second|peak_memory|metrics|run|key|digest|sha256|bytes")
"""Fields of records that may differ between two runs of one configuration."""


def fault(ground: Ground) -> None:
    """Change as often as the environment says."""
    steps, seed = (int(os.environ.get(f"PARALOOM_{n}", d)) for n, d in (("STEPS", 40), ("SEED", 1)))
    change(ground, steps, seed)


def change(
    ground: Ground, steps: int, seed: int, commands: Sequence[str] = COMMANDS, kills: float = 0.5
) -> None:
    """Change keys that many times; every step is compared with a fresh run.

    `kills` is the share of the commands that are killed.
    """
    chance = random.Random(seed)
    keys = {key: values[0] for key, values in KEYS.items()}
    run, before, other = (ground.folder / name / "run" for name in (NAME, "one", "other"))
    ground.expect("the first run ends well", _fresh(ground, before, keys))
    shutil.copytree(before, run)
    done, killed, changed = 0, 0, set[str]()
    while done < steps and ground.ok:
        some = chance.sample(sorted(KEYS), chance.choice((1, 1, 2, 4)))
        tried = {**keys, **{key: chance.choice(KEYS[key]) for key in some}}
        if tried == keys or not _fresh(ground, other, tried):
            continue
        _write(ground, run, tried)
        command, kill = chance.choice(commands), chance.random() < kills
        ground.say(f"{', '.join(some)}: {command}{', killed' if kill else ''}")
        if kill:
            _kill(ground, command, chance.uniform(1.5, 9))
        else:
            ground.expect(f"{command} ends well", _command(ground, command, run) == 0)
        _truthful(ground, run, before, other)
        ground.expect("corpus ends well", _command(ground, "corpus", run) == 0)
        _equal(ground, run, other)
        keys, before, other = tried, other, before
        done, killed, changed = done + 1, killed + kill, changed | set(some)
    ground.say(f"seed {seed}: {done} steps, {len(changed)} keys, {killed} kills")


def _truthful(ground: Ground, run: Path, before: Path, fresh: Path) -> None:
    """See that what a run has and says is of its configuration, or of the one before as such."""
    record = read_run(str(run))
    begun = _config(run) == _config(fresh)  # or it was killed before
    now = fresh if begun else before
    for stage in status(str(run)):
        if stage.name in PAIR_STAGES and stage.state in ("finished", "outdated"):
            expected = now if stage.state == "finished" else before
            ground.expect(
                f"{stage.name} is {stage.state}: rows of {expected.parent.name}",
                _rows(run, stage.name) == _rows(expected, stage.name),
            )
    if "select" not in record.stages:
        ground.expect("nothing to publish", _publish(run) == 2)
        return
    stale = "select" in outdated(record)
    expected = before if stale else now
    ground.expect("rows of the corpus", _rows(run, "corpus") == _rows(expected, "corpus"))
    _same(ground, "explain", *(_explained(each) for each in (run, expected)))
    if (run / CARD).exists() and not record.under_way:
        _same(ground, "data card", *((each / CARD).read_text() for each in (run, expected)))
    wanted, said = (2, "refuses") if stale else (0, "works")
    ground.expect(f"publish {said}", _publish(run) == wanted)


def _equal(ground: Ground, run: Path, fresh: Path) -> None:
    """See that a finished run has the rows and the pages of a fresh one, and say the same."""
    ground.same(str(run), str(fresh))
    for each in (run, fresh):
        ground.expect("publish works", _publish(each) == 0)
    names = sorted(str(path.relative_to(fresh)) for path in _pages(fresh))
    _same(ground, "names of pages", names, sorted(str(p.relative_to(run)) for p in _pages(run)))
    for name in names:
        _same(ground, name, *(_plain(each / name) for each in (run, fresh)))
    _same(ground, "explain", _explained(run), _explained(fresh))
    states = {stage.state for stage in status(str(run))}
    ground.expect(f"status: {states}", states == {"finished"})
    card, corpus = (run / CARD).read_text(), _rows(run, "corpus")
    ground.expect("rows in the card", f"{len(corpus):,} pairs" in card)
    record = current(read_run(str(run)))
    if record.config.select.deciles is not None and record.config.select.by != "auto":
        by = record.best.config.select.by
        found = {row[f"{by}_decile"] for row in corpus}
        ground.expect("deciles of the corpus", found <= set(record.config.select.deciles))


def _same(ground: Ground, what: str, first: Any, second: Any) -> None:
    """See that two texts are equal; print where they are not."""
    ground.expect(what, first == second)
    if first != second:
        one, other = (str(each).splitlines() for each in (first, second))
        print("\n".join(islice(difflib.unified_diff(one, other, "run", "fresh", n=0), 40)))


def _config(run: Path) -> dict[str, Any]:
    """The configuration in a run's manifest, without the name of its folder."""
    return {**read_run(str(run)).config.model_dump(mode="json"), "run": ""}


def _rows(run: Path, stage: str) -> list[dict[str, Any]]:
    """The rows of a stage's part files, in order."""
    return [row for shard in shards_of(str(run), stage) for row in read_shard(shard).to_pylist()]


def _pages(run: Path) -> list[Path]:
    """What describes a run, and its release."""
    texts = [run / CARD, run / "embeddings/README.md", run / "report/index.html"]
    return [*texts, *(path for path in (run / "release").rglob("*") if path.suffix in TEXTS)]


def _plain(path: Path) -> str:
    """A page without the seconds, bytes and digests that differ between equal runs."""
    text = path.read_text("utf-8")
    if path.suffix == ".json":
        return json.dumps(_without_volatile(json.loads(text)), indent=1)
    text = text.replace(str(path.parents[1]), "RUN")
    text = text.replace("\ncell: torch", "")  # known in this process only: it imports the papers
    return re.sub(r'<section id="stages".*?</section>', "", text, flags=re.S)


def _without_volatile(value: Any) -> Any:
    if isinstance(value, dict):
        return {n: _without_volatile(v) for n, v in value.items() if not VOLATILE.fullmatch(n)}
    return [_without_volatile(item) for item in value] if isinstance(value, list) else value


def _explained(run: Path) -> str:
    """What `explain` says of some pairs, in the corpus and not."""
    ids = dict.fromkeys(row["id"] for row in (*_rows(run, "corpus")[:2], *_rows(run, "ingest")[:3]))
    texts = (told("explain", str(run), str(id))[1] for id in ids)
    return "".join(text.partition("outdated, made by")[0] for text in texts)


def _publish(run: Path) -> int:
    return told("publish", str(run), "--held-out", "0")[0]


def _fresh(ground: Ground, run: Path, keys: dict[str, Any]) -> bool:
    """Make a run of a configuration from nothing; False if it cannot be made."""
    shutil.rmtree(run, ignore_errors=True)
    try:
        _write(ground, run, keys)
    except ValueError:
        return False
    return _command(ground, "corpus", run) == 0


def _write(ground: Ground, run: Path, keys: dict[str, Any]) -> None:
    """Write a configuration with the values of all keys.

    Raises:
        ValueError: they do not fit together.
    """
    values: dict[str, Any] = {
        "run": str(run),
        "input": {"format": "moses", "paths": ground.paths},
        "nmt": {"model": str(ground.model)},
        "score": {"phrases": str(PHRASES)},
        "select": {"labelled": str(LABELLED)},
    }
    for key, value in keys.items():
        *sections, last = key.split(".")
        place = values
        for section in sections:
            place = place.setdefault(section, {})
        place[last] = value
    Config.of(values)
    (ground.folder / f"{run.parent.name}.yaml").write_text(yaml.safe_dump(values))


def _command(ground: Ground, command: str, run: Path) -> int:
    """Give a command for stages, to its end; its exit code."""
    config = ground.folder / f"{run.parent.name}.yaml"
    code, text = told(command, "--config", str(config), "--", *ground.beam)
    if code not in (0, 2):
        print(text)
    return code


def _kill(ground: Ground, command: str, seconds: float) -> None:
    """Give a command and kill it and its workers after some seconds."""
    process = ground.start(NAME, stage=command)
    with suppress(subprocess.TimeoutExpired):
        process.communicate(timeout=seconds)
    if process.poll() is None:
        ground.kill(process)


if __name__ == "__main__":
    sys.exit(main(fault, __doc__))
