"""`input.where`, `input.unique` and `input.keep` in runs, and other forms of input."""

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paraloom.pipeline.cli import main
from paraloom.pipeline.commands.run.explain import find
from paraloom.pipeline.config import Config
from tests.run_helpers import Capsys, WriteConfig, again, manifest, one_line, ran, table

CONDITIONS = ["source_tokens <= 4", "identical = no"]


@pytest.fixture
def repeating(tmp_path: Path, bitext: dict[str, str]) -> dict[str, str]:
    """The pairs of `bitext` twice; of the second ones, every third has another reference."""
    paths = {}
    for side, path in bitext.items():
        lines = Path(path).read_text(encoding="utf-8").splitlines()
        again = [
            line if side == "source" or number % 3 or not line else f"{line} {number}"
            for number, line in enumerate(lines)
        ]
        paths[side] = str(tmp_path / Path(path).name)
        text = "".join(f"{line}\n" for line in [*lines, *again])
        Path(paths[side]).write_text(text, encoding="utf-8")
    return paths


def test_each_distinct_source_of_a_shard_is_translated_once(
    tmp_path: Path, repeating: dict[str, str], write_config: WriteConfig, capsys: Capsys
) -> None:
    one_shard = {"paths": repeating, "shard_rows": 1000}
    write_config(tmp_path, input=one_shard)
    assert again("back-translate", tmp_path) == 0
    plain = table(tmp_path, "back_translate").to_pylist()
    capsys.readouterr()

    write_config(tmp_path, input={**one_shard, "unique": "source"})
    assert again("select", tmp_path) == 0
    assert ran(capsys.readouterr().err)[0] == "back_translate"
    record = manifest(tmp_path)["stages"]["back_translate"]
    sources = [row["source"] for row in table(tmp_path, "ingest").to_pylist()]
    assert record["rows_in"] == len(sources)
    assert record["saved"]["input.unique"]["rows"] == len(sources) - len(set(sources))
    assert record["metrics"]["sentences"] == len(set(sources))
    for row, other in zip(table(tmp_path, "back_translate").to_pylist(), plain, strict=True):
        score, exact = row.pop("translation_score"), other.pop("translation_score")
        assert score == pytest.approx(exact, abs=1e-5)
        assert row == other


def test_pairs_and_conditions(
    tmp_path: Path, repeating: dict[str, str], write_config: WriteConfig
) -> None:
    write_config(tmp_path, input={"paths": repeating, "unique": "pair", "where": CONDITIONS})
    assert again("ingest", tmp_path) == 0
    record = manifest(tmp_path)["stages"]["ingest"]
    accepted = table(tmp_path, "ingest").to_pylist()
    rejected = table(tmp_path, "ingest/_rejected").to_pylist()
    assert record["rows_in"] == len(accepted) + len(rejected) == 240
    texts = [(row["source"], row["reference"]) for row in accepted]
    assert len(set(texts)) == len(texts)
    repeats = [row for row in rejected if row["reason"] == "repeats an earlier pair"]
    assert record["rejected"]["repeats an earlier pair"] == len(repeats)
    assert record["saved"]["input.unique"]["rows"] == len(repeats)
    assert {row["text"] for row in repeats} <= {"\t".join(texts_of) for texts_of in texts}
    reasons = Counter(row["reason"] for row in rejected)
    assert record["saved"]["input.where"]["rows"] == reasons["not source_tokens <= 4"] > 0


DOMAINS = ["web", "news", None]


@pytest.fixture
def parquet(tmp_path: Path, bitext: dict[str, str]) -> dict[str, Any]:
    """The pairs of `bitext` as Parquet with further columns: keys of `input`."""
    sides = [Path(bitext[side]).read_text("utf-8").splitlines() for side in ("source", "reference")]
    rows = [
        {"translation": {"cs": cs, "en": en}, "domain": DOMAINS[i % 3], "meta": {"year": i}}
        for i, (cs, en) in enumerate(zip(*sides, strict=True))
    ]
    path = tmp_path / "sample.cs.parquet"
    pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=30)
    columns = {"source": "translation.cs", "reference": "translation.en"}
    return {"format": "parquet", "paths": [str(path)], "columns": columns}


KEEP = ["domain", "meta.year"]


def test_kept_columns_go_through_all_stages(
    tmp_path: Path, write_config: WriteConfig, parquet: dict[str, Any], capsys: Capsys
) -> None:
    where = {"keep": KEEP, "where": ["domain != news"]}
    selected = {"where": ["meta.year in 20..89"]}
    moses = tmp_path / "moses"
    moses.mkdir()
    write_config(moses)
    assert again("ingest", moses) == 0
    write_config(tmp_path, input={**parquet, **where}, select=selected)
    assert again("select", tmp_path) == 0
    capsys.readouterr()
    rejected = manifest(tmp_path)["stages"]["ingest"]["rejected"]
    assert rejected == {"not domain != news": 39, "empty source": 1}  # which is news
    plain = {row["id"]: row for row in table(moses, "ingest").to_pylist()}
    found = table(tmp_path, "ingest").to_pylist()
    assert len(found) == 120 - 40
    for row in found:
        number = int(row["id"].split(":")[1]) - 1
        assert (row.pop("domain"), row.pop("meta.year")) == (DOMAINS[number % 3], number)
        assert row == plain[row["id"]]
    for stage in ("back_translate", "score", "bucket", "corpus"):
        rows = table(tmp_path, stage).to_pylist()
        assert all(row["meta.year"] == int(row["id"].split(":")[1]) - 1 for row in rows)
    assert len(rows) > 0 and {row["meta.year"] for row in rows} <= {*range(20, 90)}
    card = (tmp_path / "run" / "README.md").read_text()
    assert "| `meta.year` | as in the bitext | column of the bitext |" in card
    id = rows[0]["id"]
    assert main(["explain", str(tmp_path / "run"), id]) == 0
    out = capsys.readouterr().out
    assert re.search(rf"meta\.year\W+{rows[0]['meta.year']}\b", out) and "domain" in out
    assert [step.stage for step in find(str(tmp_path / "run"), id)][-1] == "select"
    release = ["--out", str(tmp_path / "release"), "--license", "cc0-1.0", "--held-out", "0"]
    assert main(["publish", str(tmp_path / "run"), *release]) == 0
    published = pq.read_table(next((tmp_path / "release" / "data").glob("*.parquet")))
    assert published["meta.year"].to_pylist() == [row["meta.year"] for row in rows]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"keep": ["source"]}, r"input\.keep: source is another column of the pairs"),
        ({"keep": ["trigram_overlap"]}, r"input\.keep: trigram_overlap is another column"),
        ({"keep": ["x_decile"]}, r"input\.keep: x_decile is another column"),
        ({"keep": ["domain"], "where": ["domains = a"]}, r"did you mean domain\?"),
        ({"columns": {"reference_": "a"}}, r"input\.columns: parquet takes source, reference, id"),
        ({"keep": ["domain"], "where": ["domain <= 3"]}, r"'domain <= 3': the values of domain"),
        ({"keep": ["meta.year"], "where": ["meta.year = old"]}, r"the values of meta\.year are of"),
        ({"columns": {"source": "cs"}}, r"have no cs, but translation\.cs, translation\.en"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_one_line(
    tmp_path: Path, write_config: WriteConfig, parquet: dict[str, Any], capsys: Capsys,
    options: dict[str, Any], message: str,
) -> None:  # fmt: skip
    write_config(tmp_path, input={**parquet, **options})
    assert again("ingest", tmp_path) == 2
    assert re.search(message, one_line(capsys))


def test_select_where_may_name_kept_columns_only(parquet: dict[str, Any]) -> None:
    def config(keep: list[str], where: str) -> Config:
        select = {"by": "trigram_overlap", "where": [where]}
        scorers = {"scorers": ["trigram_overlap"]}
        given = {**parquet, "keep": keep}
        return Config.of({"run": "a", "input": given, "score": scorers, "select": select})

    assert config(["domain"], 'domain = "web text"')
    with pytest.raises(ValueError, match=r"select\.where\[0\]: domain is no column of the pairs"):
        config([], "domain = web")
    with pytest.raises(ValueError, match=r"domains is no column .* translation_tokens, domain,"):
        config(["domain"], "domains = web")
