from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.experiments import cells
from benchmarks.experiments.cells import Cell, Inputs, Scores, cell_path
from benchmarks.experiments.report import judge, write
from benchmarks.experiments.tables import Claim, Table
from paraloom.models.embeddings.options import EmbeddingOptions

BETTER, WORSE = Cell(options=EmbeddingOptions()), Cell(options=EmbeddingOptions(dim=3))


def found(better: list[float], worse: list[float]) -> dict[Any, list[Scores]]:
    measures = ("development", "sts_2015", "sick")
    return {
        cell: [dict.fromkeys(measures, value) for value in values]
        for cell, values in ((BETTER, better), (WORSE, worse))
    }


@pytest.mark.parametrize(
    ("better", "worse", "verdict"),
    [
        ([60, 61, 62], [50, 51, 52], "holds (+10.0 ± 0.8)"),
        ([50, 51, 52], [60, 61, 62], "reversed (-10.0 ± 0.8)"),
        ([50, 60, 70], [50, 58, 66], "open (+2.0 ± 7.4)"),
        ([60], [59], "holds (+1.0 ± 0.0)"),
    ],
)
def test_a_claim_is_judged_by_the_standard_error_of_the_difference(
    better: list[float], worse: list[float], verdict: str
) -> None:
    table = Table("title", {"A": BETTER, "B": WORSE}, [Claim("A", "B")])
    assert judge(table, table.claims[0], found(better, worse), "sick") == verdict


def test_markdown(tmp_path: Path) -> None:
    table = Table("Title", {"A": BETTER, "B": WORSE}, [Claim("A", "B")])
    write(tmp_path / "t.md", table, found([60.0, 62.0], [50.0, 50.0]))
    assert (tmp_path / "t.md").read_text().splitlines() == [
        "### Title",
        "",
        "| Pearson × 100 | STS 2012–2014 | STS 2015 | SICK trial |",
        "| --- | --- | --- | --- |",
        "| A | 61.0 ± 1.4 | 61.0 ± 1.4 | 61.0 ± 1.4 |",
        "| B | 50.0 ± 0.0 | 50.0 ± 0.0 | 50.0 ± 0.0 |",
        "",
        "| the paper's claim | STS 2015 | SICK trial |",
        "| --- | --- | --- |",
        "| A > B | holds (+11.0 ± 1.0) | holds (+11.0 ± 1.0) |",
    ]


def test_a_cell_is_known_by_what_it_depends_on(tmp_path: Path) -> None:
    for name in ("corpus", "sts", "sick"):
        (tmp_path / name).mkdir()
    shard = tmp_path / "corpus" / "a.parquet"
    pq.write_table(pa.table({"reference": ["a"], "translation": ["b"]}), shard)
    (tmp_path / "v.txt").write_text("a 1\n")
    inputs = Inputs(
        corpus=tmp_path / "corpus",
        phrases=tmp_path / "phrases",
        sts=tmp_path / "sts",
        sick=tmp_path / "sick",
        books=tmp_path / "books",
        folder=tmp_path,
    )
    cell = Cell(options=EmbeddingOptions(initial_vectors=str(tmp_path / "v.txt")))
    paths = [cell_path(cell, 1, inputs), cell_path(cell, 1, inputs), cell_path(cell, 2, inputs)]
    paths.append(cell_path(replace(cell, options=cell.options.replace(margin=0.3)), 1, inputs))
    (tmp_path / "v.txt").write_text("a 2\n")
    cells.digest.cache_clear()
    paths.append(cell_path(cell, 1, inputs))
    pq.write_table(pa.table({"reference": ["a"], "translation": ["c"]}), shard)
    cells.digest.cache_clear()
    paths.append(cell_path(cell, 1, inputs))
    (tmp_path / "sts" / "x.tsv").write_text("1\ta\tb\n")
    cells.digest.cache_clear()
    paths.append(cell_path(cell, 1, inputs))
    assert paths[0] == paths[1] and len(set(paths)) == len(paths) - 1
