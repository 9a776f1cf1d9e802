"""`paraloom mine`, and runs on the pairs that it writes."""

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paraloom.pipeline.cli import main
from paraloom.pipeline.commands.corpus.estimate import estimate
from paraloom.pipeline.commands.model import mine as command
from paraloom.pipeline.config import Config
from tests.json_schema import errors_of
from tests.run_helpers import Capsys, Patch, again, manifest, needs, refusal, table
from tests.small_encoder import small_encoder

pytestmark = needs("faiss", "torch")

PAIRS = [
    ("Dogs bark “loudly”.", "The dogs bark loudly."),
    ("Two men play.", "Two men play chess."),
    ("A red car.", "One red car."),
]


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("encoder")
    words = [word.strip(".").lower() for pair in PAIRS for side in pair for word in side.split()]
    small_encoder(dict.fromkeys(words), dim=16).save(folder)
    return str(folder)


def write(folder: Path) -> Path:
    """Both sides of the pairs, a line that is equal but for case, and lines that are no text."""
    lines = [side for sides in zip(*PAIRS, strict=True) for side in sides]
    text = "\n".join([*lines, "DOGS bark, loudly!", "", "tab\there", "xyzzy"]).encode()
    (folder / "in.txt.gz").write_bytes(gzip.compress(text))
    return folder / "in.txt.gz"


def test_text_parquet_and_results(
    tmp_path: Path, encoder: str, capsys: Capsys, monkeypatch: Patch
) -> None:
    monkeypatch.setattr(command, "_ROWS", 3)  # several blocks
    arguments = ["mine", str(write(tmp_path)), "--model", encoder, "--k", "1", "--margin", "0.9"]
    for name in ("m.tsv", "m.tsv.gz", "m.parquet"):
        assert main([*arguments, "--output", str(tmp_path / name), "--json", "-"]) == 0
    found = json.loads(capsys.readouterr().out.split("\n}\n")[0] + "}")
    assert errors_of("mine", found) == []
    assert (found["sentences"], found["distinct"]) == (8, 7)
    assert found["rejected"] == {"empty line": 1, "control character U+0009": 1}
    text = (tmp_path / "m.tsv").read_bytes()
    assert gzip.decompress((tmp_path / "m.tsv.gz").read_bytes()) == text
    rows = [line.split("\t") for line in text.decode().splitlines()]
    assert {*PAIRS} <= {(first, second) for _, first, second in rows}
    assert len(rows) == found["pairs"]
    parquet = pq.read_table(tmp_path / "m.parquet")
    assert parquet.column_names == ["reference", "translation", "margin", "cosine"]
    assert [f"{of:.4f}" for of in parquet["margin"].to_pylist()] == [row[0] for row in rows]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        *("in.txt.gz", "m.parquet", "m.tsv", "m.tsv.gz")
    ]


def test_json_and_pairs_need_two_files(tmp_path: Path, encoder: str, capsys: Capsys) -> None:
    same = str(tmp_path / "m")
    arguments = [str(write(tmp_path)), "--model", encoder, "--output", same, "--json", same]
    said = f"paraloom: --json {same}: is also the path of --output; name another file"
    assert refusal(capsys, "mine", *arguments) == said
    assert not Path(same).exists()
    run = [str(tmp_path), "--out", same, "--json", same]
    assert "is also the path of --out; name another file" in refusal(capsys, "publish", *run)


@pytest.mark.parametrize(
    ("text", "left_out"),
    [
        ("One.\n", ""),
        ("One.\none\nONE!\n", ""),
        ("\n \n\t\n", "; left out: 2 empty line, 1 control character U+0009"),
        ("Ein.\nÄrger.\nTür.\n", "; left out: 2 invalid UTF-8"),
    ],
)
def test_too_few_sentences(
    tmp_path: Path, encoder: str, capsys: Capsys, text: str, left_out: str
) -> None:
    (tmp_path / "in.txt").write_text(text, "latin-1")
    arguments = ["mine", str(tmp_path / "in.txt"), "--model", encoder]
    line = refusal(capsys, *arguments, "--output", str(tmp_path / "out"))
    assert "in.txt" in line and "distinct sentence" in line
    assert line.strip().endswith(f"give two or more{left_out}")
    assert [path.name for path in tmp_path.iterdir()] == ["in.txt"]


def test_one_pair_is_no_plural(tmp_path: Path, encoder: str, capsys: Capsys) -> None:
    (tmp_path / "in.txt").write_text("A dog barks.\nA dog barks again.\n")
    arguments = ["mine", str(tmp_path / "in.txt"), "--model", encoder, "--margin", "0"]
    assert main([*arguments, "--output", str(tmp_path / "m.tsv")]) == 0
    assert "m.tsv: 1 pair of 2 distinct sentences" in capsys.readouterr().out


def test_a_failure_leaves_the_earlier_pairs(
    tmp_path: Path, encoder: str, capsys: Capsys, monkeypatch: Patch
) -> None:
    (tmp_path / "m.tsv").write_text("before")
    arguments = ["mine", str(write(tmp_path)), "--model", encoder, "--margin", "0.9", "--output"]
    monkeypatch.setattr(gzip, "GzipFile", None)
    assert main([*arguments, str(tmp_path / "m.tsv.gz")]) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.txt.gz", "m.tsv"]
    capsys.readouterr()
    assert "Is a directory" in refusal(capsys, *arguments, str(tmp_path))


def test_the_output_is_no_file_to_read(tmp_path: Path, encoder: str, capsys: Capsys) -> None:
    text = write(tmp_path)
    before = text.read_bytes()
    for given in (str(text), str(tmp_path / "*.gz")):
        line = refusal(capsys, "mine", given, "--model", encoder, "--output", f"{text}")
        assert "is also an input file" in line and text.read_bytes() == before


def config(folder: Path, path: Path, **changes: Any) -> Path:
    """The configuration of a run on pairs, up to the corpus."""
    given = {"input": {"format": "pairs", "paths": [str(path)]}, "select": {"max_tokens": 9}}
    values: dict[str, Any] = {"run": str(folder / "run"), **given}
    for name, keys in changes.items():
        values[name] = {**values.get(name, {}), **keys} if isinstance(keys, dict) else keys
    file = folder / "config.yaml"
    file.write_text(json.dumps(values))
    return file


def as_text(folder: Path, pairs: list[tuple[str, str]], line: str = "1.2\t{}\t{}\n") -> Path:
    path = folder / "pairs.tsv.gz"
    path.write_bytes(gzip.compress("".join(line.format(*pair) for pair in pairs).encode()))
    return path


def as_parquet(folder: Path, pairs: list[tuple[str, str]]) -> Path:
    first, second = zip(*pairs, strict=True)
    margins = pa.array([1.2] * len(pairs), pa.float32())
    made = pa.table({"reference": first, "translation": second, "margin": margins})
    pq.write_table(made, folder / "pairs.parquet")
    return folder / "pairs.parquet"


@pytest.mark.parametrize("line", ["1.2\t{}\t{}\n", "{}\t{}\n"])
def test_pairs_in_text(tmp_path: Path, line: str) -> None:
    wrong = [("An empty one.", " "), ("A bell.", "\x07"), ("A long one.", "a" * 2001)]
    config(tmp_path, as_text(tmp_path, [*PAIRS, *wrong], line))
    assert again("ingest", tmp_path) == 0
    found = table(tmp_path, "ingest").drop_columns("id").to_pylist()
    assert found == [{"source": "", "reference": a, "translation": b} for a, b in PAIRS]
    assert manifest(tmp_path)["stages"]["ingest"]["rejected"] == {
        "empty translation": 1,
        "control character U+0007 in translation": 1,
        "translation longer than 2,000 characters": 1,
    }


def test_a_run_on_pairs(tmp_path: Path) -> None:
    """Nothing is translated, and the card does not say so."""
    file = config(tmp_path, as_parquet(tmp_path, [*PAIRS, ("The same.", "the same")]))
    assert again("select", tmp_path) == 0
    assert [*manifest(tmp_path)["stages"]] == ["ingest", "score", "bucket", "select"]
    corpus = table(tmp_path, "select")
    assert {*corpus["reference"].to_pylist()} == {first for first, _ in PAIRS}
    assert {*corpus["translation"].to_pylist()} == {second for _, second in PAIRS}
    assert not {"candidate", "translation_score"} & {*corpus.column_names}
    card = (tmp_path / "run" / "README.md").read_text()
    assert "monolingual" in card and "bitext" not in card
    assert "ranslat" not in card.replace("`translation", "")
    values = {**json.loads(file.read_text()), "run": str(tmp_path / "other")}
    assert estimate(Config.of(values)).jobs["score"].rows == 4


def test_a_preview_ranks_pairs(tmp_path: Path) -> None:
    config(tmp_path, as_parquet(tmp_path, PAIRS))
    assert again("preview", tmp_path) == 0
    sample = pq.read_table(tmp_path / "run" / "preview" / "corpus").select(["reference"])
    assert len(sample) == len(PAIRS)


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"score": {"scorers": ["translation_score"]}}, "score.scorers: translation_score needs"),
    ({"score": {"scorers": ["trigram_overlap", "dual_score"]}}, "score.scorers: dual_score needs"),
    ({"score": {"scorers": ["reference_score"]}}, "score.scorers: reference_score needs"),
    ({"score": {"scorers": ["source_score"]}}, "score.scorers: source_score needs"),
    ({"select": {"by": "translation_score"}}, "select.by: translation_score is not among"),
    ({"input": {"unique": "source"}}, "input.unique: input.format pairs has no source"),
    ({"input": {"columns": {"source": "a"}}}, "pairs has reference, translation, id"),
    ({"input": {"columns": {"reference": "a"}}}, "is not Parquet"),
    ({"generators": [{"kind": "nmt"}]}, "generators: must be null"),
    ({"input": {"target_language": "cs"}}, "input.target_language: is cs"),
]


@pytest.mark.parametrize("changes, wanted", REFUSED)
def test_what_needs_a_source_is_refused(
    tmp_path: Path, capsys: Capsys, changes: dict[str, Any], wanted: str
) -> None:
    path = as_text(tmp_path, PAIRS * 20)
    file = config(tmp_path, path, **changes)
    assert wanted in refusal(capsys, "ingest", "--config", str(file))


def test_columns_and_other_files(tmp_path: Path, capsys: Capsys) -> None:
    """A file that is not of pairs is named; Parquet may have other names and ids."""
    (tmp_path / "in.txt").write_text("One sentence.\n")
    file = config(tmp_path, tmp_path / "in.txt")
    assert "the first line has 1 column; pairs" in refusal(capsys, "ingest", "--config", str(file))
    given = {"a": ["One."], "b": ["Another."], "key": ["7"], "margin": [1.3]}
    pq.write_table(pa.table(given), tmp_path / "in.parquet")
    columns = {"reference": "a", "translation": "b", "id": "key"}
    keys = {"columns": columns, "keep": ["margin"], "where": ["margin >= 1.2"]}
    config(tmp_path, tmp_path / "in.parquet", input=keys)
    assert again("ingest", tmp_path) == 0
    row = {"id": "7", "source": "", "reference": "One.", "translation": "Another.", "margin": 1.3}
    assert table(tmp_path, "ingest").to_pylist() == [row]
