import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paraloom.beam_jobs.engine.shards import receipts, write_receipt, write_shard
from paraloom.pipeline.cli import main
from tests.run_helpers import Capsys, changed_manifest, part_file, table


def compared(*folders: Path, capsys: Capsys, more: Sequence[str] = ()) -> tuple[int, str, str]:
    code = main(["compare", *(str(folder / "run") for folder in folders), *more])
    captured = capsys.readouterr()
    return code, " ".join(captured.out.split()), captured.err.strip()


def rewrite(folder: Path, stage: str, number: int, change: Callable[[pa.Table], pa.Table]) -> None:
    """Write a part file anew, as a run that made other rows would have."""
    receipt = receipts(str(folder / "run" / stage))[number]
    (shard,) = receipt.shards
    shards = (write_shard(shard.path, change(pq.read_table(shard.path))),)
    write_receipt(str(folder / "run" / stage), receipt.model_copy(update={"shards": shards}))


def test_where_runs_part_is_told(finished_run: Path, a_run: Path, capsys: Capsys) -> None:
    def change(table: pa.Table) -> pa.Table:
        scores = table["trigram_overlap"].to_pylist()
        scores[3] = 2.0
        where = table.schema.get_field_index("trigram_overlap")
        return table.set_column(where, table.field(where), pa.array(scores, pa.float32()))

    before = pq.read_table(part_file(a_run / "run/bucket", "part-00000-00002"))
    id, score = before["id"][3].as_py(), before["trigram_overlap"][3].as_py()
    rewrite(a_run, "bucket", 2, change)
    code, out, _ = compared(finished_run, a_run, capsys=capsys)
    assert code == 1
    assert f"bucket │ trigram_overlap │ 1 │ {id} │ {score} │ 2.0 " in out
    assert out.endswith("different; the first difference is in bucket")
    assert out.count("same") == 9


def test_rows_that_went_and_came_are_counted(run: Path, tmp_path: Path, capsys: Capsys) -> None:
    other = shutil.copytree(run, tmp_path / "other/run")

    def change(pairs: pa.Table) -> pa.Table:
        ids = pa.array(["new 1", "new 2"])
        new = pairs.slice(0, 2).set_column(0, pairs.schema.field("id"), ids)
        return pa.concat_tables([new, pairs.slice(5)])

    rewrite(other.parent, "bucket", 0, change)
    (tmp_path / "run").symlink_to(run)
    place = tmp_path / "compared.json"
    json_file = ["--json", str(place)]
    code, out, _ = compared(tmp_path, other.parent, capsys=capsys, more=json_file)
    rows = table(tmp_path, "bucket").num_rows
    assert code == 1
    assert f"bucket │ {rows:,} │ {rows - 3:,} │ 5 │ 2 │ different" in out
    found = {stage["name"]: stage["alone"] for stage in json.loads(place.read_text())["stages"]}
    assert found.pop("bucket") == [5, 2]
    assert {*map(tuple, found.values())} == {(0, 0)}


def moved(column: str, by: float, rows: int) -> Callable[[pa.Table], pa.Table]:
    """Other values in a column's first rows."""

    def change(table: pa.Table) -> pa.Table:
        where, kind = table.schema.get_field_index(column), table.schema.field(column)
        values = [value + by * (i < rows) for i, value in enumerate(table[column].to_pylist())]
        return table.set_column(where, kind, pa.array(values, kind.type))

    return change


SCORE = "translation_score"
TWO = [(SCORE, 4e-7), ("unigram_f1", -9e-7)]
AT_ITS_BOUND = "; this can also change deciles and the selected rows"


@pytest.mark.parametrize(
    ("changes", "tolerance", "code", "said"),
    [
        ([(SCORE, 4e-7)], "0", 1, "up to 4.2e-07, as can happen between processors different"),
        ([(SCORE, 4e-7)], "1e-7", 1, "up to 4.2e-07, as can happen between processors different"),
        ([(SCORE, 4e-7)], "1e-5", 0, "processors same rows and values, floats within 1e-05"),
        (TWO, "1e-5", 0, "up to 8.9e-07, as can happen between processors"),
        ([(SCORE, 1e-3)], "1e-5", 1, ""),
        ([(SCORE, 1e-3)], "0.1", 0, "same rows and values, floats within 0.1"),
        ([(SCORE, 4e-7), ("unigram_f1", 0.1)], "1e-5", 1, ""),
        ([(SCORE, 4e-7), (f"{SCORE}_decile", 1)], "1e-5", 1, f"between processors{AT_ITS_BOUND}"),
        ([(f"{SCORE}_decile", 1)], "1e-5", 1, ""),
        ([(SCORE, 4e-7), ("reference_tokens", 1)], "1e-5", 1, ""),
    ],
)
def test_another_processor_is_named_and_passed_over_if_asked(
    run: Path, tmp_path: Path, capsys: Capsys,
    changes: list[tuple[str, float]], tolerance: str, code: int, said: str,
) -> None:  # fmt: skip
    """Deciles are no floats: a corpus with other pairs is another corpus."""
    other = shutil.copytree(run, tmp_path / "other/run")
    for column, by in changes:
        rewrite(other.parent, "bucket", 0, moved(column, by, 1))
    (tmp_path / "run").symlink_to(run)
    more = ["--tolerance", tolerance]
    found, out, _ = compared(tmp_path, other.parent, capsys=capsys, more=more)
    assert found == code
    assert said in out
    assert ("processors" in out) == ("processors" in said)


def test_further_rounds_are_compared_too(finished_run: Path, a_run: Path, capsys: Capsys) -> None:
    with changed_manifest(a_run) as content:
        content["config"] |= {"loop": {"rounds": 2}}
        content["config"]["select"]["labelled"] = "a.tsv"
        content["planned"].append("rounds/2/score")
        shutil.copytree(a_run / "run/score", a_run / "run/rounds/2/score")
        content["stages"]["rounds/2/score"] = content["stages"]["score"]
    code, out, _ = compared(finished_run, a_run, capsys=capsys)
    assert code == 1
    assert "not finished" in out
    assert out.endswith("different; the first difference is in rounds/2/score")
    code, out, _ = compared(a_run, a_run, capsys=capsys)
    assert code == 0
    assert out.endswith("same rows and values")


def test_a_folder_that_is_no_run(finished_run: Path, tmp_path: Path, capsys: Capsys) -> None:
    code, _, error = compared(finished_run, tmp_path, capsys=capsys)
    assert code == 2
    assert error == f"paraloom: {tmp_path}/run: has no finished stage that makes pairs"
    assert list(tmp_path.iterdir()) == []
