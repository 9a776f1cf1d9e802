"""Other forms of input and `input.keep` in runs: through all stages, killed, and wrong."""

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paraloom.pipeline.cli import main
from paraloom.pipeline.commands.run.explain import find
from paraloom.pipeline.config import Config, read_config
from paraloom.pipeline.manifest import Manifest
from paraloom.pipeline.plan import key_of
from paraloom.pipeline.stage import Run
from paraloom.pipeline.stages import STAGES
from tests.run_helpers import Capsys, WriteConfig, again, kill_in, manifest, one_line, table

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


def test_killed_and_resumed(
    tmp_path: Path, write_config: WriteConfig, parquet: dict[str, Any]
) -> None:
    whole = tmp_path / "whole"
    whole.mkdir()
    options = {**parquet, "keep": KEEP, "shard_rows": 1}
    write_config(whole, input=options)
    assert again("ingest", whole) == 0
    write_config(tmp_path, input=options)
    kill_in("ingest", tmp_path, "part-*", "ingest")
    assert "ingest" not in Manifest(str(tmp_path / "run")).stages
    assert again("ingest", tmp_path) == 0
    assert main(["compare", str(whole / "run"), str(tmp_path / "run")]) == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"keep": ["source"]}, r"input\.keep: source is another column of the pairs"),
        ({"keep": ["trigram_overlap"]}, r"input\.keep: trigram_overlap is another column"),
        ({"keep": ["source_tokens"]}, r"input\.keep: source_tokens is another column"),
        ({"keep": ["x_decile"]}, r"input\.keep: x_decile is another column"),
        ({"keep": ["domain", "domain"]}, r"input\.keep: domain is another column"),
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


def test_keys_depend_on_what_is_read(
    tmp_path: Path, write_config: WriteConfig, parquet: dict[str, Any]
) -> None:
    def key(**options: Any) -> str:
        config = read_config(write_config(tmp_path, input={**parquet, **options}))
        run = Run(config=config, manifest=Manifest(config.run))
        return next(key_of(stage, run) for stage in STAGES if stage.name == "ingest")

    plain = key()
    swapped = {"source": "translation.en", "reference": "translation.cs"}
    assert len({plain, key(keep=["domain"]), key(keep=KEEP), key(columns=swapped)}) == 4
    assert key(keep=[]) == key(source_language="ces") == plain
