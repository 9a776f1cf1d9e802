"""A run with folder, input and model in S3; the whole way is `tests/faults/object_storage.py`."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from beam_jobs.io import remote, storage
from pipeline.cli import main
from tests.object_store import BUCKET
from tests.run_helpers import STAGES, ran


@pytest.fixture
def config(
    bucket: str,
    bitext: dict[str, str],
    nmt_model: Path,
    write_config: Callable[..., Path],
    tmp_path: Path,
) -> Path:
    """The configuration of the finished run, with everything in the bucket."""
    paths = {}
    for side, path in bitext.items():
        paths[side] = f"{bucket}/{Path(path).name}"
        storage.write_bytes(paths[side], Path(path).read_bytes())
    for file in nmt_model.iterdir():
        if file.is_file() and not file.name.startswith("."):
            storage.write_bytes(f"{bucket}/model/{file.name}", file.read_bytes())
    changes = {"input": {"paths": paths}, "nmt": {"model": f"{bucket}/model"}}
    return write_config(tmp_path, run=f"{bucket}/run", **changes)


def select(config: Path, s3: list[str], *more: str) -> int:
    arguments = ["select", "--config", str(config), *more, "--", "--direct_num_workers", "1", *s3]
    return main(arguments)


def test_the_corpus_is_that_of_a_local_run(
    config: Path, bucket: str, s3: list[str], finished_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert select(config, s3) == 0
    assert ran(capsys.readouterr().err) == list(STAGES)
    for stage in STAGES:
        here = sorted((finished_run / "run" / stage).glob("**/part-*.parquet"))
        assert here
        for path in here:
            name = path.relative_to(finished_run)
            assert storage.read_bytes(f"{bucket}/{name}") == path.read_bytes(), name
    text = "run/corpus/corpus.tsv.gz"
    assert storage.read_bytes(f"{bucket}/{text}") == (finished_run / text).read_bytes()
    assert main(["compare", str(finished_run / "run"), f"{bucket}/run", "--", *s3]) == 0
    capsys.readouterr()

    assert select(config, s3) == 0
    assert ran(capsys.readouterr().err) == []
    storage.write_bytes(f"{bucket}/run/bucket/part-00000-00002.parquet", b"damaged")
    storage.remove(f"{bucket}/run/corpus/part-00000-00001.parquet")
    assert select(config, s3) == 0
    printed = capsys.readouterr().err
    assert ran(printed) == ["corpus", "bucket", "corpus"]
    assert "bucket/part-00000-00002.parquet: damaged, made again" in printed
    part = "run/bucket/part-00000-00002.parquet"
    assert storage.read_bytes(f"{bucket}/{part}") == (finished_run / part).read_bytes()
    left = {path.name for path in remote.local_workdir(f"{bucket}/run").iterdir()}
    assert left == {".lock", "logs"}


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ("run=s3://nobody/run", r"s3://nobody/run: .*bucket does not exist"),
        ("input.paths.source=s3://nobody/x", r"s3://nobody/x: .*bucket does not exist"),
        (f"input.paths.source={BUCKET}/none", f"{BUCKET}/none: no such file"),
        (f"nmt.model={BUCKET}/none", f"nmt.model: {BUCKET}/none is not there"),
        (f"evaluate.sts={BUCKET}/none", f"evaluate.sts: {BUCKET}/none is not there"),
    ],
)
def test_what_is_not_there_is_one_line(
    config: Path, s3: list[str], capsys: pytest.CaptureFixture[str], change: str, line: str
) -> None:
    assert select(config, s3, "--set", change) == 2
    said = capsys.readouterr().err.strip().splitlines()
    assert len([text for text in said if not text.endswith("…")]) == 1
    assert re.fullmatch(f"paraloom: {line}", said[-1]), said[-1]
