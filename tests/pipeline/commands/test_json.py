"""What `--json -` prints: the JSON alone, of the schema that is checked in."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from paraloom.papers.documentation import ROOT
from paraloom.pipeline.cli import main
from paraloom.pipeline.commands.options import write_json
from tests.json_schema import SCHEMA, errors_of
from tests.pipeline.commands.test_explain import ids
from tests.run_helpers import STAGES, Capsys, changed_manifest

Told = Callable[..., Any]


@pytest.fixture
def told(capsys: Capsys) -> Told:
    """What a command prints, all of it as JSON of its schema."""

    def tell(name: str, *arguments: str, code: int = 0) -> Any:
        assert main([name, *arguments, "--json", "-"]) == code
        captured = capsys.readouterr()
        assert captured.out.isascii()
        values = json.loads(captured.out)
        assert errors_of(name, values) == []
        return values

    return tell


def test_status(finished_run: Path, told: Told) -> None:
    run = str(finished_run / "run")
    found = told("status", run)
    assert (found["run"], found["state"]) == (run, "finished")
    assert [stage["name"] for stage in found["stages"]] == list(STAGES)
    ingest, translated, *_ = found["stages"]
    assert (ingest["rows"], ingest["rejected"]) == ([120, 120], {"empty source": 1})
    assert translated["rate"] == pytest.approx(119 / translated["seconds"])


def test_compare_with_its_exit_codes(finished_run: Path, a_run: Path, told: Told) -> None:
    one, other = str(finished_run / "run"), str(a_run / "run")
    same = told("compare", one, other)
    assert same["same"] and all(stage["same"] for stage in same["stages"])
    names = [f"{stage}{kind}" for stage in STAGES for kind in ("", ", rejected")]
    assert [stage["name"] for stage in same["stages"]] == names
    with changed_manifest(a_run) as content:
        del content["stages"]["select"]
    found = told("compare", one, other, code=1)
    assert (found["runs"], found["same"]) == ([one, other], False)
    last = found["stages"][-2]
    assert (last["name"], last["rows"][1], last["same"]) == ("select", None, False)


def test_frontier(finished_run: Path, told: Told) -> None:
    found = told("frontier", str(finished_run / "run"))
    moved = [(of["column"], of["operator"]) for of in found["moved"]]
    assert moved == [("trigram_overlap", "<="), ("translation_score", ">=")]
    rows = {point["rows"] for point in [*found["points"], found["chosen"]]}
    assert len(found["points"]) > 1 and max(rows) - min(rows) <= 2
    assert (found["chosen"]["bounds"], len(found["points"][0]["bounds"])) == ([], 2)


def test_select_dry_run(finished_run: Path, told: Told, capsys: Capsys) -> None:
    config = ["--config", str(finished_run / "config.yaml")]
    found = told("select", *config, "--dry-run", "--show", "3")
    assert (found["run"], found["selection"]) == (str(finished_run / "run"), "")
    assert found["rows"]["selected"] == len(ids(finished_run, "corpus"))
    assert [*found["pairs"][0]] == ["trigram_overlap", "reference", "translation"]
    assert len(found["pairs"]) == 3 and told("select", *config, "--dry-run")["pairs"] == []
    assert main(["select", *config, "--json", "-"]) == 2
    assert "--show and --json are for --dry-run" in capsys.readouterr().err


def test_publish(run: Path, told: Told) -> None:
    found = told("publish", str(run), "--held-out", "0.1")
    assert found["folder"] == str(run / "release") and found["sent"] is None
    sizes = {name: (run / "release" / name).stat().st_size for name in found["files"]}
    assert found["files"] == sizes and "README.md" in sizes
    assert [*found["rows"]] == ["train", "test"] and min(found["rows"].values()) > 0


def test_an_error_prints_no_json(tmp_path: Path, capsys: Capsys) -> None:
    assert main(["status", str(tmp_path), "--json", "-"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert len(captured.err.splitlines()) == 1


def test_a_file_and_the_usual_text(finished_run: Path, tmp_path: Path, capsys: Capsys) -> None:
    run, name = str(finished_run / "run"), ids(finished_run, "corpus")[0]
    assert main(["explain", "--json", str(tmp_path / "x.json"), run, name]) == 0
    assert "in the corpus" in capsys.readouterr().out
    values = json.loads((tmp_path / "x.json").read_text(encoding="utf-8"))
    assert errors_of("explain", values) == []
    assert (values["id"], values["in_corpus"]) == (name, True)
    assert [step["stage"] for step in values["steps"]] == list(STAGES)


def test_what_json_has_no_number_or_text_for(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    write_json(str(path), {"a": [math.nan, math.inf, 1.5], "b": b"\xff", "c": "\x7f é"})
    read = json.loads(path.read_text(encoding="utf-8"))
    assert read == {"a": [None, None, 1.5], "b": "_w==", "c": "\x7f é"}


def test_the_page_names_every_key_and_the_validator_is_strict() -> None:
    page = (ROOT / "docs" / "json.md").read_text(encoding="utf-8")
    keys = {name for of in SCHEMA["$defs"].values() for name in of["properties"]}
    assert [name for name in sorted(keys) if f"`{name}`" not in page] == []
    assert [name for name in SCHEMA["properties"] if f"\n## {name}\n" not in page] == []
    sound: dict[str, Any] = {"run": "a", "state": "stopped", "stages": [], "generators": {}}
    wrong = [{**sound, "more": 1}, {"run": "a"}, {**sound, "run": 1}, {**sound, "state": "other"}]
    assert errors_of("status", sound) == []
    assert all(errors_of("status", values) for values in wrong)
