"""Runs with another target language: stages, tokens, data card, encoder, notices."""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from mosestokenizer import MosesTokenizer

from paraloom.beam_jobs.bitext import Bitext, RowBlock, find_bitext, read_bitext
from paraloom.models.errors import UserError, missing_extra
from paraloom.models.nmt.families.base import Languages
from paraloom.pipeline.cli import main
from paraloom.pipeline.config import languages, read_config
from paraloom.pipeline.config.input import InputOptions
from paraloom.pipeline.config.languages import check_model, check_texts
from paraloom.pipeline.run.folder import read_run
from paraloom.pipeline.run.make import run_stages
from paraloom.pipeline.run.notices import of_configuration
from paraloom.pipeline.run.records import TrainingRecord
from paraloom.pipeline.run.run import Run
from paraloom.pipeline.run.stage import stages
from paraloom.pipeline.stages import nmt
from tests.run_helpers import Capsys, Patch, Runs, WriteConfig, again, ran, refusal
from tests.sample import sample_rows


def test_new_languages_score_again(a_run: Path, write_config: WriteConfig, capsys: Capsys) -> None:
    """The small model speaks English, whatever the language is called."""
    before = {name: stage.key for name, stage in read_run(str(a_run / "run")).stages.items()}
    write_config(a_run, input={"target_language": "deu", "check_languages": False})
    assert again("select", a_run) == 0
    _, err = capsys.readouterr()
    assert ran(err)[0] == "score" and "paraloom:" not in err
    moses = MosesTokenizer("de")
    for file in (a_run / "run/score").glob("part-*.parquet"):
        table = pq.read_table(file)
        for side in ("reference", "translation"):
            counts = [len(moses.tokenize(text)) for text in table[side].to_pylist()]
            assert table[f"{side}_tokens"].to_pylist() == counts
    card = (a_run / "run/README.md").read_text(encoding="utf-8")
    assert "English" not in card and "pairs of German sentences" in card
    head = yaml.safe_load(card.split("---\n")[1])
    assert head["pretty_name"] == "run: German paraphrases from bitext"
    assert head["language"] == ["de", "cs"]
    html = (a_run / "run/report/index.html").read_text(encoding="utf-8")
    assert '<html lang="en">' in html and ' lang="de"' in html

    write_config(a_run, input={"target_language": "en-GB"})
    assert again("select", a_run) == 0
    after = {name: stage.key for name, stage in read_run(str(a_run / "run")).stages.items()}
    assert after == before


def test_notices(tmp_path: Path, write_config: WriteConfig) -> None:
    def of(code: str) -> list[str]:
        config = read_config(write_config(tmp_path, input={"target_language": code}))
        return list(of_configuration(config, ["score", "embeddings", "evaluate"]))

    assert of("en") == of("fr") == []
    said = "input.source_language: equals input.target_language (Czech); one of them may be wrong"
    assert of("ces") == [said]


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("cz", "cz is not a language code; Czech is cs"),
        ("hk", "hk is not a language code; Chinese is zh"),
        ("German", "German is not a language code; German is de"),
        ("en_EN", "en_EN is not a language code; English is en"),
        ("frensh", "frensh is not a language code; French is fr"),
        ("klingon", "klingon is not a language code; codes are as in ISO 639: cs, en"),
    ],
)
def test_what_is_no_code(code: str, said: str, tmp_path: Path, write_config: WriteConfig) -> None:
    for key in ("source_language", "target_language"):
        path = write_config(tmp_path, input={key: code})
        with pytest.raises(UserError, match=f"input.{key}: {said}$"):
            read_config(path)
        assert read_config(path, ["input.check_languages=false"]).input


ROWS = (row.decode(errors="replace").split("\t") for row in islice(sample_rows(), 600))
LONG = [
    (czech, english)
    for czech, english in (row[2:] for row in ROWS if len(row) == 4)
    if len(czech.split()) > 5 and len(english.split()) > 5
][:60]


def test_first_rows_in_other_languages(tmp_path: Path, capsys: Capsys) -> None:
    def said(rows: Sequence[tuple[str, ...]], **more: Any) -> str:
        """What is said of a file, "STOP: " before it if that ends the command."""
        (tmp_path / "in.tsv").write_text("".join("\t".join(row) + "\n" for row in rows), "utf-8")
        options = InputOptions(**{"format": "tsv", "paths": [str(tmp_path / "in.tsv")], **more})
        try:
            check_texts(options, find_bitext(options.format, options.paths, options.layout))
        except UserError as error:
            return f"STOP: {error}"
        return capsys.readouterr().err

    swapped = [(b, a) for a, b in LONG]
    assert said(LONG) == said(swapped, source_language="en", target_language="cs") == ""
    assert said(LONG, source_language="sk") == ""
    assert said(LONG, source_language="hsb").startswith("paraloom: input.source_language: is hsb")
    assert said(swapped).startswith("STOP: input: the first sources are English, and the first ref")
    assert said(swapped[:3]).startswith("paraloom: input.source_language: is cs (Czech), but 100%")
    chinese = [("我們明天要去學校參加會議。", b) for _, b in LONG]
    assert said(chinese, source_language="zh-TW") == ""
    wrong = said(chinese, source_language="en", target_language="zh-TW")
    assert wrong.startswith("STOP: input: the first sources are Chinese, and the first references")
    german = said(LONG, target_language="de")
    assert german.startswith("STOP: input.target_language: is de (German), but")
    assert "of the first 60 references are English (en); if the configuration is right" in german
    assert said(LONG, target_language="de", check_languages=False) == ""
    few = said(LONG[:12], target_language="de")
    assert few.startswith("paraloom: input.target_language: is de")
    french = said(LONG, source_language="fr")
    assert french.startswith("STOP: input.source_language: is fr (French)")
    # A third of another language, and a beginning that nobody translated, are no proof.
    assert said(LONG[:40] + swapped[40:]) == ""
    assert said([(b, b) for _, b in LONG]).startswith("paraloom: input.source_language: is cs")
    # Of Klingon the identifier knows nothing; German rows go out before they are looked at.
    assert said(LONG, target_language="tlh").startswith("paraloom: input.target_language: is tlh")
    assert said(swapped, where=["source_language = cs", "reference_language = en"]) == ""
    own = tmp_path / "own.py"
    own.write_text("def identify(texts):\n    return [{'deu_Latn': 0.9} for text in texts]\n")
    identified = said(LONG, language_identifier=f"{own}:identify", target_language="deu")
    assert identified.startswith("paraloom: input.source_language: is cs (Czech), but 100% of")
    assert identified.endswith("sources are German (de)\n")
    text = [(b,) for _, b in LONG]
    assert said(text, format="text") == ""
    assert said(text, format="text", target_language="fr").startswith("STOP: input.target_lang")
    assert said([("12:30", "1"), ("", "2")]) == "", "ingest says what is wrong"


def test_texts_are_looked_at_when_they_are_about_to_be_read(
    a_run: Path, write_config: WriteConfig, runs: Runs, capsys: Capsys, monkeypatch: Patch
) -> None:
    looked_at: list[str] = []

    def read(bitext: Bitext, **how: Any) -> Iterator[RowBlock]:
        looked_at.extend(bitext.paths)
        return read_bitext(bitext, **how)

    monkeypatch.setattr(languages, "read_bitext", read)
    for command in ("ingest", "score", "select"):
        assert runs(command, a_run) == looked_at == [], "all is up to date"
    assert runs("select", a_run, select={"size": 5}) == ["select"] and not looked_at
    write_config(a_run, input={"shard_rows": 7, "target_language": "fr"})
    assert again("ingest", a_run) == 2
    assert "input.target_language: is fr (French), but" in capsys.readouterr().err
    assert runs("select", a_run, select={"size": 5}) == [], "the mistake has changed nothing"
    looked_at.clear()
    assert runs("ingest", a_run, input={"shard_rows": 7}) == ["ingest"] and looked_at


@pytest.mark.parametrize(
    ("own", "wanted", "said"),
    [
        (("cs", "en"), ("cs", "en"), ""),
        (("ces_Latn", "eng"), ("cs", "en-GB"), ""),
        (("hr", "no"), ("sr", "da"), ""),
        (("src", "tgt"), ("cs", "en"), ""),
        (("", ""), ("cs", "en"), ""),
        (("cs", "en"), ("en", "cs"), "STOP: nmt.model: m translates cs into en, not en into cs"),
        (("cs", "en"), ("cs", "de"), "STOP: nmt.model: m translates cs into en, not cs into de"),
        (("de", "en"), ("cs", "en"), "paraloom: nmt.model: m translates de into en, not cs into"),
    ],
)
def test_a_model_between_other_languages(
    own: tuple[str, str], wanted: tuple[str, str], said: str, capsys: Capsys
) -> None:
    model: Any = SimpleNamespace(languages=own, path="m")
    try:
        check_model(model, "nmt.model", Languages(*wanted))
        found = capsys.readouterr().err
    except UserError as error:
        found = f"STOP: {error}"
    assert found.startswith(said) and bool(found) == bool(said)


def test_it_ends_before_anything_is_read(
    nmt_model: Path, tmp_path: Path, write_config: WriteConfig, capsys: Capsys
) -> None:
    """Also in the commands before a run; the model's checkpoint names its languages."""
    rows = "".join(f"{english}\t{czech}\n" for czech, english in LONG)
    (tmp_path / "in.tsv").write_text(rows, "utf-8")
    given = {"format": "tsv", "paths": [str(tmp_path / "in.tsv")]}
    config = str(write_config(tmp_path, input=given))
    for name in ("ingest", "estimate", "preview"):
        assert main([name, "--config", config]) == 2
        line = capsys.readouterr().err.splitlines()[-1]
        assert "sources are English, and the first references are Czech; swap the two sides" in line
    other = ("--set", "input.source_language=en", "--set", "input.target_language=cs")
    line = refusal(capsys, "back-translate", "--config", config, *other)
    assert f"nmt.model: {nmt_model} translates cs into en, not en into cs" in line
    assert not (tmp_path / "run/manifest.json").exists()


def test_a_model_is_trained_for_two_languages(tmp_path: Path, write_config: WriteConfig) -> None:
    config = read_config(write_config(tmp_path, input={"target_language": "cs"}))
    with pytest.raises(UserError, match=r"^input.source_language: equals input.target_language"):
        nmt.check(config)


def test_the_other_direction_is_trained_on_the_pairs_swapped(
    tmp_path: Path, write_config: WriteConfig, monkeypatch: Patch
) -> None:
    asked = {"score": {"scorers": ["source_score"]}, "select": {"by": "source_score"}}
    config = write_config(tmp_path, **asked)
    assert stages()["forward_nmt"].enabled(read_config(config))
    assert not stages()["forward_nmt"].enabled(read_config(config, ["nmt.forward_model=m"]))
    run = run_stages(read_config(config), ["ingest"])
    trained: dict[str, Any] = {}

    def train(pairs: list[Path], folder: Path, _: object, **languages: Any) -> dict[str, Any]:
        trained.update(pairs=pa.concat_tables(map(pq.read_table, pairs)), folder=folder)
        trained.update(languages)
        folder.mkdir()
        return {"bleu": 1.0}

    monkeypatch.setattr("paraloom.models.nmt.train.train_nmt", train)
    record = stages()["forward_nmt"].make(run, "key")
    assert isinstance(record, TrainingRecord) and record.training["bleu"] == 1.0
    ingested = pa.concat_tables(map(pq.read_table, run.local_files("ingest")))
    assert trained["pairs"]["source"].to_pylist() == ingested["reference"].to_pylist()
    assert trained["pairs"]["reference"].to_pylist() == ingested["source"].to_pylist()
    assert trained["pairs"]["id"].to_pylist() == ingested["id"].to_pylist()
    assert (trained["source_language"], trained["target_language"]) == ("en", "cs")
    assert trained["folder"] == tmp_path / "run" / "forward_nmt"


def test_without_fairseq_the_training_names_the_extra(
    tmp_path: Path, write_config: WriteConfig, monkeypatch: Patch
) -> None:
    """Before it prepares anything: the process that trains would have it in its log only."""
    monkeypatch.setattr(nmt, "find_spec", lambda name: None)
    run = Run(read_config(write_config(tmp_path)))
    with pytest.raises(ModuleNotFoundError) as error:
        nmt.make("nmt", run, "key")
    assert "paraloom[fairseq]" in str(missing_extra(str(error.value)))
