"""A finished run of the real command on some pairs of the sample, for tests to copy and to harm."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from paraloom.beam_jobs import storage
from paraloom.beam_jobs.engine.shards import read_shard, receipts
from tests.once import made_once
from tests.pipeline.pages.made_run import MadeRun, make_run
from tests.run_helpers import Capsys, Patch, Runs, WriteConfig, again, ran
from tests.small_model import new_pairs
from tests.test_docs import fenced

ROWS = 120


@pytest.fixture(scope="session")
def bitext(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """120 pairs of the sample as Moses files: one source is empty, one too long to translate."""

    def write(folder: Path) -> None:
        sources, references = map(list, zip(*new_pairs(ROWS), strict=True))
        sources[7], references[7] = "", ""
        sources[90] = " ".join("abcdefghij" * 30)
        for language, lines in (("cs", sources), ("en", references)):
            text = "".join(f"{line}\n" for line in lines)
            (folder / f"sample.{language}").write_text(text, encoding="utf-8")

    folder = made_once(tmp_path_factory, "bitext", write)
    return {"source": str(folder / "sample.cs"), "reference": str(folder / "sample.en")}


@pytest.fixture(scope="session")
def write_config(bitext: dict[str, str], nmt_model: Path) -> Callable[..., Path]:
    """Write the configuration of a run into `folder`, with some sections changed."""

    def write(folder: Path, **changes: dict[str, Any] | str) -> Path:
        config: dict[str, Any] = {
            "run": str(folder / "run"),
            "input": {"format": "moses", "paths": bitext, "shard_rows": 20},
            "nmt": {"model": str(nmt_model), "beam": 2},
            "score": {"scorers": ["translation_score", "trigram_overlap"]},
            "select": {"by": "trigram_overlap", "deciles": [2, 3, 4, 5, 6]},
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
def finished_run(write_config: WriteConfig, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with config.yaml and the finished run; not to be changed: see `a_run`."""

    def make(folder: Path) -> None:
        write_config(folder)
        assert again("select", folder) == 0

    return made_once(tmp_path_factory, "finished", make)


@pytest.fixture(scope="session")
def made_run(tmp_path_factory: pytest.TempPathFactory) -> MadeRun:
    """A run as the stages leave it, written without them; copy the folder to change it."""
    return make_run(tmp_path_factory.mktemp("made") / "captions")


@pytest.fixture
def on_s3(finished_run: Path, bucket: str, s3: list[str]) -> tuple[str, list[str]]:
    """A copy of the finished run in an object store, and the Beam options that lead there."""
    for path in (finished_run / "run").rglob("*"):
        if path.is_file() and path.suffix in (".parquet", ".json"):
            name = path.relative_to(finished_run).as_posix()
            storage.write_bytes(storage.join(bucket, name), path.read_bytes())
    return storage.join(bucket, "run"), ["--", *s3]


@pytest.fixture
def a_run(finished_run: Path, write_config: WriteConfig, tmp_path: Path) -> Path:
    """A copy of the finished run in a place of its own."""
    shutil.copytree(finished_run / "run", tmp_path / "run")
    write_config(tmp_path)
    return tmp_path


@pytest.fixture
def runs(write_config: WriteConfig, capsys: Capsys) -> Runs:
    """A command on a folder, with a changed configuration, ends well: the stages that it began."""

    def run(name: str, folder: Path, *more: str, **changes: Any) -> list[str]:
        if changes:
            write_config(folder, **changes)
        capsys.readouterr()
        code = again(name, folder, *more)
        _, said = capsys.readouterr()
        assert code == 0, said
        return ran(said)

    return run


@pytest.fixture
def run(made_run: MadeRun, tmp_path: Path) -> Path:
    """A copy of the made run, with its manifest."""
    folder = tmp_path / "captions"
    shutil.copytree(made_run.folder, folder)
    (folder / "manifest.json").write_text(json.dumps(made_run.record))
    return folder


@pytest.fixture
def corpus(run: Path) -> list[dict[str, Any]]:
    """The rows of the run's corpus."""
    shards = [shard for receipt in receipts(str(run / "corpus")) for shard in receipt.shards]
    return [row for shard in shards for row in read_shard(shard).to_pylist()]


@pytest.fixture
def datasets(monkeypatch: Patch) -> Any:
    """Hugging Face's library, without a network and without bars."""
    for name in ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE"):
        monkeypatch.setenv(name, "1")
    library = pytest.importorskip("datasets", reason="Hugging Face datasets is not installed")
    library.disable_progress_bars()
    return library


@pytest.fixture
def card_names(datasets: Any, monkeypatch: Patch, tmp_path: Path) -> Callable[[Path], Any]:
    """What the Python of a card makes, run as it stands there, in the card's folder, by names."""
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(tmp_path / "cache"))

    def run(card: Path) -> Any:
        monkeypatch.chdir(card.parent)
        (block,) = fenced(card, "python")
        names: dict[str, Any] = {}
        exec(compile(block.replace("OWNER/NAME", str(card.parent)), str(card), "exec"), names)
        return names

    return run
