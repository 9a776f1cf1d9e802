"""The image files without a container engine: linted, and held against what they name."""

import ast
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.run_helpers import ROOT

DOCKER = ROOT / "docker"
REHEARSAL = DOCKER / "rehearse.sh"
LOCK = (ROOT / "requirements.lock").read_text()


@pytest.fixture(scope="module")
def dockerfile() -> str:
    return (DOCKER / "Dockerfile").read_text()


def test_the_dockerfile_passes_its_linter() -> None:
    beside = Path(sys.executable).parent
    hadolint = shutil.which("hadolint", path=beside) or shutil.which("hadolint")
    if hadolint is None:
        pytest.skip("hadolint is not installed")
    done = subprocess.run([hadolint, str(DOCKER / "Dockerfile")], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize("script", ["install.sh", "rehearse.sh"])
def test_the_scripts_are_sound_shell(script: str) -> None:
    assert subprocess.run(["sh", "-n", str(DOCKER / script)]).returncode == 0
    assert (DOCKER / script).stat().st_mode & 0o111


def test_there_are_targets_for_workers_with_the_beam_of_the_submitter(dockerfile: str) -> None:
    stages = [("apache/beam_python3.11_sdk:${BEAM}", "cpu"), ("cpu", "gpu")]
    assert re.findall(r"^FROM (\S+) AS (\w+)$", dockerfile, re.M) == stages
    (beam,) = re.findall(r"^ARG BEAM=(\S+)$", dockerfile, re.M)
    assert f"\napache-beam=={beam}\n" in LOCK


def test_everything_that_is_copied_is_there_and_reaches_the_builder(dockerfile: str) -> None:
    lines = re.findall(r"^COPY (?!--from)(.+)$", dockerfile, re.M)
    copied = [name for line in lines for name in line.split()[:-1]]
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    assert len(copied) == 9
    for name in copied:
        assert (ROOT / name).exists()
        assert f"!{name}" in ignored


def test_every_step_is_one_that_the_script_knows(dockerfile: str) -> None:
    script = (DOCKER / "install.sh").read_text()
    steps = re.findall(r"^RUN \S*install\.sh (\w+)", dockerfile, re.M)
    assert steps == ["dependencies", "package", "gpu"]
    for step in steps:
        assert re.search(rf"^{step}\)", script, re.M)
    done = subprocess.run([str(DOCKER / "install.sh"), "all"], capture_output=True, text=True)
    assert done.returncode == 2 and "dependencies | gpu VERSION | package" in done.stderr


def test_what_the_rehearsal_imports_is_there() -> None:
    (program,) = re.findall(r"<<'PYTHON'\n(.*?)^PYTHON$", REHEARSAL.read_text(), re.M | re.S)
    kinds = ast.Import | ast.ImportFrom
    imports: list[ast.stmt] = [n for n in ast.parse(program).body if isinstance(n, kinds)]
    assert len(imports) == 4
    exec(compile(ast.Module(imports, []), str(REHEARSAL), "exec"), {})
