"""What the command checks and says before it submits a job to Dataflow."""

import re
from pathlib import Path

import pytest

from paraloom.pipeline.cli import main
from tests.google_store import BUCKET
from tests.run_helpers import Capsys, Patch, WriteConfig, one_line

OPTIONS = ["--runner=DataflowRunner", "--project=p", "--region=r", "--sdk_container_image=i"]


@pytest.mark.parametrize(
    ("key", "line"),
    [
        ("run", "run: {}/run: workers of Dataflow do not see it; it must be on gs://"),
        ("input", r"input.paths.\w+: \S+/sample.\w+: workers of Dataflow do not see it"),
        ("nmt", r"nmt.model: \S+: workers of Dataflow do not see it"),
        # Beam itself would look for it for ten minutes, once a stage is under way.
        ("temp", "paraloom: gs://nobody/tmp: "),
    ],
)
def test_what_workers_do_not_see_is_one_line(
    key: str, line: str, write_config: WriteConfig, gs: list[str], tmp_path: Path, capsys: Capsys
) -> None:
    there = {
        "run": f"{BUCKET}/run",
        "input": {"paths": {"source": f"{BUCKET}/cs", "reference": f"{BUCKET}/en"}},
        "nmt": {"model": f"{BUCKET}/nmt"},
    }
    there.pop(key, None)
    config = write_config(tmp_path, **there)
    temp = f"--temp_location={'gs://nobody' if key == 'temp' else BUCKET}/tmp"
    assert main(["select", "--config", str(config), "--", *OPTIONS, temp]) == 2
    assert re.search(line.format(re.escape(str(tmp_path))), one_line(capsys))


@pytest.mark.parametrize("choice", ["leave", "cancel"])
def test_what_ctrl_c_does_goes_to_the_jobs(
    choice: str, write_config: WriteConfig, tmp_path: Path, monkeypatch: Patch
) -> None:
    given: list[list[str]] = []

    def run(config: object, targets: object, arguments: list[str], **_: object) -> None:
        given.append(arguments)

    monkeypatch.setattr("paraloom.pipeline.run.run_stages", run)
    config = str(write_config(tmp_path))
    command = ["select", "--config", config, "--on-interrupt", choice, "--", "--runner=x"]
    assert main(command) == 0
    assert given == [["--runner=x", f"--on_interrupt={choice}"]]
    assert main([*command[:4], "stop"]) == 2
