"""What commands print: `--json` and its schema, `paraloom agreement`, `paraloom evaluate`."""

import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paraloom.models.embeddings.applications import opened
from paraloom.papers.documentation import ROOT
from paraloom.pipeline.cli import main
from paraloom.pipeline.commands.options import write_json
from paraloom.pipeline.judging.agreement import default_names
from tests.json_schema import SCHEMA, errors_of
from tests.pipeline.commands.test_explain import ids
from tests.run_helpers import STAGES, Capsys, Patch, changed_manifest, refusal
from tests.small_encoder import NUMBERED, small_encoder

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
    assert "--show and --json need --dry-run" in capsys.readouterr().err


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


HEADER = "reference\tparaphrase\tscore\n"
WORDS = "the old dog runs fast over green hills today and sleeps".split()  # noqa: SIM905


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    """The more words of the reference a paraphrase keeps, the better it is."""
    path = tmp_path / "labels.tsv"
    lines = []
    for i in range(220):
        kept = i % 11
        other = " ".join(WORDS[:kept] + [f"x{i}"] * (11 - kept))
        lines.append(f"{' '.join(WORDS)}{i // 4}\t{other}\t{kept * 9}\n")
    path.write_text(HEADER + "".join(lines) + "same\tsame\t100\n")
    return path


def test_it_prints_the_scores_and_the_cut(labels: Path, tmp_path: Path, capsys: Capsys) -> None:
    results = tmp_path / "results.json"
    arguments = ["--labels", str(labels), "--good", "45"]
    (tmp_path / "idf.txt").write_text("".join(f"{word} {len(word)}\n" for word in WORDS))
    arguments += ["--resource", f"idf={tmp_path}/idf.txt"]
    arguments += [part for p in ("0.8", "0.5", "0.8") for part in ("--precision", p)]
    assert main(["agreement", *arguments, "--json", str(results)]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "220 judged pairs of 55 references; 120 are good (label at least 45 of 100)" in out
    assert "; not counted: 1 pair(s) with equal sides" in out
    assert "select: # precision 0.8 by: " in out
    found = json.loads(results.read_text())
    assert errors_of("agreement", found) == [] and found["corpora"] == {}
    assert {*found["scores"]} == {*default_names(), "mean_idf"}
    assert found["scores"]["unigram_f1"]["spearman"] == pytest.approx(1, abs=0.01)
    assert found["scores"]["edit_distance"]["spearman"] == pytest.approx(-1, abs=0.01)
    assert [(cut["wanted"], cut["reached"]) for cut in found["cuts"]] == [(0.8, True), (0.5, True)]


def test_a_score_of_which_less_is_better_under_a_condition(labels: Path, capsys: Capsys) -> None:
    def said(*more: str) -> str:
        given = ["--labels", str(labels), "--scorers", "edit_distance", *more]
        assert main(["agreement", *given]) == 0
        return " ".join(capsys.readouterr().out.split())

    out = said()
    assert "unigram_f1" not in out
    assert "label at least 70 of 100" in out and "# precision 0.9 by: edit_distance" in out
    assert "deciles: [0, 1]" in out
    assert "│ edit_distance │ −1.00 │ −1.00 to −1.00 │ lower │" in out
    assert "│ 2 │ 16 of 22 (0.52–0.87) │ │ 3 │ 0 of 22 (0.00–0.15) │" in out
    out = said("--where", "edit_distance >= 0.5", "--good", "30", "--precision", "0.8")
    assert "with edit_distance >= 0.5; " in out and "do not meet the condition" in out
    assert "Of the 32 judged pairs in the cut, 32 are good: a share of 1.00 (95%" in out
    assert "deciles: [0, 1, 2, 3, 4, 5] where: [edit_distance >= 0.5]" in out
    assert "The shares of good pairs by decile need" in said("--where", "edit_distance <= 0.2")
    out = said("--good", "100")
    assert (
        "no cut with at least 20 judged pairs is sure to reach this precision" in out
        and "select:" not in out
    )
    labels.write_text(f"{HEADER}same\tsame\t100\n")
    assert "No cut can be measured, because no score" in said()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give either a run folder with judgments or --labels FILE"),
        (["--labels", "nowhere"], "--labels nowhere: does not exist"),
        (["--labels", "LABELS", "--precision", "1"], "--precision: must be between 0 and 1"),
        (["--labels", "LABELS", "--resource", "idf"], "--resource idf: must be NAME=PATH"),
        (["--labels", "LABELS", "--scorers", "mean_idf"], "mean_idf needs the IDF of words"),
    ],
)
def test_wrong_arguments_are_one_line(
    labels: Path, capsys: Capsys, arguments: list[str], message: str
) -> None:
    given = [str(labels) if word == "LABELS" else word for word in arguments]
    assert message in refusal(capsys, "agreement", *given)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["publish", "RUN", "--triplets-model", "a"],
            "triplets-model has no effect without --trip",
        ),
        (["publish", "RUN", "--max-score", "0.8"], "--max-score has no effect without --triplets"),
        (["doctor", "--sentence", "A dog."], "doctor: --sentence has no effect without --model"),
        (["agreement", "RUN", "--resource", "a=b"], "--resource has no effect without --labels"),
        (["estimate", "--config", "a", "--device", "a"], "no effect without --rows-per-second"),
        (["judge", "RUN", "--selected", "--generators"], "--generators has no effect without"),
        (["init", "a", "--source-language", "de"], "--source-language has no effect without opus:"),
    ],
)
def test_an_option_without_its_partner(
    tmp_path: Path, capsys: Capsys, arguments: list[str], message: str
) -> None:
    given = [str(tmp_path) if word == "RUN" else word for word in arguments]
    assert message in refusal(capsys, *given)


@pytest.fixture
def sts(tmp_path: Path) -> Path:
    random = np.random.default_rng(1)
    for year, name in (("2015", "images"), ("2017", "en-en"), ("stsb", "sts-dev")):
        rows = []
        for i in range(30):
            words = " ".join(f"w{n}" for n in random.integers(0, 30, 5))
            first = [f"main-{'news' if i % 2 else 'forums'}", "x", year, str(i)]
            score = str(round(random.uniform(0, 5), 1))
            rows.append((first if year == "stsb" else []) + [score, words, f"w{i} {words[:5]}"])
        suffix = "csv" if year == "stsb" else "tsv"
        file = tmp_path / "sts" / year / f"{name}.{suffix}"
        file.parent.mkdir(parents=True)
        file.write_text("".join("\t".join(row) + "\n" for row in rows))
    return tmp_path / "sts"


@pytest.fixture
def models(tmp_path: Path, monkeypatch: Patch) -> list[str]:
    """An encoder of ours, and the same without what is only ours."""
    monkeypatch.setattr(opened, "_SECONDS", 0.01)
    ours, theirs = tmp_path / "run" / "embeddings", tmp_path / "<theirs>"
    small_encoder(NUMBERED).save(ours)
    shutil.copytree(ours, theirs, ignore=shutil.ignore_patterns("config.json", "words.txt"))
    return [str(ours), str(theirs)]


def test_side_by_side(sts: Path, models: list[str], tmp_path: Path, capsys: Capsys) -> None:
    arguments = [part for model in models for part in ("--model", model)]
    arguments += [part for name in ("2015", "2017", "stsb") for part in ("--sts", str(sts / name))]
    assert main(["evaluate", *arguments, "--json", str(tmp_path / "x.json")]) == 0
    assert main(["evaluate", *arguments, "--json", str(tmp_path / "x.json")]) == 0
    (tmp_path / "data.tsv").write_text("5\ta dog\ta hound\n")
    assert main(["evaluate", *arguments, "--json", str(tmp_path / "data.tsv")]) == 2
    assert (tmp_path / "data.tsv").read_text() == "5\ta dog\ta hound\n"
    shown = capsys.readouterr().out
    for text in ("STS 2017 mean", "MTEB: STS 2017 (STS17", "sentences/s", "size on disk"):
        assert text in shown
    results = json.loads((tmp_path / "x.json").read_text())
    assert errors_of("evaluate", results) == []
    assert results["groups"]["stsb"]["mean"] is None
    ours, theirs = models
    assert results["models"] == models
    found = results["protocols"]["mteb"]["results"]
    assert list(found) == ["STS 2015", "STS 2017", "STS Benchmark dev"]
    for of in found.values():
        assert of[ours] == pytest.approx(of[theirs], abs=1e-3)
    costs = results["costs"]["models"]
    assert min(costs[name]["bytes_on_disk"] for name in models) > 31 * 4 * 4
    assert costs[theirs]["sentences_per_second"] > 0
    assert "give --sts DIR" in refusal(capsys, "evaluate", "--model", ours)
