import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from paraloom.models.cpu import cores
from paraloom.pipeline.cli import main
from paraloom.pipeline.commands.corpus import estimate, timings
from paraloom.pipeline.config import Config, read_config
from paraloom.pipeline.stage import Run
from tests.run_helpers import STAGES


@pytest.fixture(autouse=True)
def few_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timings, "COPIES", 4)


def told(folder: Path, capsys: pytest.CaptureFixture[str], *more: str) -> tuple[int, str, str]:
    code = main(["estimate", "--config", str(folder / "config.yaml"), *more])
    captured = capsys.readouterr()
    return code, " ".join(captured.out.split()), captured.err.strip()


def test_what_a_run_takes_is_what_it_took(
    write_config: Callable[..., Path], tmp_path: Path, finished_run: Path
) -> None:
    write_config(tmp_path)
    found = estimate.estimate(read_config(tmp_path / "config.yaml"))
    assert list(found.jobs) == list(STAGES)
    translated = found.translation.timed.rows
    assert (found.preview.rows, found.preview.counted, translated) == (120, True, 119)
    for stage, job in found.jobs.items():
        done = json.loads((finished_run / "run" / "manifest.json").read_text())["stages"][stage]
        files = (finished_run / "run" / stage).glob("*.*")
        assert job.rows == done["rows_in"]
        size = sum(file.stat().st_size for file in files if file.name != "README.md")
        assert job.size == pytest.approx(size, rel=0.1)
        assert job.cores == (cores() if stage == "back_translate" else 1)
        assert job.seconds == pytest.approx(job.rows / job.rate * job.cores / cores())
        assert 0 < job.rate < 1e7
        assert 2**24 < job.memory < 2**34
    assert not (tmp_path / "run").exists()


def test_money_hours_and_what_they_follow_from(
    write_config: Callable[..., Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    write_config(tmp_path, nmt={"compute_type": "int8"})
    made = []
    whole = estimate.estimate

    def kept(config: Config) -> estimate.Estimate:
        made.append(whole(config))
        return made[0]

    monkeypatch.setattr(estimate, "estimate", kept)
    code, out, _ = told(tmp_path, capsys, "--gpu-hour", "36000")
    hours = made[0].jobs["back_translate"].seconds / 3600
    assert code == 0
    assert f"{hours:,.2f} hours in all, {36000 * hours:,.2f} at 36,000.00 an hour" in out
    assert f"{made[0].jobs['score'].rate:,.0f} rows/s, a core" in out
    assert "Rows: counted; 0.8% of those read cannot be used" in out
    assert "119 sentences sampled from the beginnings of 1 file(s)" in out
    assert f"on {cores()} CPU cores, ctranslate2, int8, beam 2" in out


def test_a_run_without_a_model_says_what_to_do(
    write_config: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_config(tmp_path, nmt={"model": None})
    code, _, error = told(tmp_path, capsys)
    assert code == 2
    assert error.startswith(
        "paraloom: nmt.model: null: this run trains its own model; run `paraloom"
    )
    assert len(error.splitlines()) == 1


def test_the_model_and_the_vectors_of_the_run_are_used(
    write_config: Callable[..., Path],
    tmp_path: Path,
    nmt_model: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scorers = ["paragram_similarity", "mean_idf", "trigram_overlap"]
    write_config(
        tmp_path,
        nmt={"model": None},
        score={"scorers": scorers, "phrases": str(tmp_path / "phrases")},
        select={"where": ["mean_idf >= 0", "trigram_overlap <= 1"]},
    )
    run = tmp_path / "run"
    shutil.copytree(nmt_model, run / "nmt")
    (run / "manifest.json").write_text(json.dumps({"stages": {"nmt": {}}}))
    found = estimate.estimate(read_config(tmp_path / "config.yaml"))
    assert found.left_out == ("paragram_similarity", "mean_idf")
    assert found.jobs["corpus"].rows == 118


def test_sentences_that_all_fail_are_one_line(
    write_config: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_config(tmp_path, nmt={"max_source_subwords": 1})
    code, _, error = told(tmp_path, capsys)
    assert code == 2
    assert "translates none of 119 sentences of the input" in error


def test_no_usable_row_is_one_line(
    write_config: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_config(tmp_path, input={"max_characters": 1})
    code, _, error = told(tmp_path, capsys)
    assert (code, error) == (
        2, "paraloom: input: none of the rows at the beginning of the files can be used",
    )  # fmt: skip


def test_several_translations_of_a_source(
    write_config: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    timed: list[int] = []
    whole = timings.time_jobs

    def counted(run: Run, sample: pa.Table, *more: Any) -> dict[str, timings.Timed]:
        timed.append(len(sample))
        return whole(run, sample, *more)

    monkeypatch.setattr(estimate, "time_jobs", counted)
    one, four = (
        estimate.estimate(read_config(write_config(tmp_path, nmt={"beam": 4, "candidates": n})))
        for n in (1, 4)
    )
    assert timed[1] <= 119  # not four times as many
    assert four.jobs["score"].rows > 3 * one.jobs["score"].rows
    assert four.jobs["ingest"].rows == one.jobs["ingest"].rows
    assert four.jobs["ingest"].size == pytest.approx(one.jobs["ingest"].size, rel=0.5)


def test_what_conditions_and_repeats_save(
    write_config: Callable[..., Path],
    tmp_path: Path,
    bitext: dict[str, str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    paths = {}
    for side, path in bitext.items():
        paths[side] = str(tmp_path / side)
        Path(paths[side]).write_text(2 * Path(path).read_text(encoding="utf-8"), encoding="utf-8")
    write_config(tmp_path, input={"paths": paths, "unique": "source", "where": ["identical = yes"]})
    code, out, err = told(tmp_path, capsys)
    assert (code, "no row at the beginning of the files meets" in err) == (2, True)
    conditions = ["source_tokens <= 4"]
    config = write_config(tmp_path, input={"paths": paths, "unique": "source", "where": conditions})
    found = estimate.estimate(read_config(config))
    where, unique = found.savings
    assert where.rows + unique.rows + found.jobs["back_translate"].rows == 238
    assert unique.rows >= found.jobs["back_translate"].rows > 0
    assert found.jobs["score"].rows <= 238 - where.rows
    hours = found.jobs["back_translate"].seconds / found.jobs["back_translate"].rows / 3600
    assert where.hours == pytest.approx(where.rows * hours)
    code, out, err = told(tmp_path, capsys)
    assert (code, err) == (0, "")
    assert "Not translated" in out and "input.where" in out and "input.unique" in out
