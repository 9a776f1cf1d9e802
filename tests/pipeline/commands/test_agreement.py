"""`paraloom agreement` on labelled files, and what it refuses."""

import json
from pathlib import Path

import pytest

from paraloom.pipeline.cli import main
from paraloom.pipeline.judging.agreement import default_names
from tests.run_helpers import Capsys, refusal

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
    assert "pairs not counted: 1 of equal sides" in out
    assert "select: # precision 0.8 by: " in out
    found = json.loads(results.read_text())
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
    assert "│ edit_distance │ −1.00 │ −1.00 to −1.00 │ less │" in out
    assert "│ 2 │ 16 of 22 (0.52–0.87) │ │ 3 │ 0 of 22 (0.00–0.15) │" in out
    out = said("--where", "edit_distance >= 0.5", "--good", "30", "--precision", "0.8")
    assert "with edit_distance >= 0.5; " in out and "that do not meet the condition" in out
    assert "Of the 32 judged pairs in it, 32 are good: a share of 1.00 (95%" in out
    assert "deciles: [0, 1, 2, 3, 4, 5] where: [edit_distance >= 0.5]" in out
    assert "Too few judged pairs for the shares" in said("--where", "edit_distance <= 0.2")
    out = said("--good", "100")
    assert "no cut with 20 judged pairs or more is sure to have it" in out and "select:" not in out
    labels.write_text(f"{HEADER}same\tsame\t100\n")
    assert "No cut can be measured: no score has a judged pair" in said()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give either a run folder with judgments or --labels FILE"),
        (["--labels", "nowhere"], "--labels nowhere: is not there"),
        (["--labels", "LABELS", "--precision", "1"], "--precision: must be between 0 and 1"),
        (["--labels", "LABELS", "--resource", "idf"], "--resource idf: must be NAME=PATH"),
        (["--labels", "LABELS", "--scorers", "mean_idf"], "mean_idf needs the words' IDF"),
    ],
)
def test_wrong_arguments_are_one_line(
    labels: Path, capsys: Capsys, arguments: list[str], message: str
) -> None:
    given = [str(labels) if word == "LABELS" else word for word in arguments]
    assert message in refusal(capsys, "agreement", *given)
