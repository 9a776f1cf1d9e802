"""The whole way on some hundred pairs: the real command, with one worker and with two."""

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest
import yaml

from tests.run_helpers import ONE, STAGES, command, manifest, parts, started, table
from tests.sample import PHRASES, SIMILARITY
from tests.small_model import new_pairs

ROWS = 300
SCORERS = ["translation_score", "trigram_overlap", "paragram_similarity"]


@pytest.fixture(scope="module")
def whole(nmt_model: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder of a run of the sample with two workers, and what it printed."""
    folder = tmp_path_factory.mktemp("whole")
    paths = {side: str(folder / side) for side in ("source", "reference")}
    for path, lines in zip(paths.values(), zip(*new_pairs(ROWS), strict=True), strict=True):
        Path(path).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    training = {"dim": 16, "epochs": 1}
    config = {
        "run": str(folder / "run"),
        "input": {"format": "moses", "paths": paths, "shard_rows": 60},
        "nmt": {"model": str(nmt_model), "beam": 2},
        "score": {"scorers": SCORERS, "phrases": str(PHRASES), "training": training},
        "select": {"deciles": [1, 2, 3, 4, 5, 6, 7, 8, 9], "size": 150},
        "embeddings": {"dim": 32, "epochs": 2, "batch_size": 20, "mega_batch": 2},
        "evaluate": {"sts": str(SIMILARITY)},
    }
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    done = command("corpus", folder, "--", "--direct_num_workers", "2")
    assert done.returncode == 0, done.stderr
    return folder, done.stdout


def test_every_row_is_accounted_for_and_every_decile_exact(whole: tuple[Path, str]) -> None:
    folder, printed = whole
    stages = manifest(folder)["stages"]
    before = ROWS
    for name in STAGES:
        assert stages[name]["rows_in"] == before
        before = stages[name]["rows_out"]
        assert before + stages[name]["rows_rejected"] == stages[name]["rows_in"]
        assert name in printed
    for scorer in SCORERS:
        sizes = np.bincount(table(folder, "bucket")[f"{scorer}_decile"].to_numpy(), minlength=10)
        assert sizes.sum() == stages["bucket"]["rows_out"]
        assert sizes.max() - sizes.min() <= 1
    corpus = table(folder, "corpus")
    assert len(corpus) == 150
    assert min(corpus["paragram_similarity_decile"].to_pylist()) > 0


def test_the_encoder_is_there_and_was_evaluated(whole: tuple[Path, str]) -> None:
    folder, printed = whole
    results = manifest(folder)["stages"]["evaluate"]["results"]
    assert results == json.loads((folder / "run" / "evaluation.json").read_text())
    assert "Pearson" in printed
    model = str(folder / "run" / "embeddings")
    process = started("similarity", "--model", model, stdin=subprocess.PIPE)
    out, err = process.communicate("a man\ta man\na man\tsnow\n")
    assert process.returncode == 0, err
    same, other = map(float, out.split())
    assert same == pytest.approx(1, abs=1e-5)
    assert other < 0.999


def test_one_worker_gives_the_same_bytes(whole: tuple[Path, str], tmp_path: Path) -> None:
    folder, _ = whole
    done = command("select", folder, "--set", f"run={tmp_path}/run", *ONE)
    assert done.returncode == 0, done.stderr
    assert len(parts(folder)) > 20
    assert parts(tmp_path) == parts(folder)
