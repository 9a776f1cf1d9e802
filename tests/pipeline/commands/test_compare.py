import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from paraloom.beam_jobs.io.shards import receipts, write_receipt, write_shard
from paraloom.pipeline.cli import main
from tests.run_helpers import Capsys, changed_manifest, part_file


def run(*folders: Path, capsys: Capsys) -> tuple[int, str, str]:
    code = main(["compare", *(str(folder / "run") for folder in folders)])
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
    code, out, _ = run(finished_run, a_run, capsys=capsys)
    assert code == 1
    assert f"bucket │ trigram_overlap │ 1 │ {id} │ {score} │ 2.0 " in out
    assert out.endswith("different; the first difference is in bucket")
    assert out.count("same") == 9


def test_further_rounds_are_compared_too(finished_run: Path, a_run: Path, capsys: Capsys) -> None:
    with changed_manifest(a_run) as content:
        content["stages"]["rounds/2/score"] = content["stages"]["score"]
        content["planned"].append("rounds/2/score")
    shutil.copytree(a_run / "run/score", a_run / "run/rounds/2/score")
    code, out, _ = run(finished_run, a_run, capsys=capsys)
    assert code == 1
    assert "not finished" in out
    assert out.endswith("different; the first difference is in rounds/2/score")
    code, out, _ = run(a_run, a_run, capsys=capsys)
    assert code == 0
    assert out.endswith("same rows and values")


def test_a_folder_that_is_no_run(finished_run: Path, tmp_path: Path, capsys: Capsys) -> None:
    code, _, error = run(finished_run, tmp_path, capsys=capsys)
    assert code == 2
    assert error == f"paraloom: {tmp_path}/run: no run here that has finished a stage of pairs"
    assert list(tmp_path.iterdir()) == []
