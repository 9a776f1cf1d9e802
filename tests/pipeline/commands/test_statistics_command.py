"""`paraloom statistics`: corpora side by side, as a table and as JSON."""

import json
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paraloom.models.errors import UserError
from paraloom.pipeline.cli import main
from paraloom.pipeline.config import read_config
from paraloom.pipeline.records import BucketRecord, PairsRecord
from paraloom.pipeline.run import run_stages
from paraloom.pipeline.stages.statistics import StatisticsRecord
from tests.models.parsers import train_parser
from tests.run_helpers import Capsys, Patch, WriteConfig, ran

ONE = ["--", "--direct_num_workers", "1"]


def write(path: Path, rows: int, **columns: list[float]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    texts = {"reference": ["a dog runs fast ."] * rows, "translation": ["run !"] * rows}
    pq.write_table(pa.table({**texts, **columns}), path)


@pytest.fixture
def corpora(tmp_path: Path, monkeypatch: Patch) -> list[str]:
    """A run with a corpus, a folder, and a file."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "run/corpus/part-0.parquet", 3, trigram_overlap=[0.0, 0.5, 1.0])
    write(tmp_path / "run/corpus/part-1.parquet", 2, trigram_overlap=[0.5, 0.5])
    write(tmp_path / "run/corpus/rejected/part-0.parquet", 7)
    write(tmp_path / "run/score/part-0.parquet", 9)
    (tmp_path / "run/manifest.json").write_text('{"stages": {}}')
    write(tmp_path / "[red]x/x.parquet", 4)
    return ["run", "[red]x", "[red]x/x.parquet"]


def test_side_by_side(corpora: list[str], tmp_path: Path, capsys: Capsys) -> None:
    out = tmp_path / "statistics.json"
    assert main(["statistics", *corpora, "--json", str(out), *ONE]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"pairs +│ +5 │ +4 │ +4", shown)
    assert re.search(r"reference_tokens +│ +5\.000 ± 0\.000 │ +5\.000 ± 0\.000", shown)
    assert re.search(r"trigram_overlap +│ +0\.500 ± 0\.316 │ +– │ +–", shown)
    assert re.search(r"reference_parse_entropy +│ +– │ +– │ +–", shown)
    assert "left out" in shown
    assert "--spacy" in shown
    assert "┃ [red]x/x.parquet" in " ".join(shown.split())  # no markup
    found = json.loads(out.read_text())
    assert [corpus["pairs"] for corpus in found["corpora"]] == [5, 4, 4]
    assert [corpus["name"] for corpus in found["corpora"]] == corpora
    first = found["corpora"][0]["statistics"]
    assert first["trigram_overlap"] == pytest.approx(
        {"mean": 0.5, "deviation": 0.1**0.5, "count": 5}
    )
    assert first["reference_parse_entropy"] is None


@pytest.mark.parametrize(
    ("corpus", "said"),
    [
        ("nowhere", "nowhere: neither a run nor a Parquet file nor a folder of such files"),
        ("nowhere.parquet", "nowhere.parquet: a file cannot be read or written"),
        ("empty", "empty: the run has no corpus yet; name the folder of a stage"),
    ],
)
def test_what_is_no_corpus_is_one_line(
    corpus: str, said: str, tmp_path: Path, monkeypatch: Patch, capsys: Capsys
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty/manifest.json").write_text("{}")
    assert main(["statistics", corpus, *ONE]) == 2
    assert capsys.readouterr().err.strip().splitlines()[-1].startswith(f"paraloom: {said}")


def test_in_a_run(a_run: Path, write_config: WriteConfig, tmp_path: Path, capsys: Capsys) -> None:
    """All pairs beside the corpus; what changes neither leaves the figures."""
    parser = train_parser(tmp_path / "parser")
    write_config(a_run, statistics={"spacy": parser})
    config = read_config(a_run / "config.yaml")
    run = run_stages(config, ["statistics"], ONE[1:])
    out, err = capsys.readouterr()
    assert ran(err) == ["statistics"]
    assert "root and its dependents" in " ".join(out.split()) and "left out" not in out
    whole, corpus = run.record(StatisticsRecord).results.corpora
    assert (whole.name, corpus.name) == ("all pairs", "corpus")
    assert re.search(rf"pairs +│ +{whole.pairs} │ +{corpus.pairs} ", out)
    assert whole.pairs == run.record(BucketRecord).rows_out
    assert corpus.pairs == run.record(PairsRecord, "select").rows_out
    entropy = corpus.statistics["reference_parse_entropy"]
    assert entropy is not None and entropy.count == corpus.pairs

    run_stages(config, ["statistics"], ONE[1:])
    assert ran(capsys.readouterr().err) == []
    run_stages(read_config(a_run / "config.yaml", ["select.size=5"]), ["statistics"], ONE[1:])
    assert ran(capsys.readouterr().err) == ["select", "statistics"]
    run_stages(read_config(a_run / "config.yaml", ["statistics=null"]), ["select"], ONE[1:])
    assert "statistics" not in ran(capsys.readouterr().err)


def test_a_run_needs_its_parser_before_any_work(a_run: Path, capsys: Capsys) -> None:
    config = read_config(a_run / "config.yaml", ["statistics.spacy=no_such_pipeline"])
    with pytest.raises(UserError, match=r"^spaCy cannot load no_such_pipeline") as caught:
        run_stages(config, ["select", "statistics"], ONE[1:])
    assert caught.value.__notes__ == ["statistics.spacy"]
    assert ran(capsys.readouterr().err) == []
