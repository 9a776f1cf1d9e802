"""Runs all make targets that test, one after the other, and prints a table of the results.

    python -m tests.everything [TARGET…]

A failure does not end the run. The exit code is 0 if a target passed and no target failed. Without
arguments, targets are skipped if a program that they need is missing. Named targets always run.
"""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[1]
FLINK = ("java", "mvn")


@dataclass(frozen=True)
class Target:
    """A target of the Makefile, and the programs that it needs besides the environment."""

    name: str
    needs: tuple[str, ...] = ()

    def missing(self) -> list[str]:
        return [program for program in self.needs if not shutil.which(program)]

    def command(self) -> list[str]:
        return ["make", "--no-print-directory", self.name]


TARGETS = (
    Target("test"), Target("test-pages"), Target("fuzz"), Target("test-flink", FLINK),
    Target("test-faults", FLINK), Target("test-dataflow", ("go",)), Target("test-portable"),
    Target("rehearse", ("debootstrap",)),
)  # fmt: skip


@dataclass(frozen=True)
class Ended:
    """The result of a target, with remarks."""

    name: str
    result: str
    seconds: float = 0.0
    remarks: str = ""


def run(target: Target) -> Ended:
    """Run a target, and print its output."""
    print(f"\n=== {target.name}", flush=True)
    began, said = time.monotonic(), b""
    both = subprocess.PIPE, subprocess.STDOUT
    process = subprocess.Popen(target.command(), cwd=ROOT, stdout=both[0], stderr=both[1])
    assert process.stdout is not None
    while piece := os.read(process.stdout.fileno(), 1 << 16):  # shows dots before a line ends
        sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
        said += piece
    code = process.wait()
    text = remarks(said.decode(errors="replace"), code)
    return Ended(target.name, "FAILED" if code else "passed", time.monotonic() - began, text)


def remarks(said: str, code: int) -> str:
    """Return pytest's lines about failed and skipped tests, or the last line of the output."""
    lines = [line.strip() for line in re.sub(r"\x1b\[[\d;]*m", "", said).splitlines()]
    closing = [line for line in lines if re.fullmatch(r"=* ?\d+ \w+.* in [\d.]+s.*", line)]
    why = [line for line in lines if re.match(r"\d+ skipped: ", line)]
    failed = [line.split(" - ")[0] for line in lines if re.match(r"(FAILED|ERROR) \S+", line)]
    last = [line for line in lines if line and not line.startswith("make: ")][-1:]
    found = [*closing, *failed, *why] or last
    if code and not failed:
        found = [f"exit code {code}", *closing, *last]
    return "\n".join(dict.fromkeys(line.strip("= ") for line in found))


def main(names: Sequence[str], targets: Sequence[Target] = TARGETS) -> int:
    """Run the named targets, or all targets, and return the exit code."""
    known = {target.name: target for target in targets}
    if unknown := [name for name in names if name not in known]:
        print(f"no target {', '.join(unknown)}; choose among {', '.join(known)}", file=sys.stderr)
        return 2
    ended: list[Ended] = []
    try:
        for target in [known[name] for name in names] or targets:
            missing = [] if names else target.missing()
            why = f"no {', '.join(missing)} on this machine"
            ended.append(Ended(target.name, "skipped", 0, why) if missing else run(target))
    except KeyboardInterrupt:
        ended.append(Ended(target.name, "FAILED", 0, "interrupted"))
    show(ended)
    results = [each.result for each in ended]
    print(f"targets: {', '.join(f'{results.count(r)} {r.lower()}' for r in RESULTS)}", flush=True)
    return 1 if "FAILED" in results or "passed" not in results else 0


RESULTS = ("passed", "FAILED", "skipped")


def show(ended: Sequence[Ended]) -> None:
    """Print the table of results."""
    table = Table("target", "result", "seconds", "remarks")
    for each in ended:
        table.add_row(each.name, each.result, f"{each.seconds:,.0f}", each.remarks)
    Console(width=None if sys.stdout.isatty() else 120, markup=False).print(table)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
