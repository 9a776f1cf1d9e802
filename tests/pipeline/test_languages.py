"""Runs with another target language: stages, tokens, data card, encoder, notices."""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml
from mosestokenizer import MosesTokenizer

from paraloom.models.errors import UserError, missing_extra
from paraloom.pipeline.config import Config, read_config
from paraloom.pipeline.manifest import Manifest
from paraloom.pipeline.notices import of_configuration
from paraloom.pipeline.plan import key_of, plan
from paraloom.pipeline.report.differences import mark_differences
from paraloom.pipeline.stage import Run
from paraloom.pipeline.stages import nmt
from tests.run_helpers import Capsys, WriteConfig, again, ran


def test_another_language_scores_again(
    a_run: Path, write_config: WriteConfig, capsys: Capsys
) -> None:
    """The small model speaks English, whatever the language is called."""
    before = {name: stage.key for name, stage in Manifest(str(a_run / "run")).stages.items()}
    write_config(a_run, input={"target_language": "deu"})
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
    assert '<html lang="en">' in html and '<p lang="de">' in html

    write_config(a_run, input={"target_language": "en-GB"})
    assert again("select", a_run) == 0
    after = {name: stage.key for name, stage in Manifest(str(a_run / "run")).stages.items()}
    assert after == before


def configuration(folder: Path, write_config: WriteConfig, **changes: Any) -> Config:
    return read_config(write_config(folder, **changes))


def keys(config: Config) -> dict[str, str]:
    run = Run(config=config, manifest=Manifest(config.run))
    return {stage.name: key_of(stage, run) for stage in plan(config) if stage.enabled(config)}


def test_the_stages_that_tokenise_have_other_keys(
    tmp_path: Path, write_config: WriteConfig
) -> None:
    def of(code: str) -> dict[str, str]:
        scorers = ["trigram_overlap", "mean_idf"]
        given = {"score": {"scorers": scorers}, "nmt": {"candidates": 2}}
        return keys(configuration(tmp_path, write_config, input={"target_language": code}, **given))

    english, french = of("en"), of("fr")
    assert of("eng") == english and of("fra_Latn") == french
    assert {name for name, key in french.items() if english[name] == key} == {
        "ingest", "back_translate", "bucket",
    }  # fmt: skip


def test_notices(tmp_path: Path, write_config: WriteConfig) -> None:
    def of(code: str) -> list[str]:
        config = configuration(tmp_path, write_config, input={"target_language": code})
        return list(of_configuration(config, ["score", "embeddings", "evaluate"]))

    assert of("en") == of("fr") == []
    assert of("cz") == [
        "input.target_language: cz is taken for cs (Czech)",
        "input.source_language: is Czech, as input.target_language is; one may be wrong",
    ]
    assert of("klingon") == [
        "input.target_language: klingon is unknown; its tokens are Moses' default"
    ]


def test_a_model_is_trained_between_two_languages(
    tmp_path: Path, write_config: WriteConfig
) -> None:
    config = configuration(tmp_path, write_config, input={"target_language": "cs"})
    with pytest.raises(UserError, match=r"^input.source_language: is cs, as input.target_language"):
        nmt.check(config)


def test_without_fairseq_the_training_names_the_extra(
    tmp_path: Path, write_config: WriteConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before it prepares anything: the process that trains would have it in its log only."""
    monkeypatch.setattr(nmt, "find_spec", lambda name: None)
    run = Run(config=configuration(tmp_path, write_config), manifest=Manifest(str(tmp_path)))
    with pytest.raises(ModuleNotFoundError) as error:
        nmt.make(run, "key")
    assert missing_extra(str(error.value)) == (
        "fairseq is not installed: pip install 'paraloom[fairseq]'"
    )


def test_words_are_marked_by_characters() -> None:
    _, marked = mark_differences("猫が走る。", "犬が走る。", "ja")
    assert marked == "<mark>犬</mark>が走る。"
