"""The stages that make resources of scorers: made once, and again if their input changes."""

from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from paraloom.models.errors import UserError
from paraloom.models.files import digest
from paraloom.models.nmt import NmtOptions
from paraloom.models.nmt.families.base import Languages
from paraloom.models.scorers import PairScorer
from paraloom.models.text.vectors import open_vectors
from paraloom.pipeline.run.make import check
from paraloom.pipeline.run.plan import PlannedStage
from paraloom.pipeline.run.records import IdfRecord
from paraloom.pipeline.run.run import Run
from paraloom.pipeline.run.stage import stages
from paraloom.pipeline.stages import score
from paraloom.pipeline.stages.resources import columns
from paraloom.pipeline.stages.translation import Model, license_of
from tests.made_resource import ingested, make_stage
from tests.run_helpers import Patch

ONE = ["--direct_num_workers", "1"]
REFERENCES = ["a dog runs .", "a dog sits .", "a cat sits ."]
SCORERS = ["translation_score", "mean_idf"]
IDF = stages()["idf"]


def make(
    folder: Path, references: list[str] = REFERENCES, idf: Path | None = None
) -> tuple[Run, bool]:
    """Bring the stage up to date; whether there was anything to do."""
    run = ingested(folder, references, scorers=SCORERS, idf=idf and str(idf))
    if PlannedStage(run, IDF).is_up_to_date(PlannedStage(run, IDF).key()):
        return run, False
    make_stage(run, IDF)
    return run, True


def test_a_file_that_changes_after_it_was_digested(tmp_path: Path, monkeypatch: Patch) -> None:
    path, stage = tmp_path / "file.tsv", stages()["columns"]
    path.write_text("a\t1\n")
    run = ingested(tmp_path, REFERENCES, scorers=SCORERS, columns={"comet": str(path)})
    make_stage(run, stage)
    from paraloom.models.scorers.columns import store as read

    def change_and_read(*arguments: Any) -> Any:
        path.write_text("a\t17\n")
        return read(*arguments)

    path.write_text("a\t15\n")
    with monkeypatch.context() as patch:
        patch.setattr(columns, "store", change_and_read)
        with pytest.raises(UserError, match="columns: an input of this stage changed while"):
            make_stage(run, stage)
    assert "columns" not in run.records
    make_stage(run, stage)
    assert PlannedStage(run, stage).is_up_to_date(PlannedStage(run, stage).key())


def test_counted_on_the_references(tmp_path: Path) -> None:
    run, made = make(tmp_path)
    assert made
    assert run.record(IdfRecord).documents == 3
    assert run.record(IdfRecord).words == 7  # six, and the row of unknown ones
    scorer = PairScorer(["mean_idf"], idf=tmp_path / "idf" / "compact")
    (found,) = scorer.score(pa.array(["dog"]), pa.array(["bird"]))["mean_idf"]
    rows = open_vectors(tmp_path / "idf" / "compact")
    assert found == pytest.approx(float(rows.at(rows.rows(["dog", "bird"])).mean()))
    assert not make(tmp_path)[1]
    assert make(tmp_path, [*REFERENCES, "a bird ."])[1]


def test_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "idf.txt"
    file.write_text("dog 2.5\ncat 0.5\n")
    run, made = make(tmp_path, idf=file)
    assert made
    assert run.record(IdfRecord).words == 2
    scorer = PairScorer(["mean_idf"], idf=tmp_path / "idf" / "compact")
    assert scorer.score(pa.array(["dog"]), pa.array(["cat"]))["mean_idf"].tolist() == [1.5]
    assert not make(tmp_path, idf=file)[1]
    file.write_text("dog 2.5\ncat 1.5\n")
    assert make(tmp_path, idf=file)[1]


@pytest.mark.parametrize("name", ["wordnet", "spacy"])
def test_a_model_that_is_read_where_it_is(tmp_path: Path, name: str) -> None:
    stage = stages()[name]
    scorer = {"wordnet": "no_antonyms", "spacy": "same_roles"}[name]
    folder = tmp_path / "model"
    folder.mkdir()
    scorers = ["translation_score", scorer]
    run = ingested(tmp_path, REFERENCES, scorers=scorers, **{name: str(folder)})
    assert stage.enabled(run.config)
    remedy = {"wordnet": "apt-get install wordnet-base", "spacy": "python -m spacy download"}[name]
    with pytest.raises(UserError, match=remedy):
        stage.check(run.config)
    for file in ("data.noun", "meta.json"):
        (folder / file).write_text("{}")
    stage.check(run.config)
    make_stage(run, stage)
    assert PlannedStage(run, stage).is_up_to_date(PlannedStage(run, stage).key())
    (folder / "meta.json").write_text("{ }")
    assert not PlannedStage(run, stage).is_up_to_date(PlannedStage(run, stage).key())


@pytest.mark.parametrize("key", ["score.spacy", "score.wordnet", "score.idf", "select.labelled"])
def test_a_path_must_exist_even_if_no_stage_reads_it(tmp_path: Path, key: str) -> None:
    config = ingested(tmp_path, REFERENCES).config
    config = config.replace(nmt=config.nmt.replace(model=None))
    section, name = key.split(".")
    changed = getattr(config, section).replace(**{name: "/nofile"})
    with pytest.raises(UserError, match=f"{key}: /nofile does not exist"):
        check(config.replace(**{section: changed}), [])
    package = config.score.replace(spacy="en_core_web_sm")
    check(config.replace(score=package), [])


def test_the_licence_in_a_models_card(tmp_path: Path) -> None:
    bomb = "a: &a [mit, mit]\n"
    bomb += "".join(f"{n}: &{n} [{', '.join([f'*{m}'] * 9)}]\n" for m, n in pairwise("abcdefghi"))
    for head, said in {
        "license: mit": "mit",
        "license: [mit, apache-2.0]": "mit, apache-2.0",
        "license: {name: mit}": None,
        "license: no": None,
        "license: &a [*a]": None,
        f"{bomb}license: *i": None,
        "- mit": None,
        "a: b: c": None,
        "": None,
    }.items():
        (tmp_path / "README.md").write_text(f"---\n{head}\n---\n# A model\n")
        assert license_of(tmp_path) == said
    (tmp_path / "README.md").unlink()
    assert license_of(tmp_path) is None


@pytest.mark.parametrize(
    ("compute_type", "versions"),
    [("auto", [2, 2, 1, 1]), ("int8", [[2, "int8"], [2, "int8"], 1, 1])],
)
def test_the_number_type_counts_for_sentence_models_alone(
    compute_type: str, versions: list[Any]
) -> None:
    config: Any = SimpleNamespace(score=SimpleNamespace(compute_type=compute_type))
    names = ("sentence_similarity", "cross_encoder", "reference_score", "unigram_f1")
    assert [score._version(config, name) for name in names] == versions


def test_the_key_of_a_model_has_its_checkpoint_and_tokeniser(tmp_path: Path) -> None:
    folder, tokenizer = tmp_path / "model", tmp_path / "own.model"
    folder.mkdir()
    for name in ("model1.pt", "model2.pt"):
        (folder / name).write_text(name)
    whole = Model(str(folder), NmtOptions(), Languages())
    assert whole.digest == digest(folder)
    names = ("model1.pt", "model2.pt", "model1.pt:model2.pt")
    keys = {whole._replace(name=str(folder / name)).digest for name in names}
    for content in ("a", "b"):
        tokenizer.write_text(content)
        keys.add(whole._replace(options=NmtOptions(tokenizer=str(tokenizer))).digest)
    assert len(keys | {whole.digest}) == 6
    (folder / "dict.cs.txt").write_text("a 1")
    assert whole._replace(name=str(folder / names[0])).digest not in keys
