import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from paraloom.pipeline.cli import main
from paraloom.pipeline.config import read_config
from tests.run_helpers import ONE, Capsys, Patch, manifest

CZECH = ("Pes běží ve sněhu.", "Muž hraje na starou kytaru.", "Dvě děti jedí zmrzlinu.")
ENGLISH = ("A dog runs in the snow.", "A man plays an old guitar.", "Two children eat ice cream.")
BOTH = tuple(zip(CZECH, ENGLISH, strict=True))


def moses(folder: Path) -> list[str]:
    for name, side in (("de.txt", CZECH), ("a.gz", ENGLISH)):  # names say nothing
        text = "".join(f"{line}\n" for line in side).encode()
        (folder / name).write_bytes(gzip.compress(text) if name == "a.gz" else text)
    return ["a.gz", "de.txt"]


def tsv(folder: Path) -> list[str]:
    (folder / "some.txt").write_text("".join(f"{a}\t{b}\n" for a, b in BOTH))
    return ["some.txt"]


def czeng16(folder: Path) -> list[str]:
    (folder / "c").write_text("".join(f"{i}\t0.5\t{a}\t{b}\n" for i, (a, b) in enumerate(BOTH)))
    return ["c"]


def czeng20(folder: Path) -> list[str]:
    (folder / "c").write_text("\n" + "".join(f"i{a}\t1\t1\t1\t{a}\t{b}\n" for a, b in BOTH))
    return ["c"]


def jsonl(folder: Path) -> list[str]:
    rows = [{"n": "x", "translation": {"en": b, "cs": a}, "note": "OK"} for a, b in BOTH]
    (folder / "rows").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return ["rows"]


def parquet(folder: Path) -> list[str]:
    for name in ("1", "2"):
        number = [[1.5, 2, 3], ENGLISH, CZECH]
        pq.write_table(pa.table(number, ["score", "english", "czech"]), folder / name)
    return ["1", "2"]


def tmx(folder: Path) -> list[str]:
    unit = (
        '<tu><tuv xml:lang="en-GB"><seg>{1}</seg></tuv><tuv xml:lang="cs"><seg>{0}</seg></tuv></tu>'
    )
    units = "".join(unit.format(*pair) for pair in BOTH)
    text = f'<?xml version="1.0"?>\n<tmx version="1.4"><header/><body>{units}</body></tmx>'
    (folder / "memory").write_text(text)
    return ["memory"]


@pytest.mark.parametrize("write", [moses, tsv, czeng16, czeng20, jsonl, parquet, tmx])
def test_what_it_writes_runs(
    write: Callable[[Path], list[str]], tmp_path: Path, monkeypatch: Patch, capsys: Capsys
) -> None:
    monkeypatch.chdir(tmp_path)
    files = write(tmp_path)
    assert main(["init", *files]) == 0
    rows = len(BOTH) * (2 if write is parquet else 1)
    said = f"paraloom.yaml: {write.__name__}, cs to en, {rows:,} rows\n"
    assert capsys.readouterr().out.startswith(said)
    assert main(["ingest", "--config", "paraloom.yaml", "--set", "run=run", *ONE]) == 0
    stage = manifest(tmp_path)["stages"]["ingest"]
    assert (stage["rows_in"], stage["rows_out"]) == (rows, rows)
    pairs = pa.concat_tables(
        map(pq.read_table, sorted((tmp_path / "run/ingest").glob("*.parquet")))
    )
    found = zip(pairs["source"].to_pylist(), pairs["reference"].to_pylist(), strict=True)
    assert {*found} == {*BOTH}


def test_with_a_model_it_estimates(
    nmt_model: Path, tmp_path: Path, monkeypatch: Patch, capsys: Capsys
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["init", *tsv(tmp_path), "--model", str(nmt_model)]) == 0
    assert read_config("paraloom.yaml").nmt.model == str(nmt_model)
    said = capsys.readouterr().out
    assert "Estimates for the whole input" in said and "back_translate" in said
    assert main(["init", "some.txt", "--out", "b", "--model", "m", "--from", "sample"]) == 2
    assert "--model goes without --from" in capsys.readouterr().err


def test_sections_of_another_configuration(
    tmp_path: Path, monkeypatch: Patch, capsys: Capsys
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["init", *tsv(tmp_path), "--out", "mine.yaml", "--from", "sample"]) == 0
    text = Path("mine.yaml").read_text()
    assert "# The lowest tenths have the wrong translations" in text, "comments stay"
    values, ours = yaml.safe_load(text), read_config("sample")
    assert (values["run"], values["input"]["format"]) == ("runs/some", "tsv")
    assert read_config("mine.yaml").select.where == ours.select.where
    assert main(["init", "some.txt", "--out", "mine.yaml"]) == 2
    assert "mine.yaml: it is there already" in capsys.readouterr().err
    assert Path("mine.yaml").read_text() == text


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"a": "One sentence.\n"}, "a: no tabs, no Parquet, no JSON Lines, no TMX: if"),
        ({"a": "x\ty\n", "b": '{"x": 1}\n'}, "the files have several formats: tsv ("),
        ({"a": "1\t2\t3\t4\t5\n"}, "a: 5 columns are in no format of input.format"),
        ({"a": '{"x": "A dog runs.", "y": 2}\n'}, "a: no two columns with text in two languages"),
        ({"a": '<tmx><body><tu><tuv xml:lang="en"/></tu></body></tmx>'}, "not in two languages"),
        ({"a": ""}, "a: no rows, the file is empty"),
        ({}, "none: cannot be read (No such file"),
        ({"none/train.parquet": "x"}, "none: is a folder; give its files"),
    ],
)
def test_files_that_say_too_little(
    files: dict[str, str], said: str, tmp_path: Path, monkeypatch: Patch, capsys: Capsys
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in files.items():
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(text)
    assert main(["init", *([name for name in files if "/" not in name] or ["none"])]) == 2
    assert said in capsys.readouterr().err
    assert not Path("paraloom.yaml").exists()
