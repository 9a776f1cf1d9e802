"""A stage of an earlier configuration is described by that one, and shown or refused as such."""

from pathlib import Path
from typing import Any

import pytest

from paraloom.pipeline.cli import main
from paraloom.pipeline.commands.run.compare import compare
from paraloom.pipeline.commands.run.status import status
from paraloom.pipeline.run import make as run_module
from paraloom.pipeline.run.folder import as_made, outdated, read_run
from paraloom.pipeline.stages import TARGETS
from tests.run_helpers import (
    ONE,
    Capsys,
    Patch,
    WriteConfig,
    again,
    changed_manifest,
    refusal,
    table,
)

CHANGED = ["--set", "select.deciles=[0]", "--set", "select.size=5"]
PUBLISH = ["--license", "cc-by-4.0", "--held-out", "0"]


def said(capsys: Capsys) -> str:
    captured = capsys.readouterr()
    return " ".join((captured.out + captured.err).split())


@pytest.mark.parametrize(
    ("stage", "changes"),
    [("score", CHANGED), ("ingest", ["--set", "nmt.candidates=2"])],
    ids=["selection", "candidates"],
)
def test_a_corpus_of_an_earlier_configuration(
    a_run: Path, finished_run: Path, capsys: Capsys, stage: str, changes: list[str]
) -> None:
    folder = str(a_run / "run")
    card = a_run / "run/README.md"
    assert again("select", a_run) == 0
    before = read_run(folder)
    text = card.read_text()
    capsys.readouterr()
    assert again(stage, a_run, *changes) == 0

    states = {each.name: each.state for each in status(folder)}
    assert states["ingest"] == "finished" and states["select"] == "outdated"
    capsys.readouterr()
    assert main(["publish", folder, *PUBLISH]) == 2
    refused = said(capsys)
    assert "select is of an earlier configuration" in refused
    assert "`paraloom select --config FILE` makes it again" in refused
    assert not (a_run / "run/release").exists()
    assert main(["explain", folder, table(a_run, "corpus", "id")["id"][0].as_py()]) == 0
    explained = said(capsys)
    assert "in the corpus: deciles 2–6 of `trigram_overlap`" in explained
    assert "an earlier configuration than the last command's made: " in explained
    assert main(["compare", folder, str(finished_run / "run"), *ONE]) == 1
    assert "left out, since an earlier configuration made it: " in said(capsys)
    assert as_made(read_run(folder)).config == before.config
    assert card.read_text() == text

    assert again("select", a_run) == 0  # as at first: nothing is made again
    captured = capsys.readouterr()
    assert captured.out.count("cached") == 5
    assert outdated(read_run(folder)) == []
    assert main(["publish", folder, *PUBLISH]) == 0


def test_a_process_that_is_killed_as_it_begins(
    a_run: Path, write_config: WriteConfig, monkeypatch: Patch
) -> None:
    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    folder = str(a_run / "run")
    assert [each.state for each in status(folder)] == ["finished"] * 5
    write_config(a_run, score={"scorers": ["trigram_overlap"]})
    with monkeypatch.context() as patch:
        patch.setattr(run_module, "_make_stages", killed)
        assert again("select", a_run) == 130
    states = [each.state for each in status(folder)]
    assert states == ["finished", "finished", "waiting", "waiting", "waiting"]
    assert again("select", a_run) == 0
    assert [each.state for each in status(folder)] == ["finished"] * 5


def test_a_round_that_the_configuration_does_not_have_is_not_compared(
    a_run: Path, finished_run: Path
) -> None:
    with changed_manifest(a_run) as values:
        values["stages"]["rounds/3/select"] = values["stages"]["select"]
    found = compare(str(a_run / "run"), str(finished_run / "run"))
    assert all(stage.same for stage in found)
    names = {stage.name.removesuffix(", rejected") for stage in found}
    assert names == set(values["planned"]) - {*TARGETS["corpus"][1:]}


@pytest.mark.parametrize("command", ["select", "status", "explain", "compare", "publish"])
def test_a_run_of_an_earlier_version_is_one_line(a_run: Path, capsys: Capsys, command: str) -> None:
    (a_run / "run/run.json").unlink()
    run = str(a_run / "run")
    more = {"explain": [run, "id"], "compare": [run, run], "status": [run], "publish": [run]}
    arguments = more.get(command, ["--config", str(a_run / "config.yaml")])
    line = refusal(capsys, command, *arguments)
    assert line == (
        f"paraloom: {run}: a run of an earlier version; run the configuration again with another "
        "`run`"
    )
