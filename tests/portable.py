"""Runs the tests as on other machines: `make test-portable`.

Each pass has its own CPU instructions, number of threads, locale, time zone, order of the tests,
and seed of the trained model. The checkout, temporary files and the home folder have paths with
spaces. A pass runs the tests of `make test`. With `--short`, only the first pass runs, with the
files in `SHORT`.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from random import Random

from tests.sample import DATA, ROOT

PASSES = {
    "the oldest instructions": {
        "CT2_FORCE_CPU_ISA": "GENERIC",
        "ATEN_CPU_CAPABILITY": "default",
        "MKL_CBWR": "COMPATIBLE",
        "ONEDNN_MAX_CPU_ISA": "SSE41",
        "OPENBLAS_CORETYPE": "Nehalem",
        "ARROW_USER_SIMD_LEVEL": "NONE",
        "OMP_NUM_THREADS": "1",
        "LC_ALL": "C",
        "TZ": "Pacific/Chatham",  # 12:45 or 13:45 hours ahead of UTC
        "PARALOOM_TEST_SEED": "2",
    },
    "AVX2, three threads": {
        "CT2_FORCE_CPU_ISA": "AVX2",
        "ATEN_CPU_CAPABILITY": "avx2",
        "MKL_CBWR": "AVX2",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "OPENBLAS_CORETYPE": "Haswell",
        "ARROW_USER_SIMD_LEVEL": "AVX2",
        "OMP_NUM_THREADS": "3",
        "OMP_WAIT_POLICY": "PASSIVE",  # waiting threads free their cores
        "LC_ALL": "C.UTF-8",
        "TZ": "America/St_Johns",
        "PARALOOM_TEST_SEED": "3",
    },
}
"""Environment variables of each pass. On x86-64, some of them choose CPU instructions."""

SHORT = (
    "tests/models/embeddings/encoders",
    "tests/models/embeddings/training/test_trainer.py",
    "tests/models/scorers/test_scorers.py",
    "tests/papers/encoders",
    "tests/papers/test_heads.py",
    "tests/papers/tasks",
)
"""Tests that compare numbers closely, or train within seconds."""


def copy_checkout(folder: Path) -> None:
    """Copy the files that git does not ignore, and link to `.venv`."""
    listed = ("git", "ls-files", "--cached", "--others", "--exclude-standard", "-z")
    names = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, names.split("\0")):
        if (ROOT / name).exists():  # git lists removed files, too
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name, follow_symlinks=False)
    (folder / ".venv").symlink_to((ROOT / ".venv").resolve())


def run_pass(variables: dict[str, str], tests: list[str], workers: int, seed: int) -> int:
    """Run pytest on a copy of the checkout, and return the exit code."""
    with tempfile.TemporaryDirectory(prefix="paraloom ě ") as place:
        folders = {name: Path(place, name) for name in ("a checkout", "HOME", "TMPDIR")}
        for folder in folders.values():
            folder.mkdir()
        checkout = folders.pop("a checkout")
        copy_checkout(checkout)
        known = {"PYTHONPATH": checkout, "PARALOOM_DATA": DATA, **folders}
        env = {**os.environ, **variables, **{name: str(value) for name, value in known.items()}}
        how = ["--numprocesses", str(workers), "--dist", "worksteal", "--order-seed", str(seed)]
        command = [".venv/bin/pytest", *how, *tests]
        return subprocess.run(command, cwd=checkout, env=env, check=False).returncode


def main() -> int:
    """Run the passes, and return the exit code: 0 if no pass failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--short", action="store_true", help="only the first pass, with few files")
    parser.add_argument("--seed", type=int, default=Random().randrange(10**6))
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("tests", nargs="*", help="files or options of pytest instead of all tests")
    options = parser.parse_args()
    tests = [*SHORT] if options.short else options.tests
    failed = []
    for name, variables in [*PASSES.items()][: 1 if options.short else None]:
        began = time.monotonic()
        settings = " ".join(f"{key}={value}" for key, value in variables.items())
        print(f"{name}: {settings}", flush=True)
        if run_pass(variables, tests, options.workers, options.seed):
            failed.append(name)
        print(f"{name}: {time.monotonic() - began:.0f} s", flush=True)
    print(f"failed with {' and '.join(failed)}" if failed else "green in all passes")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
