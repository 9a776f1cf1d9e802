"""A finished run of the real command on some real pairs, for tests to copy and to harm."""

import gzip
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from pipeline.cli import main

ROOT = Path(__file__).resolve().parents[2]
ONE = ["--", "--direct_num_workers", "1"]
ROWS = 240
PAIR_STAGES = ("ingest", "back_translate", "score", "bucket", "corpus")


@pytest.fixture(scope="session")
def bitext(data: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Some hundred pairs of Multi30k as Moses files, one of them broken, one with itself."""
    folder = tmp_path_factory.mktemp("bitext")
    paths = {}
    for side, language in (("source", "cs"), ("reference", "en")):
        with gzip.open(data / "multi30k" / f"val.{language}.gz", "rt", encoding="utf-8") as text:
            lines = [next(text) for _ in range(ROWS)]
        lines[7] = "\n"
        paths[side] = str(folder / f"val.{language}")
        Path(paths[side]).write_text("".join(lines), encoding="utf-8")
    return paths


@pytest.fixture(scope="session")
def write_config(bitext: dict[str, str], nmt_model: Path) -> Callable[..., Path]:
    """Write the configuration of a run into `folder`, with some sections changed."""

    def write(folder: Path, **changes: dict | str) -> Path:
        config = {
            "run": str(folder / "run"),
            "input": {"format": "moses", "paths": bitext, "shard_rows": 40},
            "nmt": {"model": str(nmt_model), "beam": 2},
            "score": {"scorers": ["translation_score", "trigram_overlap"]},
            "select": {"by": "trigram_overlap", "deciles": [2, 3, 4, 5, 6], "size": 50},
        }
        for key, value in changes.items():
            if isinstance(value, dict):
                config[key] = {**config.get(key, {}), **value}
            else:
                config[key] = value
        path = folder / "config.yaml"
        path.write_text(yaml.safe_dump(config))
        return path

    return write


@pytest.fixture(scope="session")
def finished_run(write_config, tmp_path_factory) -> Path:
    """The folder with config.yaml and the finished run; not to be changed: see `a_run`."""
    folder = tmp_path_factory.mktemp("finished")
    write_config(folder)
    done = command("select", folder)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def a_run(finished_run: Path, write_config, tmp_path: Path) -> Path:
    """A copy of the finished run in a place of its own."""
    shutil.copytree(finished_run / "run", tmp_path / "run")
    write_config(tmp_path)
    return tmp_path


def popen(name: str, folder: Path, *more: str) -> subprocess.Popen:
    """The real command, in a process group of its own."""
    arguments = [name, "--config", str(folder / "config.yaml"), *(more or ONE)]
    return subprocess.Popen(
        [sys.executable, "-m", "pipeline.cli", *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def command(name: str, folder: Path, *more: str) -> subprocess.CompletedProcess:
    """The real command, to its end."""
    process = popen(name, folder, *more)
    out, err = process.communicate()
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def again(name: str, folder: Path, *more: str) -> int:
    """The command within this process: its exit code."""
    return main([name, "--config", str(folder / "config.yaml"), *more, *ONE])


def parts(folder: Path) -> dict[str, bytes]:
    """All part files of a run, and the TSV, with their bytes."""
    found = [*(folder / "run").glob("*/**/part-*.parquet"), folder / "run/corpus/corpus.tsv.gz"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(found)}


def ran(text: str) -> list[str]:
    """The stages that the command said it began."""
    return [line.removesuffix(" …") for line in text.splitlines() if line.endswith(" …")]
