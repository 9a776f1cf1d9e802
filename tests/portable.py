"""The tests as they run on other machines: `make test-portable`.

Each pass has its own instructions, threads, locale, time zone and order of the tests, another
model that the tests train, and a path with spaces for the checkout, for temporary files and for
the home folder. A pass runs what `make test` runs; `--short` runs the files in `SHORT` in the
first pass.
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
        "TZ": "Pacific/Chatham",  # 12:45 or 13:45 hours before UTC
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
        "OMP_WAIT_POLICY": "PASSIVE",  # threads that wait leave the cores to others
        "LC_ALL": "C.UTF-8",
        "TZ": "America/St_Johns",
        "PARALOOM_TEST_SEED": "3",
    },
}
"""Variables that libraries read on x86-64; other processors have no other instructions to try."""

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
    """Copy the files that git knows, or would add; `.venv` is a link."""
    listed = ("git", "ls-files", "--cached", "--others", "--exclude-standard", "-z")
    names = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, names.split("\0")):
        if (ROOT / name).exists():  # it is not about to be removed
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name, follow_symlinks=False)
    (folder / ".venv").symlink_to((ROOT / ".venv").resolve())


def run_pass(variables: dict[str, str], tests: list[str], workers: int, seed: int) -> int:
    """The exit code of pytest on a copy of the checkout."""
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
    """The exit code: 0 if all passes were green."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--short", action="store_true", help="a minute of it, as in CI")
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
