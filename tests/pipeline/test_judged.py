"""`select.by: judged`: the cut that judgments give, what runs again when, and what it refuses."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from paraloom.pipeline.cli import main
from paraloom.pipeline.judging.judgments import Action, JudgeFile
from tests.run_helpers import Capsys, Runs, WriteConfig, again, manifest, one_line, parts, table


def pairs(folder: Path) -> list[dict[str, Any]]:
    return list(table(folder, "bucket").to_pylist())


def judge(
    folder: Path, score: Callable[[dict[str, Any]], float], judge: str = "Anna", rows: int = 10**6
) -> None:
    (folder / "run" / "judgments" / f"{judge}.jsonl").unlink(missing_ok=True)
    texts = "id", "reference", "translation"
    JudgeFile(str(folder / "run"), judge).append(
        Action(score=score(row), fluency=2, **{name: row[name] for name in texts})
        for row in pairs(folder)[:rows]
    )


def good_above(decile: int) -> Callable[[dict[str, Any]], float]:
    return lambda row: 90.0 if row["trigram_overlap_decile"] >= decile else 20.0


def report(folder: Path) -> str:
    return (folder / "run" / "report" / "index.html").read_text("utf-8")


def test_it_says_what_to_run_first(a_run: Path, write_config: WriteConfig, capsys: Capsys) -> None:
    write_config(a_run, select={"by": "judged"})
    assert again("select", a_run) == 2
    line = one_line(capsys)
    assert f"{a_run}/run has no judgments yet; run `paraloom bucket`" in line
    assert f"then `paraloom judge {a_run}/run`" in line
    assert again("bucket", a_run) == 0
    write_config(a_run, select={"named": {"z": {"by": "judged"}}})
    assert again("select", a_run, "--name", "z") == 2
    said = f"{a_run}/run has no judgments yet; "
    assert f"paraloom: select.named.z.by: judged: {said}" in capsys.readouterr().err
    write_config(a_run, select={"by": "judged", "named": {"z": {"size": 5}}})
    assert again("select", a_run, "--name", "z") == 2
    assert f"paraloom: select.named.z: select.by: judged: {said}" in capsys.readouterr().err


def test_it_selects_the_deciles_of_the_cut(a_run: Path, runs: Runs) -> None:
    judge(a_run, good_above(5))
    assert runs("select", a_run, select={"by": "judged"}) == ["judged", "select"]
    found = parts(a_run)
    record = manifest(a_run)
    (cut,) = record["stages"]["judged"]["agreement"]["cuts"]
    assert (cut["score"], cut["deciles"]) == ("trigram_overlap", [5, 6, 7, 8, 9])
    assert "deciles 5–9 of <code>trigram_overlap</code>" in report(a_run)
    card = (a_run / "run" / "README.md").read_text("utf-8")
    assert "selected with people's judgments: of" in card
    assert "People have checked only some of the pairs." in card

    assert runs("select", a_run) == []
    deciles = {"by": "trigram_overlap", "deciles": [5, 6, 7, 8, 9]}
    assert runs("select", a_run, select=deciles) == ["select"]
    assert parts(a_run) == found


def test_new_judgments_choose_again_and_select_only_another_cut(a_run: Path, runs: Runs) -> None:
    judge(a_run, good_above(5))
    runs("select", a_run, select={"by": "judged"})
    judge(a_run, good_above(5), "Ben", rows=30)
    assert runs("select", a_run) == ["judged"]
    for name in ("Anna", "Ben"):
        judge(a_run, good_above(2), name)
    assert runs("select", a_run) == ["judged", "select"]
    assert runs("select", a_run, select={"by": "judged", "precision": 0.5}) == ["judged", "select"]


def test_judgments_may_not_suffice(a_run: Path, write_config: WriteConfig, capsys: Capsys) -> None:
    judge(a_run, good_above(8))
    write_config(a_run, select={"by": "judged", "precision": 0.95})
    assert again("select", a_run) == 2
    *_, line = capsys.readouterr().err.splitlines()
    assert "select.precision: Precision 0.95: no cut with at least 20 judged pairs is sure" in line
    assert (
        "the best cut is deciles 8–9 of trigram_overlap; " in line
        and "a share of 1.00 (95%" in line
    )
    assert "lower select.precision" in line
    (a_run / "run" / "judgments" / "Anna.jsonl").unlink()
    JudgeFile(str(a_run / "run"), "Anna").append(
        [
            Action(id=of["id"], reference=of["id"], translation="b", score=90.0)
            for of in pairs(a_run)
        ]
    )
    assert again("select", a_run) == 2
    *_, line = capsys.readouterr().err.splitlines()
    said = f"{len(pairs(a_run))} judgments label 0 usable pairs of this run, which is too few"
    assert said in line


def test_the_report_has_precisions_and_is_written_when_they_come(a_run: Path, runs: Runs) -> None:
    assert again("select", a_run) == 0
    before = report(a_run)
    assert "Precision of the corpus" not in before
    judge(a_run, good_above(5))
    assert runs("select", a_run) == []
    with_them = report(a_run)
    judged = table(a_run, "corpus")["trigram_overlap_decile"].to_pylist()
    good = sum(decile >= 5 for decile in judged)
    assert 0 < good < len(judged)
    assert f"<p>Precision of the corpus: {good} of {len(judged)}, 95% interval " in with_them
    stamp = (a_run / "run" / "report" / "index.html").stat().st_mtime_ns
    assert again("select", a_run) == 0
    assert (a_run / "run" / "report" / "index.html").stat().st_mtime_ns == stamp
    (a_run / "run" / "judgments" / "Anna.jsonl").unlink()
    assert again("select", a_run) == 0
    assert report(a_run) == before


def test_near_copies_need_not_win(a_run: Path, write_config: WriteConfig, capsys: Capsys) -> None:
    """All pairs with much in common are good, and of the others those of deciles 2 and 3."""
    judge(a_run, lambda row: 60.0 if row["trigram_overlap_decile"] >= 2 else 20.0)
    where = ["trigram_overlap_decile in 0..3"]
    select = {"by": "judged", "where": where, "precision": 0.6, "good": 50}
    write_config(a_run, select=select)
    assert again("select", a_run) == 0
    record = manifest(a_run)
    found = record["stages"]["judged"]["agreement"]
    assert found["where"] == where and found["outside"] > 0
    (cut,) = found["cuts"]
    assert (cut["score"], cut["deciles"][0], cut["judged"]) == ("trigram_overlap", 2, cut["good"])
    rows = [row for row in pairs(a_run) if row["reference"] != row["translation"]]
    assert cut["rows"] == sum(2 <= row["trigram_overlap_decile"] <= 3 for row in rows)
    card = (a_run / "run" / "README.md").read_text("utf-8")
    corpus = record["stages"]["select"]["rows_out"]
    assert f"Precision of the corpus: {corpus} of {corpus}, 95% interval" in card
    assert f"Precision of the corpus: {corpus} of {corpus}" in report(a_run)

    capsys.readouterr()
    command = ["agreement", str(a_run / "run"), "--precision", "0.6"]
    assert main([*command, "--where", where[0], "--scorers", "trigram_overlap"]) == 0
    out = capsys.readouterr().out
    assert f"Precision of the corpus: {corpus} of {corpus}" in out
    assert f"{found['pairs']} judged pairs" in out and "  by: trigram_overlap\n" in out
