"""`input.where` and `input.unique` in runs: what they reject, what they save, what they change."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from paraloom.pipeline.cli import main
from paraloom.pipeline.config import read_config
from paraloom.pipeline.manifest import Manifest
from paraloom.pipeline.plan import key_of
from paraloom.pipeline.stage import Run
from paraloom.pipeline.stages import STAGES
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


def test_keys_of_runs_without_are_as_before(write_config: WriteConfig, tmp_path: Path) -> None:
    def keys(**options: Any) -> dict[str, str]:
        config = read_config(write_config(tmp_path, input=options))
        run = Run(config=config, manifest=Manifest(config.run))
        return {s.name: key_of(s, run) for s in STAGES if s.name in ("ingest", "back_translate")}

    plain = keys()
    assert keys(where=[], unique=None) == plain
    source, pair, where = keys(unique="source"), keys(unique="pair"), keys(where=CONDITIONS)
    assert source["ingest"] == plain["ingest"]
    assert source["back_translate"] != plain["back_translate"]
    assert pair["back_translate"] == plain["back_translate"]
    assert len({k["ingest"] for k in (plain, pair, where, keys(where=CONDITIONS[:1]))}) == 4
    assert keys(where=["source_tokens<=4.0", "identical  =no"]) == where


def test_a_bad_condition_ends_in_one_line(
    tmp_path: Path, write_config: WriteConfig, capsys: Capsys
) -> None:
    path = write_config(tmp_path, input={"where": ["identical = no", "source_token <= 3"]})
    assert main(["ingest", "--config", str(path)]) == 2
    line = one_line(capsys)
    assert "input.where[1]: source_token is no column of untranslated pairs; did you" in line
    assert not (tmp_path / "run").exists()
