import gzip
import io
import json
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from paraloom.beam_jobs.bitext import find_bitext
from paraloom.beam_jobs.bitext.preview import preview
from paraloom.models import hub
from paraloom.pipeline.cli import main
from paraloom.pipeline.commands.corpus.init import find_input
from paraloom.pipeline.config import read_config
from tests.run_helpers import ONE, Capsys, Patch, manifest, refusal, table

CZECH = ("Pes běží ve sněhu.", "Muž hraje na starou kytaru.", "Dvě děti jedí zmrzlinu.")
ENGLISH = ("A dog runs in the snow.", "A man plays an old guitar.", "Two children eat ice cream.")
BOTH = tuple(zip(CZECH, ENGLISH, strict=True))


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: Patch) -> None:
    monkeypatch.chdir(tmp_path)


UNIT = '<tu><tuv xml:lang="en-GB"><seg>{1}</seg></tuv><tuv xml:lang="cs"><seg>{0}</seg></tuv></tu>'


def lines(texts: Iterable[str]) -> bytes:
    return "".join(f"{text}\n" for text in texts).encode()


def parquet() -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.table([[1.5, 2, 3], ENGLISH, CZECH], ["score", "english", "czech"]), out)
    return out.getvalue()


TMX = f"<header/><body>{''.join(UNIT.format(*pair) for pair in BOTH)}</body>"
ROWS = [{"n": "x", "translation": {"en": b, "cs": a}, "note": "OK"} for a, b in BOTH]
FILES = {  # whose names say nothing
    "moses": {"a.gz": gzip.compress(lines(ENGLISH)), "de.txt": lines(CZECH)},
    "moses pairs": {
        "a.en": lines(ENGLISH[:2]),
        "a.cs": lines(CZECH[:2]),
        "b.en.gz": gzip.compress(lines(ENGLISH[2:])),
        "b.cs": lines(CZECH[2:]),
    },
    "tsv": {"some.txt": lines(f"{a}\t{b}" for a, b in BOTH)},
    "czeng16": {"c": lines(f"{i}\t0.5\t{a}\t{b}" for i, (a, b) in enumerate(BOTH))},
    "czeng20": {"c": lines(["", *(f"i{a}\t1\t1\t1\t{a}\t{b}" for a, b in BOTH)])},
    "jsonl": {"rows": lines(map(json.dumps, ROWS))},
    "csv": {"table": lines(["id,en,cs", *(f'"{i}","{b}",{a}' for i, (a, b) in enumerate(BOTH))])},
    "csv of Excel": {
        "t": lines(["sep=;\r", "cs;en;\r", *(f"{a};{b};\r" for a, b in BOTH)]),
    },
    "csv ends": {"t": lines(["cs,en,", *(f"{a},{b}," for a, b in BOTH)])},
    "csv tabs": {
        "t": lines(["id\ten\tcs\tby", *(f"{i}\t{b}\t{a}\tx" for i, (a, b) in enumerate(BOTH))])
    },
    "csv two tabs": {"t": lines(["en\tcs", *(f"{b}\t{a}" for a, b in BOTH)])},
    "csv three tabs": {
        "t": lines(["cs\ten\tcaption", *(f"{a}\t{b}\t{n}" for n, (a, b) in enumerate(BOTH))])
    },
    "csv names": {"t": lines(["English\tczech", *(f"{b}\t{a}" for a, b in BOTH)])},
    "parquet": {"1": parquet(), "2": parquet()},
    "tmx": {"memory": lines(['<?xml version="1.0"?>', f'<tmx version="1.4">{TMX}</tmx>'])},
}


def write(folder: Path, form: str) -> list[str]:
    for name, content in FILES[form].items():
        (folder / name).write_bytes(content)
    return [*FILES[form]]


def test_the_languages_of_most_units(tmp_path: Path, capsys: Capsys) -> None:
    stray = (
        '<tu><tuv xml:lang="zh"><seg>狗</seg></tuv><tuv xml:lang="fr"><seg>Chien</seg></tuv></tu>'
    )
    (tmp_path / "a").write_text(f'<?xml version="1.0"?><tmx>{stray * 2}{TMX}</tmx>', "utf-8")
    assert main(["init", "a"]) == 0
    out, said = capsys.readouterr()
    assert out.startswith("paraloom.yaml: tmx, cs to en, 5 rows\n")
    assert said == ""
    apart = '<tu><tuv xml:lang="zh"><seg>狗</seg></tuv><tuv xml:lang="en"><seg>Dog</seg></tuv></tu>'
    (tmp_path / "b").write_text(f'<?xml version="1.0"?><tmx>{stray * 2}{apart}</tmx>', "utf-8")
    assert main(["init", "b", "--out", "a.yaml"]) == 0
    assert capsys.readouterr().out.startswith("a.yaml: tmx, fr to zh, 3 rows\n")
    (tmp_path / "b").write_text(f'<?xml version="1.0"?><tmx>{TMX}{stray * 4}</tmx>', "utf-8")
    assert main(["init", "b", "--out", "b.yaml"]) == 0
    out, said = capsys.readouterr()
    assert out.startswith("b.yaml: tmx, fr to zh, 7 rows\n")
    (tmp_path / "c").write_text("A dog runs.\t\n" * 8 + "Pes běží.\tA dog runs.\n", "utf-8")
    assert main(["init", "c", "--out", "c.yaml"]) == 0
    assert (
        "init: 89% of the first rows cannot be used (empty reference)\n" in capsys.readouterr().err
    )


@pytest.mark.parametrize("form", FILES)
def test_what_it_writes_runs(form: str, tmp_path: Path, capsys: Capsys) -> None:
    assert main(["init", *write(tmp_path, form)]) == 0
    rows = len(BOTH) * (2 if form == "parquet" else 1)
    said = f"paraloom.yaml: {form.split()[0]}, cs to en, {rows:,} rows\n"
    assert capsys.readouterr().out.startswith(said)
    assert main(["ingest", "--config", "paraloom.yaml", "--set", "run=run", *ONE]) == 0
    stage = manifest(tmp_path)["stages"]["ingest"]
    assert (stage["rows_in"], stage["rows_out"]) == (rows, rows)
    pairs = table(tmp_path, "ingest")
    found = zip(pairs["source"].to_pylist(), pairs["reference"].to_pylist(), strict=True)
    assert {*found} == {*BOTH}


def mined() -> bytes:
    out, sides = io.BytesIO(), {"reference": ENGLISH, "translation": [f"{of}!" for of in ENGLISH]}
    pq.write_table(pa.table({**sides, "margin": [1.5, 1.4, 1.3]}), out)
    return out.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        mined(),
        gzip.compress(lines(f"1.5\t{of}\t{of}!" for of in ENGLISH)),
        lines(f"{of}\t{of}!" for of in ENGLISH),
    ],
    ids=["parquet", "margin", "two columns"],
)
def test_pairs_of_one_language(content: bytes, capsys: Capsys) -> None:
    Path("mined").write_bytes(content)
    assert main(["init", "mined", "--model", "x"]) == 2
    assert "--model has no effect without a text to translate" in capsys.readouterr().err
    assert main(["init", "mined"]) == 0
    assert capsys.readouterr().out.startswith("paraloom.yaml: pairs, en, 3 rows\n")
    config = read_config("paraloom.yaml")
    assert config.is_mined and config.input and config.input.target_language == "en"
    given = find_bitext("pairs", config.input.paths, config.input.layout)
    assert preview(given, rows=9, max_characters=99).pairs["reference"].to_pylist() == [*ENGLISH]


def test_the_columns_of_a_run_are_bitext(tmp_path: Path) -> None:
    path = tmp_path / "part.parquet"
    sides = {"source": CZECH, "reference": ENGLISH, "translation": ENGLISH}
    pq.write_table(pa.table(sides), path)
    assert find_input([str(path)])[0]["format"] == "parquet"


def test_with_a_model_it_estimates(nmt_model: Path, tmp_path: Path, capsys: Capsys) -> None:
    model = tmp_path / "🐕"
    model.symlink_to(nmt_model)
    assert main(["init", *write(tmp_path, "tsv"), "--model", str(model)]) == 0
    assert read_config("paraloom.yaml").nmt.model == str(model)
    said, while_it_works = capsys.readouterr()
    assert "Estimates for the whole input" in said and "back_translate" in said
    assert "estimate: running the stages on 3 rows" in while_it_works
    assert main(["init", "some.txt", "--out", "b", "--model", "m", "--from", "sample"]) == 2
    assert "give --model or --from, but not both" in capsys.readouterr().err


def test_words_that_are_also_language_codes(tmp_path: Path) -> None:
    rows = ["no\tit\tde", *(f"{n}\t{a}\t{b}" for n, (a, b) in enumerate(BOTH))]
    (tmp_path / "a").write_bytes(lines(rows))
    options, seen = find_input([str(tmp_path / "a")])
    assert (options["format"], seen.rows) == ("tsv", 4)


@pytest.mark.parametrize("english", [True, False])
def test_an_installed_sentence_model(english: bool, tmp_path: Path, monkeypatch: Patch) -> None:
    german = ("Ein Hund läuft im Schnee.", "Ein Mann spielt Gitarre.", "Kinder essen Eis.")
    pairs = zip(CZECH, ENGLISH if english else german, strict=True)
    (tmp_path / "x.tsv").write_bytes(lines(map("\t".join, pairs)))
    name = "all-MiniLM-L6-v2" if english else "paraphrase-multilingual-MiniLM-L12-v2"
    there: set[str] = set()
    monkeypatch.setattr(hub, "cached", lambda model: tmp_path if model in there else None)
    assert main(["init", "x.tsv", "--out", "without.yaml"]) == 0
    there.add(f"sentence-transformers/{name}")
    assert main(["init", "x.tsv", "--out", "with.yaml"]) == 0
    without, own = (read_config(of) for of in ("without.yaml", "with.yaml"))
    assert f"  # sentence_model: sentence-transformers/{name}" in Path("without.yaml").read_text()
    assert own.score.sentence_model == f"sentence-transformers/{name}"
    assert own.score.scorers == [*without.score.scorers, "sentence_similarity"]
    assert own.select.where == ["sentence_similarity >= 0.85", *without.select.where]


def test_sections_of_another_config(tmp_path: Path, capsys: Capsys) -> None:
    assert main(["init", *write(tmp_path, "tsv"), "--out", "mine.yaml", "--from", "sample"]) == 0
    text = Path("mine.yaml").read_text()
    assert "# the lowest tenth has most of the wrong" in text, "comments stay"
    values, ours = yaml.safe_load(text), read_config("sample")
    assert (values["run"], values["input"]["format"]) == ("runs/some", "tsv")
    mine = read_config("mine.yaml")
    assert mine.select.where == ours.select.where
    assert mine.nmt == ours.nmt.replace(model=None), "the sample's model knows the sample"
    assert main(["init", "some.txt", "--out", "mine.yaml"]) == 2
    assert "mine.yaml: already exists" in capsys.readouterr().err
    assert Path("mine.yaml").read_text() == text


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"a": "One sentence.\n"}, "a: not tab-separated, Parquet, JSON Lines, CSV or TMX; if"),
        (
            {"a.cs": "A\n", "a.en": "B\n", "b.cs": "C\n"},
            "a.cs: not tab-separated, Parquet, JSON Lin",
        ),
        ({"a": "x\ty\n", "b": '{"x": 1}\n'}, "the files have several formats: tsv ("),
        ({"a": "1\t2\t3\t4\t5\n"}, "a: no input.format has 5 columns"),
        (
            {"a": 'id\ten\tcs\tby\n1\t"No", he said.\tb\tc\n'},
            "names columns, but the file has quotes; if",
        ),
        (
            {"a": "reference\ttranslation\nA dog.\tThe dog.\n"},
            "set input.format: pairs (text without",
        ),
        ({"a": '{"x": "A dog runs.", "y": 2}\n'}, "a: no two columns (x, y) differ in language"),
        ({"a": '<tmx><body><tu><tuv xml:lang="en"/></tu></body></tmx>'}, "not in two languages"),
        ({"a.csv": "id;cs\n1;A;B\n"}, "in line 1 (line 2: 3 columns instead of 2)"),
        ({"a.csv": 'cs,en\nA,B\n"C,D\n'}, "in line 1 (line 3: no CSV (unexpected end of data))"),
        ({"a": ""}, "a: no rows, the file is empty"),
        ({}, "none: cannot be read (No such file"),
    ],
)
def test_files_that_say_too_little(files: dict[str, str], said: str, capsys: Capsys) -> None:
    for name, text in files.items():
        Path(name).write_text(text)
    assert said in refusal(capsys, "init", *(files or ["none"]))
    assert not Path("paraloom.yaml").exists()


def test_each_proposes_a_run_of_its_own(capsys: Capsys) -> None:
    files: dict[str, str] = {}
    for name in ("a/pairs.tsv", "b/pairs.txt", "c/pairs.tsv", "my pairs: 1.tsv"):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_bytes(FILES["tsv"]["some.txt"])
        files[name] = f"{len(files)}.yaml"
    Path("runs/pairs-2").mkdir(parents=True)
    Path("folder.yaml").mkdir()
    for name, out in files.items():
        assert main(["init", name, "--out", out]) == 0
    found = [yaml.safe_load(Path(out).read_text())["run"] for out in files.values()]
    assert found == ["runs/pairs", "runs/pairs-3", "runs/pairs-4", "runs/my-pairs-1"]
    assert not capsys.readouterr().err


def test_english_first_in_unnamed_columns(nmt_model: Path, tmp_path: Path, capsys: Capsys) -> None:
    """A model says that it was not meant so."""
    (tmp_path / "x.tsv").write_bytes(lines(f"{b}\t{a}" for a, b in BOTH))
    assert main(["init", "x.tsv", "--model", str(nmt_model)]) == 2
    said, refused = capsys.readouterr().err.splitlines()
    assert said.startswith("init: x.tsv: the first side is English and becomes the source, so")
    assert f"nmt.model: {nmt_model} translates cs into en, not en into cs" in refused
    assert not Path("paraloom.yaml").exists()
    assert main(["init", "x.tsv"]) == 0
    assert (
        "paraphrases are Czech; for English paraphrases, swap the columns"
        in capsys.readouterr().err
    )


def test_a_column_of_ids_is_proposed_if_no_id_repeats(tmp_path: Path) -> None:

    def columns(content: bytes, *more: bytes) -> dict[str, str]:
        for number, each in enumerate((content, *more)):
            (tmp_path / f"{number}").write_bytes(each)
        options, _ = find_input([f"{number}" for number in range(1 + len(more))])
        return dict(options.get("columns", {}))

    def rows(**ids: Iterable[object]) -> bytes:
        values = [dict(zip(ids, of, strict=True)) for of in zip(*ids.values(), strict=True)]
        pairs = ({**of, "cs": a, "en": b} for of, (a, b) in zip(values, BOTH, strict=True))
        return lines(map(json.dumps, pairs))

    sides = {"source": "cs", "reference": "en"}
    assert columns(rows(id="xyz")) == {**sides, "id": "id"}
    assert columns(rows(uid=range(3), other="xyz")) == {**sides, "id": "uid"}
    assert columns(rows(id="xxy", caption_id=[7, 8, 9])) == {**sides, "id": "caption_id"}
    assert columns(rows(id=[1, None, 3])) == columns(rows(id=[0.5, 1, 2])) == sides
    assert columns(rows(id="xyz"), rows(id="abc")) == {**sides, "id": "id"}
    assert columns(rows(id="xyz"), rows(id="xyz")) == sides  # each file counts from the start

    def units(*ids: str) -> bytes:
        body = "".join(
            UNIT.format(*pair).replace("<tu>", f'<tu tuid="{id}">')
            for id, pair in zip(ids, BOTH, strict=True)
        )
        return f'<?xml version="1.0"?>\n<tmx version="1.4"><body>{body}</body></tmx>'.encode()

    assert columns(units(*"abc")) == {"id": "tuid"}
    assert columns(units(*"aba")) == {}
