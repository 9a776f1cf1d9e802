"""Secrets of every kind that a run may be given are in no file that it leaves, nor in its release.

docs/security.md names the kinds.
"""

import json
import logging
from pathlib import Path

import pytest

from paraloom.beam_jobs import storage
from paraloom.pipeline.cli import main
from paraloom.pipeline.config import read_config
from paraloom.pipeline.run.make import run_stages
from tests.object_store import BUCKET
from tests.run_helpers import Capsys, Patch, WriteConfig

ADDRESS = "https://me:sesame-word@example.org/terms?token=sesame-query"


def test_no_secret_is_left(
    on_s3: tuple[str, list[str]],
    bitext: dict[str, str],
    write_config: WriteConfig,
    tmp_path: Path,
    monkeypatch: Patch,
    caplog: pytest.LogCaptureFixture,
    capsys: Capsys,
) -> None:
    run, store = on_s3
    bucket, others = run.removesuffix("/run"), {e.path for e in storage.match(f"{BUCKET}/**")}
    others = {path for path in others if not path.startswith(f"{bucket}/")}  # other tests' files
    folder = str(Path(bitext["source"]).parent)
    for name, value in (
        ("XDG_CACHE_HOME", str(tmp_path / "cache")),
        ("API_KEY", "sesame-variable"),
        ("BITEXT", folder),
    ):
        monkeypatch.setenv(name, value)
    caplog.set_level(logging.INFO)  # as libraries that are imported for a training set it
    config = write_config(
        tmp_path,
        run=run,
        input={
            "paths": {side: f"${{BITEXT}}/{Path(path).name}" for side, path in bitext.items()},
            "license": f"see {ADDRESS} ${{API_KEY}}",
        },
        score={"scorers": ["translation_score", "unigram_f1"]},
        select={"by": "unigram_f1"},
    )
    options = [*store[1:], "--direct_num_workers", "2"]
    for name in ("access_key_id", "secret_access_key", "session_token"):
        options += [f"--s3_{name}", f"sesame-{name}"]
    run_stages(read_config(config), ["select"], options)
    out = tmp_path / "release"
    license = ["--license", "cc-by-4.0"]
    assert main(["publish", run, "--out", str(out), *license, "--", *options]) == 0
    assert f"{out}: made" in capsys.readouterr().out

    config.unlink()
    found = {entry.path for entry in storage.match(f"{BUCKET}/**")} - others
    left = {path: storage.read_bytes(path) for path in found}
    left |= {str(path): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    left["log"] = caplog.text.encode()
    assert {path for path, data in left.items() if b"sesame" in data} == set()
    names = ("run/report/index.html", "run/README.md", "release/README.md", "score.log")
    assert all(any(path.endswith(name) for path in left) for name in names)
    assert "sdk_worker_main" in caplog.text
    record = json.loads(left[f"{run}/manifest.json"])
    assert record["config"]["input"]["license"] == "see https://example.org/terms ${API_KEY}"
    paths = record["config"]["input"]["paths"].values()
    assert {Path(path).parent for path in paths} == {Path("${BITEXT}")}
