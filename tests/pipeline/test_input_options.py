"""`input.where`, `input.unique` and `input.keep` in runs, and other forms of input."""

import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from paraloom.models.errors import UserError
from paraloom.pipeline.cli import main
from paraloom.pipeline.commands.run.explain import find
from paraloom.pipeline.commands.run.status import status
from paraloom.pipeline.config import Config, read_config
from paraloom.pipeline.judging.judgments import Action, JudgeFile
from paraloom.pipeline.run.run import Run
from paraloom.pipeline.stages.ingest import fingerprint
from tests.run_helpers import (
    Capsys,
    WriteConfig,
    again,
    manifest,
    one_line,
    refusal,
    small_config,
    table,
)

CONDITIONS = ["source_tokens <= 4", "identical = no"]


def test_pairs_and_conditions(tmp_path: Path, write_config: WriteConfig, capsys: Capsys) -> None:
    """What they reject does not count for `max_rejected`."""
    rows = ["Pes štěká.\tA dog barks.", "Pes jde a jde dál.\tA dog walks on.", "x\tx"]
    (tmp_path / "in.tsv").write_text("\n".join([*rows, rows[0], "bad"]))
    given = {"format": "tsv", "paths": [str(tmp_path / "in.tsv")], "unique": "pair"}
    write_config(tmp_path, input={**given, "where": CONDITIONS})
    assert again("ingest", tmp_path, "--set", "max_rejected=0.19") == 2
    assert "ingest: 1 of 5 rows are rejected (20.0%)" in capsys.readouterr().err
    assert again("ingest", tmp_path, "--set", "max_rejected=0.2") == 0
    assert table(tmp_path, "ingest")["source"].to_pylist() == ["Pes štěká."]
    record = manifest(tmp_path)["stages"]["ingest"]
    long, same = (f"not {condition}" for condition in CONDITIONS)
    reasons = [long, same, "repeats an earlier pair", "1 column instead of 2"]
    assert record["rejected"] == dict.fromkeys(reasons, 1)
    saved = {name: of["rows"] for name, of in record["saved"].items()}
    assert saved == {"input.where": 2, "input.unique": 1}


def test_cleaning_in_place_of_rejection(tmp_path: Path, capsys: Capsys) -> None:
    """Checks, `where` and `unique` see the cleaned text; kept columns and ids stay."""
    pairs = [
        ("Pes &amp; kočka", "A dog &amp; a cat"),
        ("Pes & kočka", "A dog & a cat"),  # then a repeated pair
        ("Pes.\nKočka.", "A dog.\tA\u2028cat."),
        ("e\u0301", "&amp;quot;"),
        ("&#32;\n", "empty"),
        ("&#129;", "a control character"),
        ("a\x00b", "still one"),
        ("dlouhý &lt;" + " " * 30, "a b c d e f &lt;"),
    ]
    rows = [
        {"id": f"&lt;{n}", "source": cs, "reference": en, "note": "&lt;"}
        for n, (cs, en) in enumerate(pairs)
    ]
    (tmp_path / "in.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    given = {"format": "jsonl", "paths": [str(tmp_path / "in.jsonl")], "columns": {"id": "id"}}
    more = {"keep": ["note"], "unique": "pair", "where": ["reference_tokens <= 6"]}

    def write_config(**keys: Any) -> None:
        of = {"input": {**given, **more, **keys}, "max_rejected": 1.0}
        values = small_config(tmp_path / "run", "", **of)
        (tmp_path / "config.yaml").write_text(yaml.safe_dump(values))

    write_config()
    assert again("ingest", tmp_path) == 0
    stages = manifest(tmp_path)["stages"]
    assert "cleaned" not in stages["ingest"]
    assert stages["ingest"]["rejected"] == {
        "control character U+000A in source": 2,
        "control character U+0000 in source": 1,
        "not reference_tokens <= 6": 2,
    }
    write_config(clean=["nfc", "whitespace", "entities"])
    assert again("ingest", tmp_path) == 0
    assert table(tmp_path, "ingest").to_pylist() == [
        {"id": f"&lt;{n}", "source": cs, "reference": en, "note": "&lt;"}
        for n, cs, en in (
            (0, "Pes & kočka", "A dog & a cat"),
            (2, "Pes. Kočka.", "A dog. A cat."),
            (3, "\xe9", "&quot;"),
        )
    ]
    record = manifest(tmp_path)["stages"]["ingest"]
    assert record["cleaned"] == {"entities": 2, "whitespace": 1, "nfc": 1}  # of accepted pairs
    assert record["rejected"] == {
        "control character U+0000 in source": 1,
        "control character U+0081 in source": 1,
        "empty source": 1,
        "not reference_tokens <= 6": 1,
        "repeats an earlier pair": 1,
    }
    assert "HTML entities in 2, line feeds, tabs and separators in 1" in capsys.readouterr().out
    (ingest,) = status(str(tmp_path / "run"))
    assert ingest.cleaned == record["cleaned"]


def test_an_identifier_of_languages_of_your_own(tmp_path: Path, capsys: Capsys) -> None:
    (tmp_path / "in.tsv").write_text("Pes.\tA dog.\nPies.\tA dog.\n12\t12")
    given = {"format": "tsv", "paths": [str(tmp_path / "in.tsv")]}
    path, own = tmp_path / "config.yaml", tmp_path / "own.py"

    def config(**keys: Any) -> Config:
        path.write_text(yaml.safe_dump({"run": str(tmp_path / "run"), "input": {**given, **keys}}))
        return read_config(path)

    assert "language_identifier" not in config().model_dump()["input"]
    keys = [fingerprint(Run(config()))]
    identifier: dict[str, Any] = {"language_identifier": f"{own}:identify"}
    for text in ("", "# another text"):
        own.write_text(text)
        keys.append(fingerprint(Run(config(**identifier))))
    assert keys[1][:-1] == keys[2][:-1] == keys[0] and keys[1] != keys[2]

    own.write_text(
        "LABELS = {'Pes.': 'ces_Latn', 'A dog.': 'EN'}\n"
        "def identify(texts):\n"
        "    return [{LABELS.get(text, 'szl'): 0.1} for text in texts]\n"
    )
    identifier["where"] = ["source_language = CES", "reference_language = en"]
    config(**identifier)
    assert again("ingest", tmp_path) == 0
    assert table(tmp_path, "ingest")["source"].to_pylist() == ["Pes."]
    assert manifest(tmp_path)["stages"]["ingest"]["rejected"] == {"not source_language = CES": 2}

    own.write_text("def identify(texts):\n    return [{}, 1 / 0]\n")
    config(**identifier)
    assert again("ingest", tmp_path) == 2
    line = capsys.readouterr().err.splitlines()[-1]
    assert f"input.language_identifier: {own}:identify: {own}, line 2 (ZeroDivision" in line
    for wrong in ("own.py", "own.py:", "identify"):
        with pytest.raises(UserError, match=f"language_identifier: '{wrong}' must be FILE.py:NAME"):
            config(language_identifier=wrong)


def test_conditions_no_row_meets(tmp_path: Path, write_config: WriteConfig, capsys: Capsys) -> None:
    text = "Pes štěká.\tA dog barks.\nPsi štěkají.\tDogs bark.\n"
    (tmp_path / "in.tsv").write_text(text, "utf-8")
    given = {"format": "tsv", "paths": [str(tmp_path / "in.tsv")]}
    write_config(tmp_path, input={**given, "where": ["source_tokens >= 1", "identical = yes"]})
    assert again("ingest", tmp_path) == 2
    said = "none of 2 rows can be used; its _rejected/ folder has the reasons; 2 do not meet "
    said += "the condition `identical = yes` of input.where; change it"
    assert capsys.readouterr().err.strip().endswith(said)


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


def test_kept_columns_go_through_all_stages(
    tmp_path: Path, write_config: WriteConfig, parquet: dict[str, Any], capsys: Capsys
) -> None:
    where = {"keep": ["domain", "meta.year"], "where": ["domain != news"]}
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
    numbers: dict[str, int] = {}
    for row in found:
        numbers[row["id"]] = number = row.pop("meta.year")
        assert row.pop("domain") == DOMAINS[number % 3]
        assert row == plain[row["id"]]
    for stage in ("back_translate", "score", "bucket", "corpus"):
        rows = table(tmp_path, stage).to_pylist()
        assert all(row["meta.year"] == numbers[row["id"]] for row in rows)
    assert len(rows) > 0 and {row["meta.year"] for row in rows} <= {*range(20, 90)}
    card = (tmp_path / "run" / "README.md").read_text()
    assert "| `meta.year` | as in the bitext | column of the bitext |" in card
    id = rows[0]["id"]
    assert main(["explain", str(tmp_path / "run"), id]) == 0
    out = capsys.readouterr().out
    assert re.search(rf"meta\.year\W+{rows[0]['meta.year']}\b", out) and "domain" in out
    assert [step.stage for step in find(str(tmp_path / "run"), id)][-1] == "select"
    texts = {name: rows[0][name] for name in ("id", "reference", "translation")}
    JudgeFile(str(tmp_path / "run"), "Anna").append([Action(score=90, **texts)])
    for wrong, said in (("domain <= 3", "'domain <= 3': domain has"), ("meta.year = x", "int64")):
        error = refusal(capsys, "agreement", str(tmp_path / "run"), "--where", wrong)
        assert error.startswith("paraloom: --where: ") and said in error
    release = ["--out", str(tmp_path / "release"), "--license", "cc0-1.0", "--held-out", "0"]
    assert main(["publish", str(tmp_path / "run"), *release]) == 0
    published = pq.read_table(next((tmp_path / "release" / "data").glob("*.parquet")))
    assert published["meta.year"].to_pylist() == [row["meta.year"] for row in rows]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"keep": ["source"]}, r"input\.keep: source is reserved for another column of the pairs"),
        ({"keep": ["trigram_overlap"]}, r"input\.keep: trigram_overlap is reserved for"),
        ({"keep": ["x_decile"]}, r"input\.keep: x_decile is reserved for"),
        ({"keep": ["domain"], "where": ["domains = a"]}, r"did you mean domain\?"),
        ({"columns": {"reference_": "a"}}, "parquet has source, reference, id"),
        ({"keep": ["domain"], "where": ["domain <= 3"]}, r"'domain <= 3': domain has values of"),
        ({"keep": ["meta.year"], "where": ["meta.year = old"]}, r"meta\.year has values of type"),
        ({"columns": {"source": "cs"}}, r"have no cs, only translation\.cs, translation\.en"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_one_line(
    tmp_path: Path, write_config: WriteConfig, parquet: dict[str, Any], capsys: Capsys,
    options: dict[str, Any], message: str,
) -> None:  # fmt: skip
    write_config(tmp_path, input={**parquet, **options})
    assert again("ingest", tmp_path) == 2
    assert re.search(message, one_line(capsys))


def test_conditions_of_named_selections_are_checked_first(
    tmp_path: Path, write_config: WriteConfig, parquet: dict[str, Any], capsys: Capsys
) -> None:
    named = {"named": {"x": {"where": ["domain <= 3"]}}}
    write_config(tmp_path, input={**parquet, "keep": ["domain"]}, select=named)
    assert again("ingest", tmp_path) == 2
    assert "'domain <= 3': domain has values of type string" in one_line(capsys)
