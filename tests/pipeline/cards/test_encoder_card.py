"""The model card of an encoder: what it says, when it is written, and that nothing is trained for
it."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from huggingface_hub import ModelCard, ModelCardData
from huggingface_hub.repocard_data import eval_results_to_model_index, model_index_to_eval_results

from beam_jobs.io import storage
from models.files import digest
from pipeline import cli
from pipeline.cards import encoder_card as card
from pipeline.cards.encoder_metadata import model_index
from pipeline.records import Evaluation, RunRecord

NATIVE = {
    "native": True,
    "exact": True,
    "largest_difference": 3e-8,
    "not_finite": 0,
    "equal_sentences": 1.0,
    "sentences": 4030,
}


@pytest.fixture
def sts(tmp_path: Path) -> Path:
    rows = "5\tdog 1 runs\thound 1 sprints\n0\tdog 2\tcat 3 sleeps\n2\tdog 1\tdog 1 runs\n"
    for path in ("2012/MSRpar.tsv", "2015/images.tsv", "2015/belief.tsv"):
        (tmp_path / "sts" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "sts" / path).write_text(rows)
    return tmp_path / "sts"


@pytest.fixture
def arguments(tmp_path: Path, sts: Path) -> list[str]:
    """Of a training that takes a second, with development data and an evaluation."""
    lines = [f"dog {i} runs\thound {i} sprints" for i in range(40)]
    (tmp_path / "pairs.tsv").write_text("\n".join(lines) + "\n")
    keys = ("dim=8", "epochs=2", "loaders=0", f"development={sts}/2012")
    changes = [part for key in keys for part in ("--set", f"embeddings.{key}")]
    out = ["--pairs", str(tmp_path / "pairs.tsv"), "--out", str(tmp_path / "run")]
    return [*out, *changes, "--set", f"evaluate.sts={sts}"]


def train(*arguments: str) -> int:
    return cli.main(["train-embeddings", *arguments])


def test_huggingface_hub_reads_it_as_written(tmp_path: Path, arguments: list[str]) -> None:
    assert train(*arguments) == 0
    path = tmp_path / "run" / "embeddings" / "README.md"
    text = path.read_text("utf-8")
    written = yaml.safe_load(text.split("---\n")[1])
    read = ModelCard.load(path).data
    assert yaml.safe_load(read.to_yaml()) == written
    assert yaml.safe_load(ModelCardData(**written).to_yaml()) == written
    index = written["model-index"]
    assert eval_results_to_model_index(*model_index_to_eval_results(index)) == index
    assert read.pipeline_tag == "sentence-similarity" and read.language == ["en"]
    assert read.library_name == "sentence-transformers" and read.license == "unknown"
    # The development data are no test.
    names = {result.dataset_name for result in read.eval_results or []}
    assert names == {"STS 2015 images", "STS 2015 belief", "STS 2015 (mean of 2 data sets)"}
    results = json.loads((tmp_path / "run" / "evaluation.json").read_text())
    pearson = results["groups"]["STS 2015"]["mean"]["word-avg"]["pearson"]
    found = {(r.dataset_name, r.metric_type): r.metric_value for r in read.eval_results or []}
    assert found["STS 2015 (mean of 2 data sets)", "pearson_cosine"] == round(pearson / 100, 6)
    assert "choose its epoch or its pairs: STS 2012.\n" in text
    assert "| kept |" in text and "40 paraphrase pairs" in text
    sum_ = digest(tmp_path / "pairs.tsv")
    assert f"| `embeddings.pairs[0].paths[0]` | `pairs.tsv` | `{sum_}` |" in text
    for file in (tmp_path / "run" / "embeddings").glob("*.*"):
        assert str(tmp_path).encode() not in file.read_bytes(), file


def test_it_follows_the_evaluation_and_nothing_is_trained_again(
    tmp_path: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert train(*arguments) == 0
    folder = tmp_path / "run" / "embeddings"
    path, before = folder / "README.md", (folder / "model.safetensors").stat()
    text, times = path.read_text(), path.stat()
    capsys.readouterr()
    assert train(*arguments) == 0  # nothing is new
    assert path.stat() == times and "embeddings …" not in capsys.readouterr().err
    assert train(*arguments, "--set", "evaluate.sts=null") == 0
    assert "was not evaluated" in path.read_text() and "model-index" not in path.read_text()
    path.unlink()
    (folder / ".README.md.abcd1234").write_text("of a killed process")
    assert train(*arguments) == 0
    assert path.read_text() == text and not list(folder.glob(".README*"))
    assert (folder / "model.safetensors").stat() == before
    assert "embeddings …" not in capsys.readouterr().err


def test_a_folder_of_an_earlier_version_gets_a_card(
    tmp_path: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert train(*arguments) == 0
    folder, path = tmp_path / "run" / "embeddings", tmp_path / "run" / "manifest.json"
    (folder / "README.md").unlink()
    manifest = json.loads(path.read_text())
    for key in ("files", "versions"):
        del manifest["stages"]["embeddings"][key]
    path.write_text(json.dumps(manifest))
    capsys.readouterr()
    assert train(*arguments) == 0
    assert "…" not in capsys.readouterr().err
    assert "paraloom" in (folder / "README.md").read_text()
    assert json.loads(path.read_text())["stages"] == manifest["stages"]


@pytest.mark.parametrize("whole", [True, False])
def test_a_card_of_a_person_stays(
    tmp_path: Path, arguments: list[str], whole: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train(*arguments) == 0
    path = tmp_path / "run" / "embeddings" / "README.md"
    own = "My words.\n" if whole else path.read_text() + "\nMy words.\n"
    path.write_text(own)
    capsys.readouterr()
    assert train(*arguments) == 0
    error = capsys.readouterr().err
    assert path.read_text() == own and "embeddings …" not in error
    assert f"paraloom: {path}: changed by hand, so it stays as it is; remove it" in error


def test_the_card_is_no_part_of_the_digest(tmp_path: Path, arguments: list[str]) -> None:
    """Another run may read the folder (`score.sentence_model`, `similarity.start`)."""
    assert train(*arguments) == 0
    folder = tmp_path / "run" / "embeddings"
    stages = json.loads((tmp_path / "run" / "manifest.json").read_text())["stages"]
    assert digest(folder) == stages["embeddings"]["digest"]
    text = (folder / "README.md").read_text()
    (folder / "README.md").write_text(text + "more")
    assert digest(folder) == stages["embeddings"]["digest"]
    (folder / "README.md").write_text("---\nlicense: mit\n---\n")  # as of any model of others
    assert digest(folder) != stages["embeddings"]["digest"]
    assert digest(folder, ignored=["README.md"]) == stages["embeddings"]["digest"]


def test_sentence_transformers_keeps_it(tmp_path: Path, arguments: list[str]) -> None:
    from sentence_transformers import SentenceTransformer

    assert train(*arguments) == 0
    folder = tmp_path / "run" / "embeddings"
    text = (folder / "README.md").read_text()
    model = SentenceTransformer(str(folder), device="cpu")
    assert (folder / "README.md").read_text() == text
    model.save(str(tmp_path / "saved"))
    assert (tmp_path / "saved" / "README.md").read_text() == text


def test_a_run_in_object_storage(
    bucket: str, s3: list[str], arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    arguments[arguments.index("--out") + 1] = f"{bucket}/run"
    assert train(*arguments, "--", *s3) == 0
    text = storage.read_bytes(f"{bucket}/run/embeddings/README.md").decode()
    assert "STS 2015 (mean of 2 data sets)" in text and "paraloom-" not in text
    capsys.readouterr()
    assert train(*arguments, "--set", "evaluate.sts=null", "--", *s3) == 0
    assert "…" not in capsys.readouterr().err
    assert b"was not evaluated" in storage.read_bytes(f"{bucket}/run/embeddings/README.md")


def settings(export: dict[str, Any], **options: Any) -> dict[str, Any]:
    chosen = {"model": "word-avg", "dim": 300, **options}
    found = {"options": chosen, "vocabularies": {"words": 1234}, "dim": 300}
    return {**found, "sentence_transformers": export} if export else found


def text_of(values: dict[str, Any], **stages: Any) -> str:
    given: dict[str, Any] = {"config": {"run": "/home/janet/runs/a"}, "stages": stages}
    return " ".join(card.encoder_card(RunRecord.model_validate(given), values).split())


def test_it_says_how_the_encoder_is_opened() -> None:
    text = text_of(settings(NATIVE))
    assert 'SentenceTransformer("OWNER/NAME")' in text and "5.5 or later" in text
    assert "on 4,030 sentences that were compared, all tokens are equal" in text
    assert "no number differs by more than 3e-08" in text
    assert "janet" not in text and "The encoder was not evaluated." in text

    near = {**NATIVE, "exact": False, "equal_sentences": 0.98765, "largest_difference": 0.123}
    text = text_of({**settings({**near, "not_finite": 1}, model="bilstm-max"), "language": "th"})
    assert "98.77% have equal tokens, and numbers differ by up to 0.12." in text
    assert "6.2 or later" in text and "no finite vector. The results" in text
    assert "# a: Thai sentence encoder" in text and "- th" in text

    joined = {"native": False, "reason": "joined encoders"}
    text = text_of(settings(joined, model="word-avg+trigram-avg"))
    assert 'SentenceTransformer("DIR", trust_remote_code=True)' in text
    assert "has no modules for joined encoders" in text
    assert "the concatenation of the mean of the vectors of its words and the mean" in text

    phrases = {"task": "phrases", "phrases": {"table": "/home/janet/ppdb.gz"}, "model": "gru"}
    text = text_of(settings({"native": False, "reason": "GRUs"}, **phrases))
    assert 'similarity_fn_name="dot"' in text and "a high dot product" in text
    assert "janet" not in text and "table: ppdb.gz" in text


def test_texts_of_users_are_no_markup() -> None:
    given = {"config": {"run": "runs/<i>x</i>"}, "stages": {}}
    text = card.encoder_card(RunRecord.model_validate(given), settings(NATIVE))
    assert "<i>" not in text.split("---\n")[2].replace("`<i>", "")


def test_labelled_tasks_have_the_results_of_their_test_data() -> None:
    numbers = {"pearson": 80.0, "spearman": 75.0, "mse": 0.4}
    training = {"pairs": 10, "test": {"SICK test": {"pairs": 5, **numbers}, "mean": numbers}}
    found = {**settings(NATIVE, task="similarity", similarity={"data": ["sick"]}), "head": {}}
    text = card.encoder_card(
        RunRecord.model_validate({"stages": {"embeddings": {"training": training}}}), found
    )
    (result,) = yaml.safe_load(text.split("---\n")[1])["model-index"][0]["results"]
    assert result["dataset"]["name"] == "SICK test (held out)"
    assert {m["type"]: m["value"] for m in result["metrics"]} == {
        "pearson": 0.8,
        "spearman": 0.75,
        "mse": 0.4,
    }
    assert "| SICK test | 5 | 80.0 | 75.0 | 0.400 |" in text
    assert "`paraloom similarity` gives the label" in text and "not evaluated" not in text


def test_results_of_other_versions_of_the_evaluation() -> None:
    """Undefined ones are left out; complete tasks of MTEB's protocol are there."""
    numbers = {"pearson": None, "spearman": None}
    tasks = {"STS 2015": {"task": "STS15", "complete": True}, "SICK test": {"task": "SICK-R"}}
    values = {
        "models": ["word-avg"],
        "groups": {"SICK": {"data_sets": {"trial": {"pairs": 1, "models": {"word-avg": numbers}}}}},
        "protocols": {
            "mteb": {
                "results": {"STS 2015": {"word-avg": 70.5}, "SICK test": {"word-avg": 60.0}},
                "tasks": tasks,
            }
        },
    }
    (result,) = model_index(Evaluation.model_validate(values), "word-avg", "dot")
    assert result["dataset"] == {
        "name": "STS15 (all pairs as one set)",
        "type": "sts15-all-pairs-as-one-set",
    }
    assert result["metrics"] == [
        {"type": "spearman_cosine", "value": 0.705, "name": "Spearman Cosine"}
    ]
    without = ["STS 2015 images"]
    assert not model_index(Evaluation.model_validate(values), "word-avg", "", without)


@pytest.mark.parametrize(
    ("without", "names"),
    [
        ([], ["STS 2015 forums", "STS 2015 images", "STS 2015 (mean of 2 data sets)"]),
        (["STS 2015 images"], ["STS 2015 forums"]),
        (["STS 2015 forums", "STS 2015 images"], []),
        (
            ["STS 2014 images"],
            ["STS 2015 forums", "STS 2015 images", "STS 2015 (mean of 2 data sets)"],
        ),
    ],
)
def test_a_mean_over_data_sets_that_were_used_is_left_out(
    without: list[str], names: list[str]
) -> None:
    found = {"word-avg": {"pearson": 50.0, "spearman": 50.0}}
    data_sets = {name: {"pairs": 1, "models": found} for name in ("forums", "images")}
    groups = {"STS 2015": {"data_sets": data_sets, "mean": found}}
    values = {"models": ["word-avg"], "groups": groups}
    results = model_index(Evaluation.model_validate(values), "word-avg", "cosine", without)
    assert [result["dataset"]["name"] for result in results] == names


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("/data/sts", ["STS 2012 OnWN", "STS 2014 OnWN", "STS 2014 deft-news"]),
        ("/data/sts/2014", ["STS 2014 OnWN", "STS 2014 deft-news"]),
        ("/data/2014/OnWN.tsv", ["STS 2014 OnWN"]),
        ("2014/deft-news.tsv", ["STS 2014 deft-news"]),
        ("/data/sick", ["SICK train", "SICK trial"]),
        ("SICK_trial.txt", ["SICK trial"]),
        ("/captions/train.tsv", []),
    ],
)
def test_data_that_were_used_before(path: str, names: list[str]) -> None:
    found = {"pairs": 1, "models": {"word-avg": {"pearson": 50.0, "spearman": 50.0}}}
    sets = {"STS 2012": ["OnWN"], "STS 2014": ["OnWN", "deft-news"], "SICK": ["train", "trial"]}
    groups = {group: {"data_sets": dict.fromkeys(of, found)} for group, of in sets.items()}
    record = {
        "stages": {"evaluate": {"results": {"models": ["word-avg"], "groups": groups}}},
    }
    text = card.encoder_card(RunRecord.model_validate(record), settings(NATIVE, development=[path]))
    results = yaml.safe_load(text.split("---\n")[1])["model-index"][0]["results"]
    tests = {result["dataset"]["name"] for result in results}
    assert {f"{group} {name}" for group, of in sets.items() for name in of} - tests == set(names)


@pytest.mark.parametrize(
    ("by", "rounds", "used"),
    [("auto", False, True), ("unigram_f1", True, True), ("unigram_f1", False, False)],
)
def test_labelled_pairs_that_chose_deciles_or_a_round(by: str, rounds: bool, used: bool) -> None:
    found = {"pairs": 1, "models": {"word-avg": {"pearson": 50.0, "spearman": 50.0}}}
    groups = {"STS 2014": {"data_sets": {"OnWN": found, "deft-news": found}}}
    loop = {"labelled": [50.0, 60.0], "data_sets": 1, "pairs": 1, "best": 2}
    evaluate = {"results": {"models": ["word-avg"], "groups": groups}}
    record = {
        "config": {"select": {"by": by, "labelled": "/data/2014/OnWN.tsv"}},
        "stages": {"evaluate": evaluate, **({"loop": loop} if rounds else {})},
    }
    text = card.encoder_card(RunRecord.model_validate(record), settings(NATIVE))
    assert ("choose its epoch or its pairs: STS 2014 OnWN.\n" in text) == used
    (index,) = yaml.safe_load(text.split("---\n")[1])["model-index"]
    tests = [result["dataset"]["name"] for result in index["results"]]
    assert tests == ["STS 2014 OnWN"] * (not used) + ["STS 2014 deft-news"]
