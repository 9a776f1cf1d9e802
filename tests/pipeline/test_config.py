import re
from pathlib import Path
from typing import Any

import pytest

from paraloom.models.errors import UserError
from paraloom.pipeline.config import Config, read_config
from paraloom.pipeline.config.options import ScoreOptions
from paraloom.pipeline.config.read import parse_config
from paraloom.pipeline.run.make import localised, remote_paths
from paraloom.pipeline.run.notices import of_configuration
from tests.run_helpers import Patch

GOOD = """
run: runs/x
input: {format: tsv, paths: [a.tsv]}
score: {scorers: [translation_score, trigram_overlap]}
select: {by: trigram_overlap}
"""


def read(tmp_path: Path, text: str, *changes: str) -> Config:
    path = tmp_path / "c.yaml"
    path.write_text(text, encoding="utf-8")
    return read_config(path, changes)


def problem(tmp_path: Path, text: str, *changes: str) -> str:
    """What is said of a file, from which the message begins, or of the changes."""
    with pytest.raises(UserError) as error:
        read(tmp_path, text, *changes)
    said = str(error.value)
    assert "\n" not in said and said.startswith((f"{tmp_path}/c.yaml: ", "--set "))
    return said.removeprefix(f"{tmp_path}/c.yaml: ")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("sead: 1", "sead: unknown key; did you mean seed?"),
        ("nmt: {beem: 3}", "nmt.beem: unknown key; did you mean beam?"),
        ("seed: one", "seed: must be a valid integer, not 'one'"),
        ("nmt:", "nmt: is empty; give it a value, or remove it"),
        ("generators: [{kind: x}]", "generators[0].kind: must be 'nmt' or 'chat', not 'x'"),
        ("generators: [{name: x}]", "generators[0].kind: is missing"),
        ("generators: [nmt]", "generators[0]: must consist of keys and values, not 'nmt'"),
        ("seed: 2\nseed: 3", "line 7: duplicate key seed"),
        ("seed: [", "line 7:"),
    ],
)
def test_mistakes_are_one_line_that_names_the_key(tmp_path: Path, more: str, message: str) -> None:
    assert message in problem(tmp_path, GOOD + more + "\n")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("run='  '", "run: must name a folder"),
        ("nmt.model=''", "nmt.model: is empty; give it a value, or remove it"),
        ("input.paths=[a, ' ']", "input.paths[1]: is empty; give it a value, or remove it"),
        ("nmt.beem =2", "--set nmt.beem: unknown key; did you mean beam?"),
        ("input.paths[0]=a", "--set input.paths[0]: unknown key; did you mean paths?"),
        ("input.source_language=../../evil", "input.source_language: must be a code such as cs or"),
        ("select.deciles=[10]", "select.deciles[0]: must be less than or equal to 9, not 10"),
        ("select.by=meteor", "select.by: meteor is not among score.scorers"),
        (
            "score.scorers=[meteor]",
            "score.scorers: 'meteor' is unknown; choose from translation_sc",
        ),
        ("score.scorers=[trigram_overlap, trigram_overlap]", "score.scorers: names a scorer twice"),
        (
            "score.columns={trigram_overlap: a}",
            "score.columns.trigram_overlap: trigram_overlap is already in use",
        ),
        ("score.scorers=[paragram_similarity]", "score.paragram: paragram_similarity needs"),
        ("loop.rounds=2", "select.labelled: is missing; loop.rounds"),
        ("input.format=text", "nmt.forward_model: is missing; input.format text needs nmt.f"),
        ("score.scorers=[encoder_similarity]", "'encoder_similarity' is unknown; choose from"),
        ("select.where=['trigram_overlap ~ 1']", "select.where[0]: 'trigram_overlap ~ 1' is no"),
        (
            "select.where=[unigram_f1 <= 0.7 and bleu <= 0.5]",
            "give each further condition as an item",
        ),
        ("input.where=[source_token <= 3]", "input.where[0]: source_token is not a column of untr"),
        ("select.where=[a_decile > 0]", "select.where[0]: a_decile is not a column of the pairs"),
        ("nothing", "--set nothing: must be key.sub=value"),
        ("seed.x=1", "--set seed.x=1: seed has no keys below it"),
    ],
)
def test_a_change_is_checked_like_the_file(tmp_path: Path, change: str, message: str) -> None:
    text = GOOD + "seed: 3\nnmt: {beam: 2}\n"
    said = problem(tmp_path, text, change)
    assert message in said
    if message.startswith(change.partition("=")[0]):
        assert said.startswith(f"--set {change.partition('=')[0]}")


def test_conditions_on_plain_text_read_no_source(tmp_path: Path) -> None:
    models = ["input.format=text", "nmt.model=m", "nmt.forward_model=f"]
    said = problem(tmp_path, GOOD, *models, "input.where=[identical = no]")
    assert said.startswith("--set input.where[0]: identical needs a source, which plain")


def test_changes_come_over_the_file_in_order(tmp_path: Path) -> None:
    changes = ["seed=7", "nmt.beam=3", "nmt.beam=4", "select.deciles=null", "nmt.model=m"]
    config = read(tmp_path, GOOD, *changes)
    assert (config.seed, config.nmt.beam, config.nmt.model) == (7, 4, "m")
    assert config.select.deciles is None
    changes = ["score.scorers+=unigram_f1", "select.where=trigram_overlap <= 0.5"]
    more = ["select.where+=[unigram_f1 <= 0.7]", "select.where+=trigram_overlap > 0"]
    wanted = ["trigram_overlap <= 0.5", "unigram_f1 <= 0.7", "trigram_overlap > 0"]
    found = read(tmp_path, GOOD, "nmt.model=m", *changes, *more).select.where
    assert [str(item) for item in found] == wanted


def test_changes_do_not_alter_the_given_values() -> None:
    values = {"run": "r", "input": {"format": "tsv", "paths": ["a"]}, "nmt": {"beam": 3}}
    assert parse_config(values, ["nmt.beam=4"]).nmt.beam == 4
    assert parse_config(values).nmt.beam == 3


def test_variables_are_filled_in_everywhere(tmp_path: Path, monkeypatch: Patch) -> None:
    monkeypatch.setenv("SOME_DATA", "/data")
    monkeypatch.delenv("NO_DATA", raising=False)
    config = read(tmp_path, GOOD, "run=${SOME_DATA}/run", "input.paths=['${SOME_DATA}/*.gz', b]")
    assert config.run == "/data/run"
    assert config.input is not None
    assert config.input.paths == ["/data/*.gz", "b"]
    moses = ["input.format=moses", "input.paths={source: '${NO_DATA}/a', reference: b}"]
    said = "--set input.paths.source: the environment variable NO_DATA is not set"
    assert problem(tmp_path, GOOD, *moses) == said


def test_the_manifest_has_variables_by_their_names(tmp_path: Path, monkeypatch: Patch) -> None:
    values = {"DATA": "/data/me/", "KEY": "sesame", "SOURCE": "fr", "BY": "c", "ROOT": "/"}
    for name, value in {**values, "NAME": "mine"}.items():
        monkeypatch.setenv(name, value)
    config = read(
        tmp_path,
        GOOD,
        "run=${ROOT}runs/${NAME}",
        "input.paths=['${DATA}/a.${SOURCE}.gz']",
        "input.source_language=${SOURCE}",
        "input.license=see https://me:word@host/terms?token=x",
        "score.columns={c: 's3://me:word@host/${KEY}'}",
        "select.by=${BY}",
    )
    again = config.replace().written
    assert again == config.written
    assert again["score"]["columns"]["c"] == "s3://host/${KEY}"
    assert again["input"]["paths"] == ["${DATA}/a.fr.gz"]
    assert again["input"]["source_language"] == "fr"  # only codes may stand there
    assert again["input"]["license"] == "see https://host/terms"
    assert again["select"]["by"] == "c"
    assert again["run"] == "${ROOT}runs/mine"  # cards call it so


@pytest.mark.parametrize(
    ("select", "message"),
    [
        ("auto", "select has no keys below it"),
        ({"named": ["x"]}, "select.named: must consist of keys and values"),
        ({"named": {"x": "strict"}}, "select.named.x: must consist of keys and values"),
    ],
)
def test_changes_of_a_named_selection_that_is_no_mapping(select: Any, message: str) -> None:
    values = {"run": "r", "input": {"format": "tsv", "paths": ["a"]}, "select": select}
    with pytest.raises(UserError, match=message):
        parse_config(values, ["select.deciles=[9]"], "x")


@pytest.mark.parametrize("run", [".", "..", "x/.", "x/..", "a/b"])
def test_any_run_folder_is_recorded(run: str) -> None:
    config = parse_config({"run": run, "input": {"format": "tsv", "paths": ["a"]}})
    assert Config.of(config.written).run == run


def test_a_file_that_is_not_whole_or_cannot_be_read(tmp_path: Path) -> None:
    assert problem(tmp_path, "run: x") == "input: is missing"
    assert problem(tmp_path, "") == "not a configuration; it must consist of lines `key: value`"
    with pytest.raises(UserError, match=r"none.yaml: cannot be read \(No such file"):
        read_config(tmp_path / "none.yaml")


def test_code_in_yaml_is_not_run(tmp_path: Path) -> None:
    text = GOOD + f"accelerator: !!python/object/apply:os.mkdir [{tmp_path}/made]\n"
    assert "could not determine a constructor" in problem(tmp_path, text)
    assert not (tmp_path / "made").exists()


CONFIGS = Path(__file__).resolve().parents[2] / "configs"


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*.yaml")), ids=lambda path: path.stem)
def test_the_configurations_that_come_along_are_sound(path: Path, monkeypatch: Patch) -> None:
    languages = {"SOURCE": "cs", "TARGET": "en"}
    for name in re.findall(r"\$\{(\w+)\}", path.read_text()):
        monkeypatch.setenv(name, languages.get(name, "/data"))
    assert read_config(path).run == f"runs/{path.stem.replace('trained', 'cs-en')}"


def test_declared_files_by_key(tmp_path: Path) -> None:
    config = read(
        tmp_path,
        GOOD,
        "nmt.model=m",
        "select.labelled=[l1, l2]",
        "input={format: moses, paths: {source: [s1, s2], reference: r}}",
        "embeddings={task: phrases, phrases: {table: t}, context: {text: [c]}}",
        "score.spacy=en",
    )
    checked = {"nmt.model": "m", "embeddings.phrases.table": "t", "score.spacy": "en"}
    checked |= {"select.labelled[0]": "l1", "select.labelled[1]": "l2"}
    assert config.files(lambda mark: mark.checked) == checked
    assert config.files() == {
        **checked,
        "input.paths.source[0]": "s1",
        "input.paths.source[1]": "s2",
        "input.paths.reference": "r",
    }


def test_remote_files_are_replaced_by_local_copies(tmp_path: Path, monkeypatch: Patch) -> None:
    localise = "paraloom.beam_jobs.storage.remote.localise"
    monkeypatch.setattr(localise, lambda path: f"/copy/{path[5:]}")
    config = read(
        tmp_path,
        GOOD,
        "run=s3://b/run",
        "input.paths=['s3://b/*.gz']",
        "nmt.model=s3://b/m",
        "score.idf=s3://b/idf",
        "select.labelled=[s3://b/l, local]",
    )
    there = ["s3://b/run", "s3://b/*.gz", "s3://b/m", "s3://b/idf", "s3://b/l"]
    assert remote_paths(config) == there
    here = localised(config)
    assert (here.run, here.nmt.model) == ("s3://b/run", "s3://b/m")  # read where they are
    assert here.input is not None and here.input.paths == ["s3://b/*.gz"]
    assert (here.score.idf, here.select.labelled) == ("/copy/b/idf", ["/copy/b/l", "local"])


LITTLE = "run: r\ninput: {format: tsv, paths: [a.tsv]}\nnmt: {model: m}\n"


def test_with_nothing_said_what_can_be_computed_is(tmp_path: Path) -> None:
    config = read(tmp_path, LITTLE)
    for of in (config, config.replace(seed=5), read(tmp_path, LITTLE, "score.idf=i")):
        assert of.score.scorers == ["translation_score", "trigram_overlap"]
        assert (of.select.by, of.select.deciles) == ("translation_score", [3, 4, 5, 6, 7, 8, 9])
    (said,) = of_configuration(config, ["score", "select"])
    assert said.startswith("score: paragram_similarity is left out, because it needs")
    again = Config.of(config.model_dump())
    assert again.score == ScoreOptions.of(config.score.model_dump())
    assert again.select.by == "translation_score"
    assert read(tmp_path, LITTLE, "select.deciles=[9]", "seed=2").select.deciles == [9]
    named = read(tmp_path, LITTLE, "select.named={strict: {deciles: [9]}}")
    named = named.derived("selections/strict")
    assert (named.select.by, named.select.deciles) == ("translation_score", [9])
    chat = "generators=[{kind: chat, name: a, model: m, base_url: 'http://x/v1'}]"
    own = read(tmp_path, LITTLE.replace("model: m", ""), chat)
    assert own.score.scorers == ["trigram_overlap"] == [own.select.by]


def test_what_is_said_is_not_left_out(tmp_path: Path) -> None:
    """What says nothing about it is as it was."""
    default = ScoreOptions().scorers
    config = read(tmp_path, LITTLE, "score.phrases=p.gz")
    assert (config.score.scorers, config.select.by) == (default, "paragram_similarity")
    assert not list(of_configuration(config, ["score"]))
    for change in ("score.scorers=[paragram_similarity]", "select.by=paragram_similarity"):
        assert "score.paragram: paragram_similarity needs" in problem(tmp_path, LITTLE, change)
    by = problem(tmp_path, LITTLE, "score.scorers=[translation_score]")
    assert "select.by: paragram_similarity is not among score.scorers" in by


@pytest.mark.parametrize("key", ["on", "no", "1e3", "2024-01-01", "null"])
def test_names_that_yaml_takes_for_no_text(tmp_path: Path, key: str) -> None:
    said = problem(tmp_path, GOOD, f"score.columns={{{key}: a.tsv}}")
    assert said.startswith("--set score.columns.")
    assert said.endswith("put it in quotes, since YAML does not read it as text")
    named = read(tmp_path, GOOD, "select.named={2024: {deciles: [1]}}").select.named
    assert named.keys() == {"2024"}
