import subprocess
import sys
from pathlib import Path

import pytest

from pipeline import cli
from pipeline.cli import main

ROOT = Path(__file__).resolve().parents[2]

GOOD = """
run: {run}
input: {{format: tsv, paths: [{run}/a.tsv]}}
nmt: {{model: {run}/model}}
score: {{scorers: [translation_score]}}
select: {{by: translation_score}}
"""


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text(GOOD.format(run=tmp_path / "run"))
    return path


def said(capsys):
    captured = capsys.readouterr()
    (line,) = captured.err.strip().splitlines()
    assert line.startswith("paraloom: ")
    return line


def real(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "pipeline.cli", *arguments], cwd=ROOT, capture_output=True, text=True
    )


def test_an_error_of_the_user_is_one_line_and_exit_code_2(config):
    done = real("corpus", "--config", str(config), "--set", "nmt.beem=3")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == f"paraloom: {config}: nmt.beem: unknown key; did you mean beam?\n"


def test_a_missing_input_is_found_before_any_work(config, tmp_path):
    (tmp_path / "run" / "model").mkdir(parents=True)
    done = real("ingest", "--config", str(config))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"paraloom: {tmp_path}/run/a.tsv: no such file\n"


@pytest.mark.parametrize("command", ["corpus", "ingest", "select", "train-nmt"])
def test_a_missing_configuration(command, tmp_path, capsys):
    assert main([command, "--config", str(tmp_path / "none.yaml")]) == 2
    assert (
        said(capsys)
        == f"paraloom: {tmp_path}/none.yaml: cannot be read (No such file or directory)"
    )


def test_a_missing_model(config, tmp_path, capsys):
    assert main(["select", "--config", str(config)]) == 2
    assert said(capsys) == f"paraloom: nmt.model: {tmp_path}/run/model is not there"


def test_an_unknown_encoder_is_found_before_any_work(config, tmp_path, capsys):
    (tmp_path / "run" / "model").mkdir(parents=True)
    change = ["--set", "embeddings.model=word-agv"]
    assert main(["corpus", "--config", str(config), *change]) == 2
    assert "embeddings.model: " in said(capsys)


def test_a_stage_that_the_configuration_does_not_have(config, tmp_path, capsys):
    (tmp_path / "run" / "model").mkdir(parents=True)
    assert main(["train-nmt", "--config", str(config)]) == 2
    assert "nothing to do for nmt" in said(capsys)


def test_a_run_folder_that_cannot_be_written(config, tmp_path, capsys):
    (tmp_path / "file").touch()
    change = ["--set", f"run={tmp_path}/file/run", "--set", "nmt.model=null"]
    assert main(["ingest", "--config", str(config), *change]) == 2
    assert "file/run: cannot be written (" in said(capsys)


def test_a_bug_is_not_hidden(config, monkeypatch):
    import pipeline.run

    def bug(*args, **kwargs):
        raise ZeroDivisionError

    monkeypatch.setattr(pipeline.run, "run_stages", bug)
    with pytest.raises(ZeroDivisionError):
        main(["select", "--config", str(config)])


def test_an_interrupt_says_what_to_do(config, monkeypatch, capsys):
    import pipeline.run

    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(pipeline.run, "run_stages", interrupted)
    assert main(["select", "--config", str(config)]) == 130
    assert "the same command goes on from here" in said(capsys)


def test_arguments_reach_the_run(config, monkeypatch):
    import pipeline.run

    calls = []

    def run_stages(config, targets, beam, force):
        calls.append((config.seed, targets, list(beam), force))

    monkeypatch.setattr(pipeline.run, "run_stages", run_stages)
    path = str(config)
    assert main(["bucket", "--config", path, "--set", "seed=4", "--", "--runner", "X"]) == 0
    assert main(["corpus", "--force", "--config", path]) == 0
    assert calls == [
        (4, ("bucket",), ["--runner", "X"], False),
        (1, ("corpus", "statistics", "embeddings", "evaluate"), [], True),
    ]


def test_beam_options_where_no_beam_is(capsys):
    assert main(["doctor", "--", "--runner", "X"]) == 2
    assert said(capsys) == "paraloom: doctor takes no Beam options"


def test_evaluate_on_nothing(tmp_path, capsys):
    assert main(["evaluate", "--model", str(tmp_path)]) == 2
    assert "give --sts DIR" in said(capsys)


def test_no_neighbours(tmp_path, capsys):
    arguments = ["neighbours", "--model", str(tmp_path), "--in", str(tmp_path), "--count", "0"]
    assert main(arguments) == 2
    assert said(capsys) == "paraloom: neighbours: --count must be at least 1"


def test_every_command_has_help(capsys):
    for command in (*cli._STAGES, "embed", "similarity", "evaluate", "doctor", "explain"):
        with pytest.raises(SystemExit) as stop:
            main([command, "--help"])
        assert stop.value.code == 0
        assert command in capsys.readouterr().out


def test_an_unknown_command(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["translate"])
    assert stop.value.code == 2
