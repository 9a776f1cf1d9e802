"""Processes that decode, one per GPU; a translator that says where it is stands for a model."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

PROGRAM = """
import os, sys
from paraloom.models.errors import UserError
from paraloom.models.nmt.gpu_processes import GpuProcesses


class Translator:
    compute_type, converted, under_way = "float16", "digest", 1

    def __init__(self, gpu):
        self.gpu = gpu

    def translate(self, sentences, hints, *, seed):
        if sentences == ["die"]:
            hints and hints.under_way([0])
            os._exit(9)
        if sentences == ["user"]:
            raise UserError("nmt: wrong")
        if sentences == ["fail"]:
            raise ValueError("of the engine")
        return self.gpu


def load(gpu):
    if os.environ.get("BROKEN"):
        raise UserError("nmt.model: broken")
    return Translator(gpu)


class Hints:
    smaller = 4

    def under_way(self, rows):
        print("rows", rows, flush=True)


def main():
    processes = GpuProcesses(load, [5, 7])
    print(processes.compute_type, processes.converted, processes.under_way)
    print(processes.translate(["a"]))
    for text in ("user", "fail"):
        try:
            processes.translate([text])
        except Exception as error:
            print(type(error).__name__, error, flush=True)
    if sys.argv[1:]:
        processes.translate(["die"], Hints())


if __name__ == "__main__":
    try:
        main()
    except UserError as error:
        print("error:", error)
"""


def run(folder: Path, *arguments: str, **environment: str) -> Any:
    """Run the program; its output ends when the last process with it ends."""
    (folder / "program.py").write_text(PROGRAM)
    command = [sys.executable, str(folder / "program.py"), *arguments]
    env = {**os.environ, **environment}
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=300)


def test_each_process_has_one_gpu_and_errors_come_back(tmp_path: Path) -> None:
    done = run(tmp_path)
    said = ["float16 digest 4", "5", "UserError nmt: wrong", "RuntimeError of the engine"]
    assert done.stdout.splitlines() == said
    assert (done.returncode, done.stderr) == (0, "")


def test_when_one_dies_all_end(tmp_path: Path) -> None:
    done = run(tmp_path, "die")
    assert done.stdout.splitlines()[-1] == "rows [0]"  # known before the death
    assert done.returncode == 1
    assert done.stderr == "a process that decodes on a GPU died\n"


def test_a_model_that_cannot_be_loaded(tmp_path: Path) -> None:
    done = run(tmp_path, BROKEN="1")
    assert (done.stdout, done.returncode) == ("error: nmt.model: broken\n", 0)
