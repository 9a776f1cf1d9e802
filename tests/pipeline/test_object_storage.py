"""A run that is in a store as a whole, and what is checked before a job goes to Dataflow.

With its trainings: `tests/faults/object_storage.py`.
"""

import os
import re
import signal
import time
from dataclasses import replace
from pathlib import Path

import pytest

from paraloom.beam_jobs import storage
from paraloom.beam_jobs.storage import remote
from paraloom.models.nmt.families.fairseq import FairseqModel
from paraloom.pipeline.cli import main
from paraloom.pipeline.config import read_config
from paraloom.pipeline.run.run import Run
from paraloom.pipeline.stages import folder_of
from paraloom.pipeline.stages.translation import backward
from tests.google_store import BUCKET
from tests.object_store import KEYS
from tests.run_helpers import STAGES, Capsys, Patch, WriteConfig, one_line, part_file, popen, ran

Stored = tuple[str, list[str]]


@pytest.fixture
def config(
    stored: Stored,
    bitext: dict[str, str],
    nmt_model: Path,
    write_config: WriteConfig,
    tmp_path: Path,
) -> Path:
    """The configuration of the finished run, with everything in the bucket."""
    bucket, _ = stored
    paths = {}
    for side, path in bitext.items():
        paths[side] = f"{bucket}/{Path(path).name}"
        storage.write_bytes(paths[side], Path(path).read_bytes())
    for file in nmt_model.iterdir():
        if file.is_file() and not file.name.startswith("."):
            storage.write_bytes(f"{bucket}/model/{file.name}", file.read_bytes())
    changes = {"input": {"paths": paths}, "nmt": {"model": f"{bucket}/model"}}
    return write_config(tmp_path, run=f"{bucket}/run", **changes)


def select(config: Path, options: list[str], *more: str) -> int:
    beam = ["--", "--direct_num_workers", "1", *options]
    return main(["select", "--config", str(config), *more, *beam])


@pytest.mark.parametrize("damaged", [False, True])
def test_workers_elsewhere_take_the_conversion_that_the_launcher_made(
    config: Path, stored: Stored, tmp_path: Path, monkeypatch: Patch, damaged: bool
) -> None:
    bucket, options = stored
    run = Run.open(read_config(config), [*options, "--runner=FlinkRunner"])
    factory = backward(run).factory(run)
    assert factory.conversion and factory.conversion[0].startswith(f"{bucket}/run/_conversions/")
    local = replace(run, arguments=options)
    assert backward(local).factory(local).conversion is None

    if damaged:
        storage.write_bytes(f"{factory.conversion[0]}/model.bin", b"another model")
    converted = []
    convert_really = FairseqModel.convert

    def convert(self: FairseqModel, out: Path) -> tuple[int, int]:
        converted.append(out)
        return convert_really(self, out)

    monkeypatch.setattr(FairseqModel, "convert", convert)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "worker"))
    rows, _ = factory.open(1).translate(["Muž vidí dům."])
    assert rows["translation"][0].is_valid
    assert len(converted) == damaged


@pytest.mark.parametrize("stored", ["s3"], indirect=True)  # gs:// below
def test_the_corpus_is_that_of_a_local_run(
    config: Path, stored: Stored, finished_run: Path, capsys: Capsys
) -> None:
    bucket, options = stored
    assert select(config, options) == 0
    assert ran(capsys.readouterr().err) == list(STAGES)
    for stage in STAGES:
        here = sorted((finished_run / "run" / folder_of(stage)).glob("**/part-*.parquet"))
        assert here
        for path in here:
            name = path.relative_to(finished_run)
            assert storage.read_bytes(f"{bucket}/{name}") == path.read_bytes(), name
    text = "run/corpus.tsv.gz"
    assert storage.read_bytes(f"{bucket}/{text}") == (finished_run / text).read_bytes()
    assert main(["compare", str(finished_run / "run"), f"{bucket}/run", "--", *options]) == 0
    capsys.readouterr()

    assert select(config, options) == 0
    assert ran(capsys.readouterr().err) == []
    bucketed, chosen = (
        str(part_file(finished_run / f"run/{stage}", part).relative_to(finished_run))
        for stage, part in (("bucket", "part-00000-00002"), ("corpus", "part-00000-00001"))
    )
    size = len((finished_run / bucketed).read_bytes())
    storage.write_bytes(f"{bucket}/{bucketed}", bytes(size))
    storage.remove(f"{bucket}/{chosen}")
    assert select(config, options) == 0
    printed = capsys.readouterr().err
    assert ran(printed) == ["select", "bucket", "select"]
    assert f"{bucketed}: damaged; it is made again" in printed
    assert storage.read_bytes(f"{bucket}/{bucketed}") == (finished_run / bucketed).read_bytes()
    left = {path.name for path in remote.local_workdir(f"{bucket}/run").iterdir()}
    assert left == {".lock", "logs"}


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ("run=SCHEME://nobody/run", r"SCHEME://nobody/run: .*bucket does not exist"),
        ("input.paths.source=SCHEME://nobody/x", r"SCHEME://nobody/x: .*bucket does not exist"),
        ("input.paths.source=BUCKET/none", "BUCKET/none: no such file"),
        ("nmt.model=BUCKET/none", "nmt.model: BUCKET/none does not exist"),
        ("evaluate.sts=BUCKET/none", "evaluate.sts: BUCKET/none: no such file or folder"),
    ],
)
def test_what_is_not_there_is_one_line(
    config: Path, stored: Stored, capsys: Capsys, change: str, line: str
) -> None:
    bucket, options = stored
    change, line = (text.replace("SCHEME", bucket[:2]) for text in (change, line))
    change, line = (text.replace("BUCKET", bucket) for text in (change, line))
    assert select(config, options, "--set", change) == 2
    said = capsys.readouterr().err.strip().splitlines()
    assert len([text for text in said if not text.endswith("…")]) == 1
    assert re.fullmatch(f"paraloom: {line}", said[-1]), said[-1]


def test_without_credentials_it_is_one_line(
    config: Path, stored: Stored, monkeypatch: Patch, tmp_path: Path, capsys: Capsys
) -> None:
    _, options = stored
    for name in (*KEYS, "GOOGLE_APPLICATION_CREDENTIALS"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "CLOUDSDK_CONFIG"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    for name in ("AWS_EC2_METADATA_DISABLED", "NO_GCE_CHECK"):
        monkeypatch.setenv(name, "true")
    assert select(config, options) == 2
    assert re.fullmatch(r"paraloom: .*credentials.*\n", capsys.readouterr().err)


@pytest.mark.parametrize("stored", ["gs"], indirect=True)
def test_a_killed_run_is_resumed(config: Path, stored: Stored, finished_run: Path) -> None:
    bucket, options = stored
    receipts = f"{bucket}/run/back_translate/_receipts"
    process = popen("select", config.parent, "--", "--direct_num_workers", "1", *options)
    while len(storage.names(receipts)) < 2 and process.poll() is None:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    _, said = process.communicate()
    assert process.returncode == -signal.SIGKILL, said
    before = {name: storage.read_bytes(f"{receipts}/{name}") for name in storage.names(receipts)}
    assert select(config, options) == 0
    for name, content in before.items():
        assert storage.read_bytes(f"{receipts}/{name}") == content
    assert main(["compare", str(finished_run / "run"), f"{bucket}/run", "--", *options]) == 0


OPTIONS = ["--runner=DataflowRunner", "--project=p", "--region=r", "--sdk_container_image=i"]


@pytest.mark.parametrize(
    ("key", "line"),
    [
        ("run", "run: {}/run: Dataflow workers cannot read it; it must be on gs://"),
        ("input", r"input.paths.\w+: .+/sample.\w+: Dataflow workers cannot read it"),
        ("nmt", r"nmt.model: .+: Dataflow workers cannot read it"),
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

    monkeypatch.setattr("paraloom.pipeline.run.make.run_stages", run)
    config = str(write_config(tmp_path))
    command = ["select", "--config", config, "--on-interrupt", choice, "--", "--runner=x"]
    assert main(command) == 0
    assert given == [["--runner=x", f"--on_interrupt={choice}"]]
    assert main([*command[:4], "stop"]) == 2
