"""Helpers that run the real command, in a new process or in this process, and read its results."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paraloom.beam_jobs.engine.shards import read_shard, receipts, write_receipt, write_shard
from paraloom.models.errors import UserError
from paraloom.models.files import STAGE_RECORD
from paraloom.pipeline.cli import main
from paraloom.pipeline.config import Config
from paraloom.pipeline.run.folder import HEADER, read_run, write_json
from paraloom.pipeline.run.records import RunRecord
from paraloom.pipeline.run.stage import _digest
from paraloom.pipeline.stages import folder_of

Capsys = pytest.CaptureFixture[str]
Patch = pytest.MonkeyPatch
Runs = Callable[..., list[str]]
"""The type of the fixture `runs`."""
HubModel = Callable[[str], Path]
"""The type of the fixture `hub_model`."""
WriteConfig = Callable[..., Path]
"""The type of the fixture `write_config`."""

ROOT = Path(__file__).resolve().parents[1]
NAMES = ("chromium", "chromium-browser", "google-chrome")
BROWSER = next(filter(None, map(shutil.which, NAMES)), "")
STAGES = ("ingest", "back_translate", "score", "bucket", "select")
ONE = ["--", "--direct_num_workers", "1"]


def needs(*libraries: str) -> pytest.MarkDecorator:
    """Return a mark for `pytestmark`. Unlike `pytest.importorskip`, it imports nothing."""
    missing = [name for name in libraries if find_spec(name) is None]
    return pytest.mark.skipif(bool(missing), reason=f"not installed: {', '.join(missing)}")


def calls_of(monkeypatch: Patch, owner: object, name: str) -> list[Any]:
    """Record the first argument of each later call of a function, which works as before."""
    calls, whole = list[Any](), getattr(owner, name)

    def recorded(first: Any, *more: Any, **named: Any) -> Any:
        calls.append(first)
        return whole(first, *more, **named)

    monkeypatch.setattr(owner, name, recorded)
    return calls


def small_config(run: Path | str, text: Path | str, **changes: Any) -> dict[str, Any]:
    """Return a configuration for a tab-separated file, without a translation model."""
    score = "trigram_overlap"
    values: dict[str, Any] = {"run": str(run), "input": {"format": "tsv", "paths": [str(text)]}}
    return {**values, "score": {"scorers": [score]}, "select": {"by": score}, **changes}


def started(*arguments: str, cwd: Path = ROOT, env: Any = (), **how: Any) -> subprocess.Popen[str]:
    """Start the command in a new process group. `env` adds environment variables."""
    paths = f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    return subprocess.Popen(
        [sys.executable, "-m", "paraloom.pipeline.cli", *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1", **dict(env)},
        text=True,
        start_new_session=True,
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **how},
    )


def popen(name: str, folder: Path, *more: str) -> subprocess.Popen[str]:
    """Start the command with the configuration in a folder."""
    return started(name, "--config", str(folder / "config.yaml"), *(more or ONE))


def kill_in(stage: str, folder: Path, after: str, command: str = "select") -> list[str]:
    """Kill the command once `after` matches files of the stage. Return the started stages."""
    process = popen(command, folder)
    while not list((folder / "run" / folder_of(stage)).glob(after)) and process.poll() is None:
        time.sleep(0.001)
    os.killpg(process.pid, signal.SIGKILL)
    _, err = process.communicate()
    assert process.returncode == -signal.SIGKILL, "the command ended before it was killed"
    assert ran(err)[-1] == stage.removesuffix(".training")
    return ran(err)


def command(name: str, folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a new process, and wait for its end."""
    process = popen(name, folder, *more)
    out, err = process.communicate()
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def again(name: str, folder: Path, *more: str) -> int:
    """Run the command in this process, and return the exit code."""
    return main([name, "--config", str(folder / "config.yaml"), *more, *ONE])


def manifest(folder: Path) -> dict[str, Any]:
    """Return manifest.json of a run, as JSON values."""
    return dict(json.loads((folder / "run" / "manifest.json").read_text()))


def record_of(values: dict[str, Any]) -> RunRecord:
    """Return the record of a run from some of its values. Required keys are added."""
    config: dict[str, Any] = {"run": "a", **values.get("config", {})}
    config["input"] = {"format": "tsv", "paths": ["a.tsv"], **(config.get("input") or {})}
    return RunRecord(**{**values, "config": Config.of(config)})


def write_record(run: Path, values: dict[str, Any]) -> None:
    """Write the records of a run: run.json, the record of each stage, and manifest.json."""
    header = {name: of for name, of in values.items() if name not in ("stages", "inputs")}
    header["config"] = record_of({"config": values["config"]}).config.model_dump(mode="json")
    run.mkdir(parents=True, exist_ok=True)
    (run / HEADER).write_text(json.dumps(header))
    for name, record in values["stages"].items():
        path = run / folder_of(name) / STAGE_RECORD
        path.parent.mkdir(parents=True, exist_ok=True)
        inputs = {"inputs": values["inputs"]} if name == "ingest" and "inputs" in values else {}
        path.write_text(json.dumps({**record, **inputs}))
    write_json(str(run / "manifest.json"), read_run(str(run)).roll_up())


@contextmanager
def changed_record(run: Path) -> Iterator[dict[str, Any]]:
    """Yield the records of a run, and write them again after the block has changed them."""
    content = json.loads((run / HEADER).read_text())
    before = {n: (run / folder_of(n) / STAGE_RECORD) for n in read_run(str(run)).stages}
    content["stages"] = {n: json.loads(path.read_text()) for n, path in before.items()}
    yield content
    for name in before.keys() - content["stages"].keys():
        before[name].unlink()
    write_record(run, content)


def changed_manifest(folder: Path) -> AbstractContextManager[dict[str, Any]]:
    """Yield the records of the run in `folder`, as `changed_record` does."""
    return changed_record(folder / "run")


def table(folder: Path, stage: str, *columns: str) -> pa.Table:
    """Return the rows of a stage, in their order."""
    files = sorted((folder / "run" / folder_of(stage)).glob("*.parquet"))
    return pa.concat_tables([pq.read_table(file, columns=list(columns) or None) for file in files])


def rewrite(folder: Path, stage: str, change: Callable[[pa.Table], pa.Table]) -> None:
    """Replace the rows of a finished stage, as if the run had made the changed rows."""
    place, rows = str(folder / "run" / folder_of(stage)), 0
    for receipt in receipts(place):
        (shard,) = receipt.shards
        path, made = Path(shard.path), change(read_shard(shard))
        path.unlink()
        new = write_shard(str(path.with_name(f"{shard.name}.parquet")), made, unique=True)
        write_receipt(place, receipt.model_copy(update={"shards": (new,)}))
        rows += new.rows
    with changed_manifest(folder) as content:
        content["stages"][stage] |= {"digest": _digest(receipts(place)), "rows_out": rows}


@contextmanager
def refuses(message: str) -> Iterator[None]:
    """Check that the block raises a `UserError` of one line, which matches `message`."""
    with pytest.raises(UserError, match=message) as error:
        yield
    assert "\n" not in str(error.value)


def one_line(capsys: Capsys) -> str:
    """Return the error of a command, which must be the only line on standard error."""
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert line.startswith("paraloom: ")
    return line


def refusal(capsys: Capsys, *arguments: str) -> str:
    """Run a command that must end with exit code 2, and return its error of one line."""
    assert main(arguments) == 2
    return one_line(capsys)


def part_file(folder: Path | str, name: str) -> Path:
    """Return the part file with this name and any checksum."""
    (found,) = Path(folder).glob(f"{name}-????????.parquet")
    return found


def parts(folder: Path) -> dict[str, bytes]:
    """Return the bytes of the corpus as TSV and of all part files of a run, by path."""
    found = [*(folder / "run").glob("*/**/part-*.parquet"), folder / "run/corpus.tsv.gz"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(found)}


def ran(text: str) -> list[str]:
    """Return the stages that a command started, from its output."""
    return [line.removesuffix(" …") for line in text.splitlines() if line.endswith(" …")]
