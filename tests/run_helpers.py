"""The real command, in a process of its own or in this one, and what it leaves."""

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
"""What the fixture `runs` gives."""
HubModel = Callable[[str], Path]
"""What the fixture `hub_model` gives."""
WriteConfig = Callable[..., Path]
"""What the fixture `write_config` gives."""

ROOT = Path(__file__).resolve().parents[1]
NAMES = ("chromium", "chromium-browser", "google-chrome")
BROWSER = next(filter(None, map(shutil.which, NAMES)), "")
STAGES = ("ingest", "back_translate", "score", "bucket", "select")
ONE = ["--", "--direct_num_workers", "1"]


def needs(*libraries: str) -> pytest.MarkDecorator:
    """A mark for `pytestmark`. Unlike `pytest.importorskip` it imports nothing."""
    missing = [name for name in libraries if find_spec(name) is None]
    return pytest.mark.skipif(bool(missing), reason=f"not installed: {', '.join(missing)}")


def calls_of(monkeypatch: Patch, owner: object, name: str) -> list[Any]:
    """The first arguments of all calls of a function from here on; it works as before."""
    calls, whole = list[Any](), getattr(owner, name)

    def recorded(first: Any, *more: Any, **named: Any) -> Any:
        calls.append(first)
        return whole(first, *more, **named)

    monkeypatch.setattr(owner, name, recorded)
    return calls


def small_config(run: Path | str, text: Path | str, **changes: Any) -> dict[str, Any]:
    """The values of a configuration for a file of tabs, without a translation model."""
    score = "trigram_overlap"
    values: dict[str, Any] = {"run": str(run), "input": {"format": "tsv", "paths": [str(text)]}}
    return {**values, "score": {"scorers": [score]}, "select": {"by": score}, **changes}


def started(*arguments: str, cwd: Path = ROOT, env: Any = (), **how: Any) -> subprocess.Popen[str]:
    """The real command in a process group of its own, with variables besides its own ones."""
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
    """The same with the configuration in a folder."""
    return started(name, "--config", str(folder / "config.yaml"), *(more or ONE))


def kill_in(stage: str, folder: Path, after: str, command: str = "select") -> list[str]:
    """Kill all processes of the command once `after` matches files of the stage: what it began."""
    process = popen(command, folder)
    while not list((folder / "run" / folder_of(stage)).glob(after)) and process.poll() is None:
        time.sleep(0.001)
    os.killpg(process.pid, signal.SIGKILL)
    _, err = process.communicate()
    assert process.returncode == -signal.SIGKILL, "it was over before it could be killed"
    assert ran(err)[-1] == stage.removesuffix(".training")
    return ran(err)


def command(name: str, folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    """The real command, to its end."""
    process = popen(name, folder, *more)
    out, err = process.communicate()
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def again(name: str, folder: Path, *more: str) -> int:
    """The command within this process: its exit code."""
    return main([name, "--config", str(folder / "config.yaml"), *more, *ONE])


def manifest(folder: Path) -> dict[str, Any]:
    """manifest.json of a run, as JSON values."""
    return dict(json.loads((folder / "run" / "manifest.json").read_text()))


def record_of(values: dict[str, Any]) -> RunRecord:
    """The record of a run, as it is read, with keys that each configuration has."""
    config: dict[str, Any] = {"run": "a", **values.get("config", {})}
    config["input"] = {"format": "tsv", "paths": ["a.tsv"], **(config.get("input") or {})}
    return RunRecord(**{**values, "config": Config.of(config)})


def write_record(run: Path, values: dict[str, Any]) -> None:
    """Write what a run records: run.json, the record of each stage, and manifest.json."""
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
    """What a run records, to be changed and written back."""
    content = json.loads((run / HEADER).read_text())
    before = {n: (run / folder_of(n) / STAGE_RECORD) for n in read_run(str(run)).stages}
    content["stages"] = {n: json.loads(path.read_text()) for n, path in before.items()}
    yield content
    for name in before.keys() - content["stages"].keys():
        before[name].unlink()
    write_record(run, content)


def changed_manifest(folder: Path) -> AbstractContextManager[dict[str, Any]]:
    """The same of the run in a folder of the other functions."""
    return changed_record(folder / "run")


def table(folder: Path, stage: str, *columns: str) -> pa.Table:
    """The rows of a stage, in their order."""
    files = sorted((folder / "run" / folder_of(stage)).glob("*.parquet"))
    return pa.concat_tables([pq.read_table(file, columns=list(columns) or None) for file in files])


def rewrite(folder: Path, stage: str, change: Callable[[pa.Table], pa.Table]) -> None:
    """Write a finished stage's part files anew, as a run that made these rows would have."""
    place = str(folder / "run" / folder_of(stage))
    for receipt in receipts(place):
        (shard,) = receipt.shards
        path, made = Path(shard.path), change(read_shard(shard))
        path.unlink()
        new = write_shard(str(path.with_name(f"{shard.name}.parquet")), made, unique=True)
        write_receipt(place, receipt.model_copy(update={"shards": (new,)}))
    with changed_manifest(folder) as content:
        content["stages"][stage]["digest"] = _digest(receipts(place))


@contextmanager
def refuses(message: str) -> Iterator[None]:
    """The block ends in an error for users, of one line, that matches."""
    with pytest.raises(UserError, match=message) as error:
        yield
    assert "\n" not in str(error.value)


def one_line(capsys: Capsys) -> str:
    """The one line on standard error with which a command ended."""
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert line.startswith("paraloom: ")
    return line


def refusal(capsys: Capsys, *arguments: str) -> str:
    """The one line with which a command ends that refuses to work."""
    assert main(arguments) == 2
    return one_line(capsys)


def part_file(folder: Path | str, name: str) -> Path:
    """The part file with this name, whatever its checksum is."""
    (found,) = Path(folder).glob(f"{name}-????????.parquet")
    return found


def parts(folder: Path) -> dict[str, bytes]:
    """All part files of a run, and the TSV, with their bytes."""
    found = [*(folder / "run").glob("*/**/part-*.parquet"), folder / "run/corpus.tsv.gz"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(found)}


def ran(text: str) -> list[str]:
    """The stages that the command said it began."""
    return [line.removesuffix(" …") for line in text.splitlines() if line.endswith(" …")]
