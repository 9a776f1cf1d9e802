"""The whole way on some hundred pairs: the real command, with one worker and with two."""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml

from paraloom.pipeline.names import folder_of
from tests.sample import DATA, PHRASES, SIMILARITY
from tests.small_model import new_pairs

ROOT = Path(__file__).resolve().parents[2]
ROWS = 300
SCORERS = ["translation_score", "trigram_overlap", "paragram_similarity"]
PAIR_STAGES = ("ingest", "back_translate", "score", "bucket", "select")


def paraloom(
    *arguments: str | Path, text: bytes | None = None
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "paraloom.pipeline.cli", *map(str, arguments)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        input=text,
        capture_output=True,
        check=False,
    )


def head(path: Path, rows: int, out: Path) -> str:
    with gzip.open(path, "rb") as stream:
        out.write_bytes(b"".join(next(stream) for _ in range(rows)))
    return str(out)


def multi30k(folder: Path, data: Path, model: Path) -> dict[str, Any]:
    """Real captions, the model of fairseq, PPDB and STS."""
    paths = {
        side: head(data / "multi30k" / f"val.{language}.gz", ROWS, folder / f"val.{language}")
        for side, language in (("source", "cs"), ("reference", "en"))
    }
    phrases = head(data / "ppdb" / "ppdb-xl-lexicon.txt.gz", 2000, folder / "phrases.txt")
    sts = folder / "sts" / "2012"
    sts.mkdir(parents=True)
    for file in sorted((data / "sts" / "2012").glob("*.tsv"))[:1]:
        (sts / file.name).write_bytes(file.read_bytes())
    return {"paths": paths, "model": model, "phrases": phrases, "sts": folder / "sts"}


def sample(folder: Path, model: Path) -> dict[str, Any]:
    """The sample, and the small model trained on it."""
    paths = {"source": folder / "sample.cs", "reference": folder / "sample.en"}
    for path, lines in zip(paths.values(), zip(*new_pairs(ROWS), strict=True), strict=True):
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return {"paths": paths, "model": model, "phrases": PHRASES, "sts": SIMILARITY}


@pytest.fixture(scope="module")
def config(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """On real data where they are at hand."""
    folder = tmp_path_factory.mktemp("whole")
    if (DATA / "multi30k").is_dir():
        real = (request.getfixturevalue(name) for name in ("data", "fairseq_model"))
        files = multi30k(folder, *real)
    else:
        files = sample(folder, request.getfixturevalue("nmt_model"))
    paths = {side: str(path) for side, path in files["paths"].items()}
    path = folder / "config.yaml"
    path.write_text(
        yaml.safe_dump(
            {
                "run": str(folder / "two"),
                "input": {"format": "moses", "paths": paths, "shard_rows": 60},
                "nmt": {"model": str(files["model"]), "beam": 2},
                "score": {
                    "scorers": SCORERS,
                    "phrases": str(files["phrases"]),
                    "training": {"dim": 16, "epochs": 1},
                },
                "select": {"deciles": [1, 2, 3, 4, 5, 6, 7, 8, 9], "size": 150},
                "embeddings": {"dim": 32, "epochs": 2, "batch_size": 20, "mega_batch": 2},
                "evaluate": {"sts": str(files["sts"])},
            }
        )
    )
    return path


@pytest.fixture(scope="module")
def whole(config: Path) -> tuple[Path, str]:
    """The run with two workers: its folder, and what it printed."""
    done = paraloom("corpus", "--config", config, "--", "--direct_num_workers", "2")
    assert done.returncode == 0, done.stderr.decode()
    return config.parent / "two", done.stdout.decode()


def rows(run: Path, stage: str) -> list[dict[str, Any]]:
    return [
        row for path in sorted((run / stage).glob("part-*.parquet"))
        for row in pq.read_table(path).to_pylist()
    ]  # fmt: skip


def test_every_row_is_accounted_for_and_every_decile_exact(whole: tuple[Path, str]) -> None:
    run, printed = whole
    stages = json.loads((run / "manifest.json").read_text())["stages"]
    before = ROWS
    for name in PAIR_STAGES:
        account = stages[name]
        assert account["rows_in"] == before
        assert account["rows_out"] + account["rows_rejected"] == before
        before = account["rows_out"]
        assert name in printed
    for scorer in SCORERS:
        sizes = np.bincount([row[f"{scorer}_decile"] for row in rows(run, "bucket")], minlength=10)
        assert sizes.sum() == stages["bucket"]["rows_out"]
        assert sizes.max() - sizes.min() <= 1


def test_the_corpus_is_the_same_in_both_forms(whole: tuple[Path, str]) -> None:
    run, _ = whole
    corpus = rows(run, "corpus")
    assert len(corpus) == 150
    assert all(row["paragram_similarity_decile"] > 0 for row in corpus)
    with gzip.open(run / "corpus.tsv.gz", "rt", encoding="utf-8", newline="\n") as text:
        lines = [line.rstrip("\n").split("\t") for line in text]
    assert [line[:2] for line in lines] == [[r["reference"], r["translation"]] for r in corpus]
    scores = np.array([float(line[2]) for line in lines], np.float32)
    assert scores.tolist() == [row["paragram_similarity"] for row in corpus]


def test_the_encoder_is_there_and_was_evaluated(whole: tuple[Path, str]) -> None:
    run, printed = whole
    results = json.loads((run / "manifest.json").read_text())["stages"]["evaluate"]["results"]
    assert results == json.loads((run / "evaluation.json").read_text())
    assert "Pearson" in printed
    done = paraloom(
        "similarity", "--model", run / "embeddings", text=b"a man\ta man\na man\tsnow\n"
    )
    assert done.returncode == 0, done.stderr.decode()
    same, other = map(float, done.stdout.split())
    assert same == pytest.approx(1, abs=1e-5)
    assert other < 0.999


def test_one_worker_gives_the_same_bytes(whole: tuple[Path, str], config: Path) -> None:
    run, _ = whole
    one = config.parent / "one"
    change = ["--set", f"run={one}"]
    done = paraloom("select", "--config", config, *change, "--", "--direct_num_workers", "1")
    assert done.returncode == 0, done.stderr.decode()
    files = [
        str(path.relative_to(run))
        for stage in PAIR_STAGES
        for path in sorted((run / folder_of(stage)).rglob("part-*.parquet"))
    ]
    assert len(files) > 20
    for name in [*files, "corpus.tsv.gz"]:
        assert (run / name).read_bytes() == (one / name).read_bytes(), name


def test_a_second_time_there_is_nothing_to_do(whole: tuple[Path, str], config: Path) -> None:
    _, printed = whole
    assert "ran" in printed
    done = paraloom("corpus", "--config", config)
    assert done.returncode == 0
    assert not any(line.endswith("…") for line in done.stderr.decode().splitlines())
