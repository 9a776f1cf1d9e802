"""Commands are killed at random moments, in every way: each time the same command resumes.

`PARALOOM_KILLS` is the number of kills (50), `PARALOOM_SEED` chooses them; 1,000 take over an hour.
What was finished must stay as it is, and the corpus be that of an undisturbed run: to the last bit,
unless workers died twice at a shard.
"""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import psutil

from paraloom.beam_jobs.engine.crash_recovery import unfinished
from tests.faults.ground import Ground, main

NAME = "killed"
Process = subprocess.Popen[str]


def _one(number: signal.Signals) -> Callable[[Process], None]:
    return lambda process: process.send_signal(number)


def _group(number: signal.Signals) -> Callable[[Process], None]:
    return lambda process: os.killpg(process.pid, number)


def _impatient(process: Process) -> None:
    """Ctrl-C, ten times a second."""
    while process.poll() is None:
        os.killpg(process.pid, signal.SIGINT)
        time.sleep(0.1)


ENDS: dict[str, Callable[[Process], None]] = {
    "SIGKILL of the command": _one(signal.SIGKILL),
    "SIGKILL of the group": _group(signal.SIGKILL),
    "SIGINT of the command": _one(signal.SIGINT),
    "Ctrl-C": _group(signal.SIGINT),
    "Ctrl-C again and again": _impatient,
    "SIGTERM of the command": _one(signal.SIGTERM),
    "SIGTERM of the group": _group(signal.SIGTERM),
    "SIGHUP of the group": _group(signal.SIGHUP),
}
"""Ways to end a command."""

SURVIVED = ("SIGKILL of a worker", "SIGKILL of the fork server")
"""The command continues after these."""


def fault(ground: Ground) -> None:
    """Kill as often as the environment says."""
    number = int(os.environ.get("PARALOOM_KILLS", 50))
    seed = int(os.environ.get("PARALOOM_SEED", 1))
    kill(ground, number, seed)


def kill(ground: Ground, kills: int, seed: int, ways: tuple[str, ...] = (*ENDS, *SURVIVED)) -> None:
    """Kill that many times; a finished run is compared, and another one begins."""
    chance = random.Random(seed)
    ground.configure(NAME)
    ground.env["PYTHONFAULTHANDLER"] = "1"
    done: Counter[str] = Counter()
    runs = 0
    queue: list[str] = []
    before: dict[str, Any] = {}
    deaths = [0]  # the most at a unit of this run
    while done.total() < kills:
        process = ground.start(NAME)
        while process.poll() is None and done.total() < kills:
            if not queue:
                queue = chance.sample(ways, len(ways))
            if _moment(ground, process, chance):
                way = queue.pop()
                done[way] += _apply(way, ground, process)
                ground.say(f"{way}; deaths noted: {_deaths(ground)}")
                deaths += _deaths(ground).values()
        _, said = process.communicate()
        if "Traceback" in said:
            ground.expect(f"no traceback: {said}", False)
        ground.once(NAME, before)
        before = ground.finished(NAME)
        if process.returncode == 0:
            ground.same(str(ground.folder / NAME), tolerance=_tolerance(deaths))
            shutil.rmtree(ground.folder / NAME)
            runs, before, deaths = runs + 1, {}, [0]
    ground.finish(NAME)
    ground.once(NAME, before)
    ground.same(str(ground.folder / NAME), tolerance=_tolerance(deaths))
    ground.say(f"seed {seed}, {runs + 1} runs, {done.total()} kills: {dict(sorted(done.items()))}")


def _tolerance(deaths: list[int]) -> float:
    """From the second death on, batches are smaller, and scores round otherwise. A group that is
    killed may count as one: the launcher sees its worker die before it dies itself."""
    return 1e-6 if max(deaths) > 1 else 0


def _moment(ground: Ground, process: Process, chance: random.Random) -> bool:
    """Wait for a random moment of the command, or of a shard's translation; False if it ended."""
    before = _attempts(ground)
    wait = chance.uniform(0, 10 if (anywhere := chance.random() < 0.3) else 2.5)
    if not anywhere:
        while process.poll() is None and _attempts(ground) == before:
            time.sleep(0.01)
    with suppress(subprocess.TimeoutExpired):
        process.wait(wait)
    return process.poll() is None


def _attempts(ground: Ground) -> dict[str, int]:
    found = {}
    for path in (ground.folder / NAME).glob("back_translate/_attempts/*.json"):
        with suppress(FileNotFoundError):
            found[path.name] = path.stat().st_mtime_ns
    return found


def _deaths(ground: Ground) -> dict[str, int]:
    """Deaths of workers by unit: from the second on, scores differ by the size of the batches."""
    found = unfinished(str(ground.folder / NAME / "back_translate"))
    return {unit: attempt.deaths for unit, attempt in found.items() if attempt.deaths}


def _apply(way: str, ground: Ground, process: Process) -> bool:
    """Kill; False if there is nothing to kill.

    A worker is not killed where one was killed before: if that happens several times, it does not
    differ from a sentence that kills workers.
    """
    if way in ENDS:
        for _ in range(2):  # an import or a destructor may swallow the first Ctrl-C
            if process.poll() is None:
                ENDS[way](process)
                with suppress(subprocess.TimeoutExpired):
                    process.wait(60)
        if process.poll() is None:
            ground.expect(f"{way}: the command ends", False)
            process.send_signal(signal.SIGABRT)  # faulthandler prints where it is
            process.wait()
            for log in (ground.folder / NAME / "logs").glob("*.log"):
                print(log.read_text(), file=sys.stderr)
        return True
    found = _workers(process) if way == "SIGKILL of a worker" else _fork_servers(process)
    if not found or _deaths(ground):
        return False
    with suppress(psutil.NoSuchProcess):
        found[0].kill()
    return True


def _fork_servers(process: Process) -> list[psutil.Process]:
    with suppress(psutil.NoSuchProcess):
        children = psutil.Process(process.pid).children()
        return [each for each in children if any("fork_server" in w for w in each.cmdline())]
    return []


def _workers(process: Process) -> list[psutil.Process]:
    with suppress(psutil.NoSuchProcess):
        return [each for server in _fork_servers(process) for each in server.children()]
    return []


if __name__ == "__main__":
    sys.exit(main(fault, __doc__))
