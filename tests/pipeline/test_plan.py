"""Which keys of the configuration, and which files, the key of each stage depends on."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from paraloom.models.errors import UserError
from paraloom.models.nmt import NmtOptions
from paraloom.models.nmt.families.base import Languages
from paraloom.models.scorers import SCORERS
from paraloom.pipeline.config import read_config
from paraloom.pipeline.run.plan import PlannedStage, closure, outdated, plan
from paraloom.pipeline.run.records import StageRecord
from paraloom.pipeline.run.run import Run
from paraloom.pipeline.stages import back_translate
from paraloom.pipeline.stages.score import column_keys
from paraloom.pipeline.stages.translation import Model
from tests.run_helpers import Patch

FILES = {
    "bitext.tsv": "pes\tdog\n",
    "a.jsonl": '{"cs": "pes", "en": "dog", "domain": "web", "year": 1}\n',
    "phrases.tsv": "a dog\tdogs\n",
    "vectors.txt": "dog 0.5 1.5\n",
    "idf.txt": "dog 2.5\n",
    "labelled.tsv": "1\ta dog\ta cat\n2\ta dog\tdogs\n",
    "sts/2015/images.tsv": "1\ta dog\ta cat\n",
    "pairs.tsv": "a dog\tdogs\n",
    "pairs-labelled.tsv": "2\ta dog\ta cat\n1\ta dog\tdogs\n",
}


def config_of(folder: Path) -> dict[str, Any]:
    scorers = ["translation_score", "trigram_overlap", "mean_idf", "paragram_similarity"]
    return {
        "run": str(folder / "run"),
        "input": {"format": "tsv", "paths": [str(folder / "bitext.tsv")]},
        "score": {
            "scorers": [*scorers, "reference_score"],
            "phrases": str(folder / "phrases.tsv"),
        },
        "select": {"by": "trigram_overlap", "labelled": str(folder / "labelled.tsv")},
        "evaluate": {"sts": str(folder / "sts")},
    }


def keys(folder: Path, *changes: str) -> dict[str, str]:
    """The key of every stage; those that it reads have the same results whatever has changed."""
    run = Run(read_config(folder / "config.yaml", list(changes)))
    steps = finished(run)
    skipped = ("select",) if run.config.select.by in ("auto", "judged") else ()
    return {step.path: step.key() for step in steps if step.stage.name not in skipped}


def finished(run: Run) -> list[PlannedStage]:
    """The stages of a run, as if they were finished."""
    steps = plan(run)
    for step in steps:
        step.run.records[step.stage.name] = StageRecord(digest="same")
    return steps


def dependents(path: str, steps: list[PlannedStage]) -> set[str]:
    """The stages that read a stage, directly or through others, and itself."""
    return {of.path for of in steps if path in [s.path for s in closure([of.path], steps)]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(config_of(tmp_path)))
    return tmp_path


TRANSLATE = {"back_translate", "translation_model"}
TRAINED = {"nmt", "paragram", "select", "embeddings"}
LANGUAGE = ("nmt", "idf", "paragram", "score", "embeddings")
NOTHING = "seed=1"  # the default
AUTO = "select.by=auto"
JUDGED = "select.by=judged"
SEVERAL = "nmt.candidates=3"
SAMPLED = "nmt.sampling={top_k: 5}"
ROUNDS = "loop.rounds=2"
WORDS = "input.where=['source_tokens <= 5']"
CLEAN = "input.clean=[entities, nfc]"
WHERE = "select.where=['trigram_overlap <= 0.5']"
GERMAN = "input.target_language=de"
COLUMNS = "input={format: jsonl, paths: ['{folder}/a.jsonl'], columns: {source: cs, reference: en}}"


@pytest.mark.parametrize(
    ("given", "change", "stages"),
    [
        (NOTHING, "seed=2", TRAINED),
        (NOTHING, "run=elsewhere", set()),
        (NOTHING, "accelerator=type:a;count:1", set()),
        (NOTHING, "max_rejected=0.1", set()),
        (NOTHING, "input.format=czeng16", {"ingest"}),
        (NOTHING, "input.shard_rows=7", {"ingest"}),
        (NOTHING, "input.source_language=de", {"nmt"}),
        (NOTHING, "input.license=mine", set()),
        (NOTHING, "input.where=['source_tokens <= 5']", {"ingest"}),
        (NOTHING, "input.clean=[nfc]", {"ingest"}),
        (CLEAN, "input.clean=[nfc, entities, nfc]", set()),
        (CLEAN, "input.clean=[entities, nfc, whitespace]", {"ingest"}),
        (NOTHING, "input.unique=pair", {"ingest"}),
        (NOTHING, "input.unique=source", {"back_translate"}),
        (NOTHING, "input.source_language=ces", {"nmt"}),
        (NOTHING, "nmt.beam=3", {"back_translate"}),
        (NOTHING, "nmt.no_repeat_ngram=3", {"back_translate"}),
        (NOTHING, "nmt.repetition_penalty=1.1", {"back_translate"}),
        (NOTHING, "nmt={no_repeat_ngram: 0, repetition_penalty: 1}", set()),
        (NOTHING, "nmt.reuse=elsewhere", set()),
        (NOTHING, "nmt.compute_type=int8", TRANSLATE),
        (NOTHING, "nmt.batch_tokens=77", TRANSLATE),
        (NOTHING, "nmt.max_source_subwords=77", TRANSLATE),
        (NOTHING, "nmt.candidates=3", {"back_translate", "select"}),
        (NOTHING, "nmt.sampling={top_k: 5}", {"back_translate"}),
        (NOTHING, "nmt.training.updates=7", {"nmt"}),
        (NOTHING, "score.scorers=[trigram_overlap, paragram_similarity]", {"score", "bucket"}),
        (NOTHING, "score.phrases={folder}/pairs.tsv", set()),  # the same content
        (NOTHING, "score.phrases={folder}/bitext.tsv", {"paragram"}),
        (NOTHING, "score.paragram={folder}/vectors.txt", {"paragram"}),
        (NOTHING, "score.idf={folder}/idf.txt", {"idf"}),
        (NOTHING, "score.training.epochs=2", {"paragram"}),
        (NOTHING, "select.by=mean_idf", {"select"}),
        (NOTHING, "select.deciles=[1]", {"select"}),
        (NOTHING, "select.deciles=[9, 8]", set()),
        (NOTHING, "select.deciles=null", {"select"}),
        (NOTHING, "select.max_tokens=7", {"select"}),
        (NOTHING, "select.size=7", {"select"}),
        (NOTHING, "select.where=['trigram_overlap <= 0.5']", {"select"}),
        (NOTHING, "select.per_source=best", set()),  # one translation of each source
        (NOTHING, "select.max_overlap=0.1", set()),
        (NOTHING, "select.labelled={folder}/vectors.txt", set()),
        (NOTHING, "select.precision=0.8", set()),
        (NOTHING, "embeddings.margin=0.3", {"embeddings"}),
        (NOTHING, "embeddings.initial_vectors=null", {"embeddings"}),
        (NOTHING, "embeddings.device=cpu", set()),
        (NOTHING, "evaluate.sts={folder}/sts/2015", {"evaluate"}),
        (SEVERAL, "select.per_source=best", {"select"}),
        (SEVERAL, "select.max_overlap=0.1", {"select"}),
        (SEVERAL, GERMAN, {*LANGUAGE, "select"}),
        (SAMPLED, "seed=2", {*TRAINED, "back_translate"}),
        (SAMPLED, "nmt.sampling.temperature=2", {"back_translate"}),
        (WORDS, "input.where=['source_tokens <= 6']", {"ingest"}),
        (WORDS, "input.where=['source_tokens<=5.0']", set()),
        (COLUMNS, "input.keep=[domain]", {"ingest"}),
        (f"{COLUMNS}; input.keep=[domain]", "input.keep=[domain, year]", {"ingest"}),
        (COLUMNS, "input.columns={source: en, reference: cs}", {"ingest"}),
        (WORDS, "input.source_language=de", {"ingest", "nmt"}),
        ("score.paragram={folder}/vectors.txt", "seed=2", TRAINED - {"paragram"}),
        ("score.idf={folder}/idf.txt", GERMAN, set(LANGUAGE) - {"idf"}),
        (NOTHING, GERMAN, set(LANGUAGE)),
        (GERMAN, "input.target_language=fr", set(LANGUAGE)),
        (GERMAN, "input.target_language=deu_Latn", {"nmt"}),
        # These have no vectors of the run to start from.
        ("embeddings.dim=9", "embeddings.initial_vectors=null", set()),
        ("score.scorers=[trigram_overlap]", "embeddings.initial_vectors=null", set()),
        *[(AUTO, f"select.auto.{k}", {"auto_select"}) for k in ("pairs=7", "seeds=2")],
        (AUTO, "seed=2", TRAINED - {"select"} | {"auto_select"}),
        (AUTO, "select.auto.model=lstm-avg", {"auto_select"}),
        (AUTO, "select.max_tokens=7", {"auto_select"}),
        (AUTO, "select.near_duplicates=0.7", {"auto_select"}),
        (AUTO, "select.where=['trigram_overlap <= 0.5']", {"auto_select"}),
        (AUTO, "select.labelled={folder}/pairs-labelled.tsv", {"auto_select"}),
        (AUTO, "embeddings.dim=7", {"auto_select", "embeddings"}),
        (JUDGED, "select.precision=0.8", {"judged"}),
        (JUDGED, "select.good=50", {"judged"}),
        (JUDGED, "select.max_tokens=7", set()),
        (JUDGED, "seed=2", TRAINED - {"select"}),
        (JUDGED, "score.scorers=[mean_idf, paragram_similarity]", {"judged", "score", "bucket"}),
        (WHERE, "select.where=['trigram_overlap   <= 0.50']", set()),
        (ROUNDS, "select.labelled={folder}/pairs-labelled.tsv", {"loop"}),
        (f"{JUDGED}; {ROUNDS}", "select.precision=0.8", {"judged", "rounds/2/judged"}),
        (ROUNDS, "select.size=7", {"rounds/1/select", "rounds/2/select"}),
        (ROUNDS, "loop.rounds=3", {"loop", "select", "embeddings", "evaluate"}),
    ],
)  # fmt: skip
def test_keys_change_these_stages(folder: Path, given: str, change: str, stages: set[str]) -> None:
    assert changed(folder, given.split("; "), change) == stages


def changed(folder: Path, given: list[str], change: str) -> set[str]:
    """The stages that both configurations have, and whose keys differ."""
    changes = [text.replace("{folder}", str(folder)) for text in (*given, change)]
    before, after = keys(folder, *changes[:-1]), keys(folder, *changes)
    return {name for name in before.keys() & after.keys() if before[name] != after[name]}


@pytest.mark.parametrize(
    ("file", "given", "stages"),
    [
        ("bitext.tsv", [], {"ingest"}),
        ("phrases.tsv", [], {"paragram"}),
        ("vectors.txt", ["score.paragram={folder}/vectors.txt"], {"paragram"}),
        ("vectors.txt", ["embeddings.initial_vectors={folder}/vectors.txt"], {"embeddings"}),
        ("vectors.txt", [AUTO, "embeddings.initial_vectors={folder}/vectors.txt"],
         {"auto_select", "embeddings"}),
        ("idf.txt", ["score.idf={folder}/idf.txt"], {"idf"}),
        ("labelled.tsv", [AUTO], {"auto_select"}),
        ("labelled.tsv", [ROUNDS], {"loop"}),
        ("sts/2015/images.tsv", [], {"evaluate"}),
        ("pairs.tsv", ["embeddings.pairs=[{paths: [{folder}/pairs.tsv], first: 1, second: 2}]"],
         {"embeddings"}),
    ],
)  # fmt: skip
def test_files_change_stages(folder: Path, file: str, given: list[str], stages: set[str]) -> None:
    given = [text.replace("{folder}", str(folder)) for text in given]
    before = keys(folder, *given)
    path = folder / file
    path.write_text(path.read_text() + FILES[file])
    after = keys(folder, *given)
    assert {name for name in before if before[name] != after[name]} == stages


def test_translations_depend_on_the_model_the_run_trained(folder: Path, monkeypatch: Patch) -> None:
    run = Run(read_config(folder / "config.yaml"))
    monkeypatch.setattr(back_translate, "translate", lambda *given: given[-1])
    keys = []
    for sha256 in ("a", "b"):
        model = SimpleNamespace(digest=sha256)
        monkeypatch.setattr(back_translate, "backward", lambda run, model=model: model)
        keys.append(back_translate.make(run, ""))
    assert keys[0] != keys[1]


@pytest.mark.parametrize("change", [NOTHING, ROUNDS, "select.named.strict.size=5"])
def test_a_key_depends_on_what_the_stage_reads_and_nothing_else(folder: Path, change: str) -> None:
    steps = finished(Run(read_config(folder / "config.yaml", [change])))
    before = {step.path: step.key() for step in steps}
    for changed in steps:
        changed.run.records[changed.stage.name] = StageRecord(digest="another")
        after = {step.path: step.key() for step in steps}
        it = changed.run, changed.stage.name
        reads = {of.path for of in steps if it in of.reads().values()}
        assert {name for name in before if before[name] != after[name]} == reads, changed.path
        changed.run.records[changed.stage.name] = StageRecord(digest="same")
    for step in steps:
        newer = replace(step.stage, version=step.stage.version + 1)
        assert PlannedStage(step.run, newer).key() != before[step.path]


def test_derived_runs_read_their_own_stages_and_those_of_the_run(folder: Path) -> None:
    reads: dict[str, set[str]] = {}
    own = ["select.named.strict.size=5", "embeddings.selection=strict"]
    for changes in ([ROUNDS], own):
        for step in plan(Run(read_config(folder / "config.yaml", changes))):
            reads[step.path] = {run.path(name) for run, name in step.reads().values()}
    for stage, expected in {
        "rounds/1/select": {"bucket"},
        "rounds/1/embeddings": {"rounds/1/select", "paragram"},
        "rounds/2/score": {"score", "rounds/1/embeddings"},
        "rounds/2/bucket": {"rounds/2/score"},
        "rounds/2/select": {"rounds/2/bucket"},
        "rounds/2/embeddings": {"rounds/2/select", "paragram"},
        "rounds/2/evaluate": {"rounds/2/embeddings"},
        "loop": {"rounds/1/embeddings", "rounds/2/embeddings"},
        "selections/strict/select": {"bucket"},
        "selections/strict/embeddings": {"selections/strict/select", "paragram"},
        "embeddings": {"selections/strict/select", "paragram"},
    }.items():
        assert reads[stage] == expected, stage
    with pytest.raises(
        UserError, match=r"embeddings\.selection: strict is not among select\.named"
    ):
        read_config(folder / "config.yaml", own[1:])


def test_stages_of_another_configuration_are_outdated_and_what_reads_them(folder: Path) -> None:
    run = Run(read_config(folder / "config.yaml"))
    steps = plan(run)
    for step in steps:
        run.records[step.path] = StageRecord(key=step.key(), digest=step.path)
    names = set(run.records)
    assert outdated(steps) == set()
    changes = ["score.training.epochs=9", "select.deciles=[1]", "nmt.training.updates=7"]
    for change, stage_name in zip(changes, ("paragram", "select", "nmt"), strict=True):
        other = Run(read_config(folder / "config.yaml", [change]), records=run.records)
        assert outdated(plan(other)) == dependents(stage_name, steps), change
    without = Run(read_config(folder / "config.yaml", ["evaluate.sts=null"]), records=run.records)
    assert outdated(plan(without)) == {"evaluate"}
    (folder / "phrases.tsv").unlink()
    found = dependents("paragram", steps) & names
    assert outdated(steps) == found
    del run.records["score"]  # what reads it has no key
    assert outdated(steps) == found - {"score"}


def test_a_score_depends_on_resource_code_and_language(folder: Path, monkeypatch: Patch) -> None:
    def columns(change: str = "seed=1", **digests: str) -> dict[str, str]:
        config = read_config(folder / "config.yaml", [change])
        given = {"idf": "a", "paragram": "b", **digests}
        return column_keys(Run(config), given, {"ours": [1]})

    def differ(other: dict[str, str]) -> set[str]:
        return {name for name in before if before[name] != other[name]}

    before = columns()
    computed = {"trigram_overlap", "mean_idf", "paragram_similarity"}
    computed |= {"reference_score", "reference_tokens", "translation_tokens"}
    assert before.keys() == computed and len(set(before.values())) == len(before) - 1
    assert differ(columns(idf="c")) == {"mean_idf"}
    assert differ(columns(paragram="c")) == {"paragram_similarity"}
    assert differ(columns(translation_model="c")) == {"reference_score"}
    assert differ(columns(GERMAN)) == computed
    newer = replace(SCORERS["mean_idf"], version=9)
    monkeypatch.setitem(SCORERS, "mean_idf", newer)
    assert differ(columns()) == {"mean_idf"}


def test_keys_have_the_languages_of_moses_tokeniser(tmp_path: Path) -> None:
    """A model converted by others does not name them; its vocabulary may have no tags."""
    for name, text in {
        "model.bin": "",
        "config.json": "{}",
        "shared_vocabulary.json": '["<unk>", "<s>", "</s>", "a"]',
        "bpecodes": "#version: 0.2\na b\n",
    }.items():
        (tmp_path / name).write_text(text)
    pairs = (Languages("cs", "en"), Languages("fr", "en"))
    one, other = (Model(str(tmp_path), NmtOptions(), of).tags() for of in pairs)
    assert one != other
