"""A run with a manifest, small enough to be published many times."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from paraloom.beam_jobs.io.shards import read_shard, receipts
from tests.pipeline.report.made_run import MadeRun
from tests.run_helpers import Patch


@pytest.fixture
def run(made_run: MadeRun, tmp_path: Path) -> Path:
    """A copy of the run; its release holds out a tenth to have rows in both splits."""
    folder = tmp_path / "captions"
    shutil.copytree(made_run.folder, folder)
    (folder / "manifest.json").write_text(json.dumps(made_run.record))
    return folder


@pytest.fixture
def corpus(run: Path) -> list[dict[str, object]]:
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
