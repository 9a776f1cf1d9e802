"""The wheel has all files that the code opens, and the locks have all requirements."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("models", "beam_jobs", "pipeline")
PAPERS = ROOT / "benchmarks" / "papers"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out, tree = tmp_path_factory.mktemp("wheel"), tmp_path_factory.mktemp("tree")
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tree)
    for name in (*FOLDERS, "paraloom"):
        ours = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, tree / name, symlinks=True, ignore=ours)
    shutil.copytree(PAPERS, tree / "benchmarks" / "papers", ignore=ours)
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out)]
    subprocess.run([*build, str(tree)], check=True, capture_output=True)
    (found,) = out.glob("*.whl")
    return found


def test_the_wheel_holds_all_that_the_folders_hold(wheel: Path) -> None:
    inside = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    there = {"paraloom/__init__.py", "paraloom/py.typed"}
    for folder in (*(ROOT / name for name in FOLDERS), PAPERS):
        files = (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc")
        there |= {f"paraloom/{path.relative_to(folder.parent)}" for path in files}
    assert inside == there
    assert wheel.stat().st_size < 8_000_000


def test_it_needs_nothing_of_the_checkout(wheel: Path, tmp_path: Path) -> None:
    """The plug-in's folder has packages with the names of our folders."""
    installed = tmp_path / "installed"
    zipfile.ZipFile(wheel).extractall(installed)
    for name in FOLDERS:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("")
    (tmp_path / "models" / "names.py").write_text("NAME = 'first'\n")
    (tmp_path / "own.py").write_text(
        "import numpy as np\n"
        "from models.names import NAME\n"
        "from paraloom import Scorer\n"
        "first = Scorer(function=lambda pairs: np.ones(len(pairs), np.float32),\n"
        "               meaning='always one', unit='1')\n"
    )
    code = (
        "import paraloom, sys; from paraloom.pipeline.cli import main\n"
        "assert main(['sample', 'data']) == 0\n"
        "ingest = ['ingest', '--config', 'data/sample.yaml', '--', '--direct_num_workers', '1']\n"
        "assert main(ingest) == 0\n"
        "print(paraloom.open_run('runs/sample').pairs('ingest').count_rows())\n"
        "print(paraloom.score(['a b c'], ['a b c'], ['own.py:first'])['first'])\n"
        "print({m.__file__ for n, m in sys.modules.items() if n.startswith('paraloom')})\n"
    )
    env = {**os.environ, "PYTHONPATH": f"{installed}:{tmp_path}"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "10080" in done.stdout and str(ROOT) not in done.stdout


def pins(lock: str) -> set[str]:
    """Return the lines `name==version [; marker]` of a lock."""
    lines = (ROOT / lock).read_text().splitlines()
    return {line for line in lines if not line.startswith("#")}


def name(requirement: str) -> str:
    found = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert found
    return re.sub(r"[._-]+", "-", found[0]).lower()


@pytest.fixture
def declared() -> dict[str, list[str]]:
    """The requirements in pyproject.toml: to run with all extras, and for development."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    (everything,) = extras["all"]
    names = everything.removeprefix("paraloom[").rstrip("]").split(",")
    assert {*names, "all", "dev", "gpu"} == set(extras)
    run = [*project["dependencies"], *(part for name in names for part in extras[name])]
    return {"run": run, "dev": extras["dev"]}


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-dev.lock"])
def test_a_lock_is_nothing_but_pins(lock: str) -> None:
    assert len(pins(lock)) > 100
    for line in pins(lock):
        assert re.fullmatch(r"[a-z0-9-]+==[^\s/:;]+( ; .+)?", line)


def test_tests_run_with_the_versions_that_users_have() -> None:
    assert pins("requirements.lock") < pins("requirements-dev.lock")


def test_what_setup_requires_is_locked(declared: dict[str, list[str]]) -> None:
    run = {name(line) for line in pins("requirements.lock")}
    dev = {name(line) for line in pins("requirements-dev.lock")}
    assert {name(requirement) for requirement in declared["run"]} - {"paraloom"} <= run
    assert {name(requirement) for requirement in declared["dev"]} <= dev
    assert not run & {"moto", "pytest", "ruff"}
