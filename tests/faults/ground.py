"""What the scripts of this folder share: a small run of the sample, and a look at what it left.

`python -m tests.faults.NAME` starts a script: a function `fault(ground)` that breaks something and
looks whether the corpus is, in the end, that of an undisturbed run. It prints what it did and what
it found; its exit code is 0 if all of that is as it should be.
"""

import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import Any

import yaml

from paraloom.pipeline.cli import main as paraloom
from tests.run_helpers import started
from tests.sample import MODEL
from tests.small_model import new_pairs

SENTENCES, SHARD = 240, 20
HERE = ("--direct_num_workers", "2")


def told(*arguments: str) -> tuple[int, str]:
    """Give a command within this process: its exit code and what it said."""
    out = io.StringIO()
    with redirect_stdout(out), redirect_stderr(out):
        code = paraloom(arguments)
    return code, out.getvalue()


class Ground:
    """A folder with an input, its configurations, and the runs that are made of it."""

    def __init__(
        self, folder: Path, model: Path, beam: Sequence[str] = HERE, whole: Path | None = None
    ) -> None:
        """Write the input; `model` translates it, `beam` are the options that runs have.

        `whole` is a finished run of this input to compare with; without it one is made.
        """
        self.folder, self.model, self.beam, self.whole = folder, model, tuple(beam), whole
        self.ok, self.started = True, time.monotonic()
        self.env: dict[str, str] = {}
        self.paths = {}
        lines = zip(*new_pairs(SENTENCES), strict=True)
        for side, texts in zip(("source", "reference"), lines, strict=True):
            self.paths[side] = str(folder / f"{side}.txt")
            text = "".join(f"{line}\n" for line in texts)
            Path(self.paths[side]).write_text(text, encoding="utf-8")

    def say(self, text: str) -> None:
        """Print what was done, and when."""
        print(f"  {text} ({time.monotonic() - self.started:.0f} s)", flush=True)

    def expect(self, what: str, holds: bool) -> None:
        """Print what was found, and remember if it is not as it should be."""
        self.ok &= holds
        print(f"  {'yes' if holds else 'NO '}  {what}", flush=True)

    def configure(self, name: str) -> None:
        """Write the configuration of the run `name`."""
        config = {
            "run": str(self.folder / name),
            "input": {"format": "moses", "paths": self.paths, "shard_rows": SHARD},
            "nmt": {"model": str(self.model), "beam": 12},
            "score": {"scorers": ["translation_score", "trigram_overlap"]},
            "select": {"by": "trigram_overlap", "deciles": [2, 3, 4, 5, 6]},
        }
        (self.folder / f"{name}.yaml").write_text(yaml.safe_dump(config))

    def start(self, name: str, *, stage: str = "select") -> subprocess.Popen[str]:
        """Give the command, in a process group of its own."""
        command = [stage, "--config", str(self.folder / f"{name}.yaml"), "--", *self.beam]
        return started(*command, env=self.env, stdout=subprocess.DEVNULL)

    def finish(self, name: str, *, stage: str = "select") -> str:
        """Give the command, wait for its end, and give what it said."""
        process = self.start(name, stage=stage)
        _, said = process.communicate()
        if process.returncode:
            self.expect("the command ends with exit code 0", False)
            print(said, file=sys.stderr)
        return said

    def undisturbed(self) -> str:
        """A run that nothing happens to."""
        if self.whole is None:
            self.configure("undisturbed")
            self.finish("undisturbed")
            self.whole = self.folder / "undisturbed"
        return str(self.whole)

    def until(
        self, holds: Callable[[], bool], process: subprocess.Popen[str], every: float = 0.005
    ) -> None:
        """Wait for a moment while the command runs, and look every so many seconds."""
        while not holds():
            if process.poll() is not None:
                raise SystemExit(f"the command was over too early: {process.communicate()[1]}")
            time.sleep(every)

    def finished(self, name: str, stage: str = "back_translate") -> dict[str, Any]:
        """The receipts of a stage: what they say, and their files, which a second one replaces."""
        found = {}
        for path in (self.folder / name / stage / "_receipts").glob("*.json"):
            with suppress(FileNotFoundError, ValueError):  # it is just being written
                found[path.stem] = (json.loads(path.read_text()), path.stat().st_ino)
        return found

    def in_the_middle(self, name: str, shards: int) -> bool:
        """Whether so many shards are translated and another one is being so."""
        done = self.finished(name)
        begun = {p.stem for p in (self.folder / name).glob("back_translate/_attempts/*.json")}
        return len(done) >= shards and bool(begun - done.keys())

    def kill(self, process: subprocess.Popen[str]) -> None:
        """Kill the command and what it started, as the kernel does, and wait for its end."""
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()

    def same(self, run: str, other: str = "", tolerance: float = 0) -> None:
        """See that a run has the rows and values of another one, by default the undisturbed."""
        within = ("--tolerance", str(tolerance)) if tolerance else ()
        code, said = told("compare", other or self.undisturbed(), run, *within, "--", *self.beam)
        self.expect(f"paraloom compare: {said.strip().splitlines()[-1:]}", code == 0)
        if code:
            print(said, flush=True)

    def once(self, name: str, before: dict[str, Any], under_way: int | None = None) -> None:
        """See that what was finished `before` was not translated again, and count what was."""
        now = self.finished(name)
        kept = sum(now.get(unit) == account for unit, account in before.items())
        said = f"{kept} of {len(before)} shards that were finished stayed"
        self.expect(said, kept == len(before))
        again = [a["numbers"]["attempts"] for a, _ in now.values() if a["numbers"]["attempts"] > 1]
        rows = {unit: a["rows_in"] for unit, (a, _) in now.items()}
        begun = sum(a["rows_in"] * a["numbers"]["attempts"] for a, _ in now.values())
        self.say(
            f"{sum(rows.values())} sentences, translations begun for {begun}: "
            f"{len(again)} of {len(now)} shards were under way and begun again"
        )
        if under_way is not None:
            self.expect(f"at most {under_way} shards were begun again", len(again) <= under_way)


def main(
    fault: Callable[[Ground], None],
    doc: str | None,
    *,
    model: Path | None = None,
    whole: Path | None = None,
) -> int:
    """Run a script: 0 if what it found is as it should be, 1 if not.

    Without a `model` it is the sample's, without a `whole` run of it one is made.
    """
    print((doc or "").strip().splitlines()[0], flush=True)
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="paraloom-fault-") as folder:
        ground = Ground(Path(folder), model or MODEL, whole=whole)
        fault(ground)
    print(f"  {'passed' if ground.ok else 'FAILED'} in {time.monotonic() - started:.0f} s")
    return 0 if ground.ok else 1
