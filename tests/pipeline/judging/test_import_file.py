"""Judgments made elsewhere: by ids, by texts, twice, wrong rows, rows of other corpora."""

import gzip
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paraloom.models.errors import UserError
from paraloom.pipeline.cli import main
from paraloom.pipeline.judging.import_file import import_judgments
from paraloom.pipeline.judging.judgments import read_judgments
from paraloom.pipeline.judging.sampling import ScoredRun
from tests.run_helpers import Capsys, WriteConfig, part_file


def content(run: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (run / "judgments").glob("*.jsonl")}


def tsv(folder: Path, *lines: str, name: str = "anna.tsv") -> str:
    path = folder / name
    text = "".join(line.replace(" | ", "\t") + "\n" for line in lines).encode()
    path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    return str(path)


def test_by_id_and_by_texts(write_run: WriteConfig, tmp_path: Path) -> None:
    run = write_run()
    row = pq.read_table(part_file(run / "bucket", "part-2")).slice(7, 1).to_pylist()[0]
    by_id = tsv(tmp_path, "id | score | fluency", "p-3 | 70 | 2", "p-399 | 0.5 | ", "x | 1 | 1")
    done = import_judgments(ScoredRun(str(run)), by_id)
    assert (done.added, done.unchanged, [row.number for row in done.unknown]) == (2, 0, [4])
    by_texts = tsv(
        tmp_path,
        "note | translation | reference | judge | score",
        f"good | {row['translation']} | {row['reference']} | Bedřich | 100",
        f" | other | {row['reference']} | Bedřich | 100",
        name="all.tsv",
    )
    done = import_judgments(ScoredRun(str(run)), by_texts)
    assert (done.added, len(done.unknown)) == (1, 1)
    found = {(one.judge, one.id): (one.score, one.fluency) for one in read_judgments(str(run))}
    assert found == {
        ("anna", "p-3"): (70, 2),
        ("anna", "p-399"): (0.5, None),
        ("Bedřich", row["id"]): (100, None),
    }
    assert {one.candidate for one in read_judgments(str(run))} == {None}
    (judged,) = (one for one in read_judgments(str(run)) if one.judge == "Bedřich")
    assert (judged.reference, judged.translation) == (row["reference"], row["translation"])
    by_both = tsv(
        tmp_path,
        "id | reference | translation | score",
        f"{row['id']} | {row['reference']} |  | 1",
        f"{row['id']} | other | {row['translation']} | 1",
        name="both.tsv",
    )
    done = import_judgments(ScoredRun(str(run)), by_both)
    assert (done.added, [row.number for row in done.unknown]) == (1, [3])


def test_of_pairs_with_the_same_texts_the_first_is_meant(
    write_run: WriteConfig, tmp_path: Path
) -> None:
    run = ScoredRun(str(write_run(60)))
    (table, *others) = run.tables(["source", "reference", "translation"])
    again = table.set_column(0, "id", pa.array(["z"] * len(table))).cast(table.schema)
    run.tables = lambda columns, stage="": iter([table, again, *others])  # type: ignore[method-assign]
    row = table.slice(3, 1).to_pylist()[0]
    line = f"{row['reference']} | {row['translation']} | 70"
    import_judgments(run, tsv(tmp_path, "reference | translation | score", line))
    assert [one.id for one in read_judgments(run.folder)] == [row["id"]]


def test_twice_is_once(write_run: WriteConfig, tmp_path: Path) -> None:
    run = write_run()
    file = tsv(tmp_path, "id | score | judge", "p-3 | 70 | a", "p-3 | 60 | b", "p-4 | 20 | a")
    import_judgments(ScoredRun(str(run)), file)
    before = content(run)
    done = import_judgments(ScoredRun(str(run)), file)
    assert (done.added, done.unchanged) == (0, 3)
    assert content(run) == before
    changed = tsv(tmp_path, "id | score | judge", "p-3 | 71 | a", "p-4 | 20 | a")
    done = import_judgments(ScoredRun(str(run)), changed)
    assert (done.added, done.unchanged) == (1, 1)
    assert [one.score for one in read_judgments(str(run))] == [71, 20, 60]


def test_several_translations_of_a_source(write_run: WriteConfig, tmp_path: Path) -> None:
    run = ScoredRun(str(write_run(60, candidates=3)))
    file = tsv(tmp_path, "id | candidate | score", "p-3 | 1 | 70", "p-3 | 2 | 10", "p-3 | 5 | 9")
    done = import_judgments(run, file)
    assert (done.added, [row.number for row in done.unknown]) == (2, [4])
    assert [one.candidate for one in read_judgments(run.folder)] == [1, 2]
    second = read_judgments(run.folder)[1]
    by_text = tsv(tmp_path, "id | translation | score", f"p-3 | {second.translation} | 11")
    assert import_judgments(run, by_text).added == 1
    assert [one.score for one in read_judgments(run.folder)] == [70, 11]
    with pytest.raises(UserError, match=r"row 2: p-3 has several translations"):
        import_judgments(run, tsv(tmp_path, "id | score", "p-3 | 10"))


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["id | score", "p-1 | 50", "p-2 | 101"], "row 3: score: .*less than or equal to 100"),
        (["id | score", "p-1 | 50", " | 7"], "row 3: has neither an id nor both texts"),
        (["id | score", "p-1 | 50", "p-2 | 7 | 8"], "row 3: 3 tab-separated columns, expected 2"),
        (["id | score | judge", "p-1 | 5 | a", "p-2 | 7 | ../a"], "row 3: judge: '../a' cannot"),
        (["id | score | judge", "p-1 | 5 | a", "p-2 | 7 | "], "row 3: judge: .*required"),
        (["id | score", "p-1 | 50", "p-1 | 7"], "row 3: anna judged this pair already"),
        (["reference | score", "p-1 | 50"], "row 1: no column translation"),
        (["id | score", "x | 50"], "none of its 1 rows is of a pair"),
        ([], "row 1: no column score"),
    ],
)
def test_wrong_rows(
    write_run: WriteConfig, tmp_path: Path, capsys: Capsys, lines: list[str], message: str
) -> None:
    run = write_run(60)
    file = tsv(tmp_path, *lines)
    assert main(["judge", str(run), "--import", file]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert re.search(f"^paraloom: .*anna.tsv.*{message}", line)
    assert content(run) == {}


def test_the_command(write_run: WriteConfig, tmp_path: Path, capsys: Capsys) -> None:
    run = str(write_run())
    first = tsv(tmp_path, "id | score | fluency", "p-1 | 10 | 0", "p-2 | 50 | 1", "p-3 | 90 | 2")
    second = tsv(
        tmp_path, "id | score", "p-2 | 50", "p-3 | 90", "p-1 | 10", "q | 1", name="b.tsv.gz"
    )
    assert main(["judge", run, "--import", first]) == 0
    assert main(["judge", run, "--import", second]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"{first}: judgments added: 3, there already: 0"
    assert lines[1] == "pairs judged by anna: 3"
    assert "pairs judged by b: 3" in lines
    assert lines[3] == (
        f"{second}: rows that are not of a pair of the run: 1, the first is row 5: q"
    )
    assert lines[-1] == (
        "agreement on 3 pairs of several judges (Krippendorff's alpha): "
        "score 1.00, fluency undefined"
    )
    assert main(["judge", run, "--import", str(tmp_path / "none.tsv")]) == 2
    assert "none.tsv: cannot be read" in capsys.readouterr().err
