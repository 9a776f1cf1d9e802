"""The model card of an encoder: what it says, when it is written, and that nothing is trained for
it."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from huggingface_hub import ModelCard
from huggingface_hub.repocard_data import eval_results_to_model_index, model_index_to_eval_results

from paraloom.beam_jobs import storage
from paraloom.models.files import digest
from paraloom.pipeline import cli
from paraloom.pipeline.pages import cards as card
from paraloom.pipeline.pages.metadata import eval_results
from paraloom.pipeline.run.records import Evaluation
from tests.run_helpers import Capsys, manifest, record_of


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
    keys = ("dim=8", "epochs=2", f"development={sts}/2012")
    changes = [part for key in keys for part in ("--set", f"embeddings.{key}")]
    out = ["--pairs", str(tmp_path / "pairs.tsv"), "--out", str(tmp_path / "run")]
    return [*out, *changes, "--set", f"evaluate.sts={sts}"]


def train(*arguments: str) -> int:
    return cli.main(["train-embeddings", *arguments])


def test_huggingface_hub_reads_it_as_written(
    tmp_path: Path, arguments: list[str], card_names: Any, capsys: Capsys
) -> None:
    assert train(*arguments) == 0
    assert "sts/2012 is also in evaluate.sts" in capsys.readouterr().err
    path = tmp_path / "run" / "embeddings" / "README.md"
    text = path.read_text("utf-8")
    written = yaml.safe_load(text.split("---\n")[1])
    read = ModelCard.load(path).data
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
    assert "choose its epoch, round or pairs: STS 2012 MSRpar.\n" in text
    assert "on 40 examples" in text
    sum_ = digest(tmp_path / "pairs.tsv")
    assert f"| `embeddings.pairs[0].paths[0]` | `pairs.tsv` | `{sum_}` |" in text
    for file in (tmp_path / "run" / "embeddings").glob("*.*"):
        assert str(tmp_path).encode() not in file.read_bytes(), file
    assert card_names(path)["vectors"].shape == (2, 8)


def test_it_follows_the_evaluation_and_nothing_is_trained_again(
    tmp_path: Path, arguments: list[str], capsys: Capsys
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
    (folder / ".README.md.abcd123f").write_text("of a killed process")
    assert train(*arguments) == 0
    assert path.read_text() == text and not list(folder.glob(".README*"))
    assert (folder / "model.safetensors").stat() == before
    assert "embeddings …" not in capsys.readouterr().err
    # The card is no part of the digest: another run may read the folder (`similarity.start`).
    stages = manifest(tmp_path)["stages"]
    assert digest(folder) == stages["embeddings"]["digest"]
    path.write_text(text + "more")
    assert digest(folder) == stages["embeddings"]["digest"]
    path.write_text("---\nlicense: mit\n---\n")  # as of any model of others
    assert digest(folder) != stages["embeddings"]["digest"]
    assert digest(folder, ignored=["README.md"]) == stages["embeddings"]["digest"]


@pytest.mark.parametrize("whole", [True, False])
def test_own_cards_stay(tmp_path: Path, arguments: list[str], whole: bool, capsys: Capsys) -> None:
    assert train(*arguments) == 0
    path = tmp_path / "run" / "embeddings" / "README.md"
    marked, _, rest = path.read_text().partition("# Written by Paraloom")
    own = "My words.\n" if whole else marked + rest.partition("\n")[2]
    path.write_text(own)
    capsys.readouterr()
    assert train(*arguments) == 0
    error = capsys.readouterr().err
    assert path.read_text() == own and "embeddings …" not in error
    assert (
        f"paraloom: {path}: kept, because its second line does not begin with '# Written" in error
    )


def test_a_run_in_a_store(bucket: str, s3: list[str], arguments: list[str], capsys: Capsys) -> None:
    arguments[arguments.index("--out") + 1] = f"{bucket}/run"
    assert train(*arguments, "--", *s3) == 0
    text = storage.read_bytes(f"{bucket}/run/embeddings/README.md").decode()
    assert "STS 2015 (mean of 2 data sets)" in text and "paraloom-" not in text
    capsys.readouterr()
    assert train(*arguments, "--set", "evaluate.sts=null", "--", *s3) == 0
    assert "…" not in capsys.readouterr().err
    assert b"was not evaluated" in storage.read_bytes(f"{bucket}/run/embeddings/README.md")


NATIVE = {"native": True, "equal_sentences": 1.0}


def settings(export: dict[str, Any], **options: Any) -> dict[str, Any]:
    chosen = {"model": "word-avg", "dim": 300, **options}
    kind = "trigrams" if chosen["model"] == "trigram-avg" else "words"
    found = {"options": chosen, "vocabularies": {kind: 1234}, "dim": 300}
    found["reads_order"] = "lstm" in chosen["model"]
    return {**found, "sentence_transformers": export} if export else found


def text_of(values: dict[str, Any], record: Any = None, number: int = 0) -> str:
    given = record or {"config": {"run": "/home/janet/runs/a"}, "stages": {}}
    return " ".join(card.encoder_card(record_of(given), values, number).split())


def test_it_says_how_the_encoder_is_opened() -> None:
    text = text_of(settings(NATIVE))
    assert 'SentenceTransformer("OWNER/NAME")' in text and "5.5 or later" in text
    assert "The vectors agree with the vectors that Paraloom computes." in text
    assert "janet" not in text and "The encoder was not evaluated." in text
    assert "model-index" not in text and "metrics" not in text

    near = {**NATIVE, "equal_sentences": 0.98765}
    text = text_of({**settings(near), "language": "th"})
    assert "only 98.77% of sentences have the same tokens in both" in text and "- th" in text
    assert "| tokens | letters in lower case |" in text

    text = text_of(settings(NATIVE, model="lstm", initial_vectors="/home/janet/v.txt"))
    assert "is the last state of an LSTM over its words." in text and "janet" not in text
    assert "Word vectors start from the file v.txt." in text

    joined = {"native": False}
    sizes = {"vocabularies": {"words": 1234, "trigrams": 5678}}
    text = text_of({**settings(joined, model="word-avg+trigram-avg"), **sizes})
    assert "| vocabulary | 1,234 words | | vocabulary | 5,678 trigrams |" in text
    assert 'SentenceTransformer("DIR", trust_remote_code=True)' in text

    phrases = {"task": "phrases", "phrases": {"table": "/home/janet/ppdb.gz"}, "model": "gru"}
    text = text_of(settings({"native": False}, **phrases))
    assert 'similarity_fn_name="dot"' in text and "a high dot product" in text
    assert "janet" not in text and "table: ppdb.gz" in text


def test_what_a_corpus_adds_to_the_card() -> None:
    training = {"pairs": 1200, "initial_vectors": "PARAGRAM vectors of the run"}
    model = {"path": "me/cs-en", "sha256": "5a", "revision": "0a1", "license": "mit"}
    embeddings = {
        "training": training,
        "versions": {"torch": "2.1", "spacy": "not installed"},
        "files": {"embeddings.development": {"path": "/home/janet/dev.tsv", "sha256": "de"}},
    }
    config: dict[str, Any] = {
        **{
            "run": "/home/janet/runs/a",
            "seed": 7,
            "select": {"by": "length_ratio", "deciles": [3, 4], "max_tokens": None},
        },
        "input": {"license": "CC BY 4.0", "source_language": "de", "target_language": "en"},
        "score": {"scorers": ["length_ratio"], "phrases": "/home/janet/ppdb.gz"},
    }
    record: dict[str, Any] = {
        **{"config": config, "versions": {"torch": "1.0"}},
        "stages": {
            "ingest": {"inputs": [{"path": "/home/janet/bitext.gz", "bytes": 1, "sha256": "b1"}]},
            "back_translate": {"model": model},
            "paragram": {"digest": "77"},
            "select": {"rows_out": 1234, "digest": "c0"},
            "embeddings": embeddings,
        },
    }

    text = text_of(settings(NATIVE, dim=8), record, 2)
    for said in (
        "license: cc-by-4.0 ",
        "# a-round-2: English sentence encoder",
        "| numbers in a vector | 300 | | vocabulary | 1,234 words |",
        "the corpus of the run `a`, round 2 (1,234 pairs). A pair is the English sentence of "
        "a row of bitext and a machine translation of the German sentence. Selection: "
        "deciles 3–4 of `length_ratio`; pairs with equal",
        "Run `a`, seed 7. Packages: torch 2.1. |",
        "| `embeddings.development` | `dev.tsv` | `de` | | PARAGRAM vectors of the run | | `77` | "
        "| corpus of the run | | `c0` | "
        "| bitext | `bitext.gz` | `b1` |",
        "are made by the model `me/cs-en`, revision `0a1`, licence mit, with the SHA-256 `5a`.",
        "Licence of the bitext: CC BY 4.0.",
    ):
        assert said in text, said
    assert "# a: English" in text_of(settings(NATIVE), record)

    record["stages"]["nmt"] = {"training": {"bleu": 28.26}}
    record["stages"]["pivot"] = {"model": {**model, "path": "me/en-de"}}
    chosen = {"scorer": "order", "deciles": [5], "pairs": 9, "scores": [50.0]}
    record["stages"]["auto_select"] = {"chosen": chosen}
    config["select"] |= {"by": "auto", "labelled": "x.tsv"}
    del embeddings["versions"], training["initial_vectors"]
    text = text_of(settings(NATIVE), record)
    assert "machine translation into German and back. Selection: decile 5 of `order`; pairs" in text
    assert "are made by a model `me/cs-en`, revision" in text and ", BLEU 28.3 on pairs" in text
    assert "The sources are made by the model `me/en-de`, revision" in text
    assert "Packages: torch 1.0." in text and "PARAGRAM" not in text and "ppdb" not in text

    text = text_of(settings(NATIVE, pairs=[{"paths": ["mine.tsv"]}]), record)
    assert "The licence of the training data is not stated" in text and "CC BY" not in text
    for other in ("the corpus of the run", "corpus of the run |", "bitext", "The translations are"):
        assert other not in text, other


def test_language_models_that_made_the_pairs_are_named() -> None:
    """As in the data card, whose test has the rest of the sentence."""
    generators = {
        "a": {"model": "owner/tiny", "models": ["/home/janet/tiny@main"], "license": "CC0"},
        "b": {"model": "big-2026", "prompt_text": "Paraphrase."},
    }
    stages: dict[str, Any] = {"generate": {"generators": generators}}
    stages["select"] = {"rows_out": 9, "digest": "c0"}
    record = {"config": {"run": "a", "input": {"source_language": "de"}}, "stages": stages}
    text = text_of(settings(NATIVE), record)
    for said in (
        "row of bitext and a candidate of a language model. Selection",
        "- Generator `a`: the model `owner/tiny` (the server names it `tiny@main`), asked",
        "; terms of its outputs: CC0. - Generator `b`: the model `big-2026`, asked",
        "`Paraphrase.`; terms of its outputs: not stated in the configuration. ",
    ):
        assert said in text, said
    assert "janet" not in text and "machine translation" not in text
    assert "Generator" not in text_of(settings(NATIVE, pairs=[{"paths": ["mine.tsv"]}]), record)
    stages["back_translate"] = {"model": {"path": "me/cs-en", "sha256": "5a"}}
    text = text_of(settings(NATIVE), record)
    assert "translation of the German sentence or a candidate of a language model." in text


def evaluated(
    sets: dict[str, list[str]],
    pearson: dict[str, float],
    values: dict[str, Any],
    select: dict[str, Any] | None = None,
    **stages: Any,
) -> tuple[str, list[dict[str, Any]]]:
    """The card of an encoder with these results on all data sets, and its model-index."""
    found = {name: {"pearson": value, "spearman": None} for name, value in pearson.items()}
    data = {"pairs": 1, "models": found}
    groups = {group: {"data_sets": dict.fromkeys(of, data)} for group, of in sets.items()}
    stages |= {"evaluate": {"results": {"models": [*found], "groups": groups}}}
    select = {"by": "unigram_f1", **(select or {})}
    config = {"score": {"scorers": ["unigram_f1"]}, "select": select}
    record = {"config": config, "stages": stages}
    text = card.encoder_card(record_of(record), values)
    return text, yaml.safe_load(text.split("---\n")[1])["model-index"][0]["results"]


@pytest.mark.parametrize("without", [[], ["STS 2015 images"]])
def test_a_mean_over_data_sets_that_were_used_is_left_out(without: list[str]) -> None:
    found = {"word-avg": {"pearson": 50.0, "spearman": 50.0}}
    data_sets = {name: {"pairs": 1, "models": found} for name in ("forums", "images")}
    groups = {"STS 2015": {"data_sets": data_sets, "mean": found}}
    record = Evaluation.model_validate({"models": ["word-avg"], "groups": groups})
    results = eval_results(record, "word-avg", "cosine", without)
    more = [] if without else ["STS 2015 images", "STS 2015 (mean of 2 data sets)"]
    names = [*dict.fromkeys(result.dataset_name for result in results)]
    assert names == ["STS 2015 forums", *more]


@pytest.mark.parametrize(("model", "value"), [("gru", 0.512346), ("word-avg", 0.2)])
def test_results_are_those_of_the_encoder_or_of_the_first(model: str, value: float) -> None:
    pearson = {"letters": 20.0, "gru": 51.23456}
    text, (result,) = evaluated({"SICK": ["test"]}, pearson, settings(NATIVE, model=model))
    assert [metric["value"] for metric in result["metrics"]] == [value]
    assert "| SICK test | 1 | 20.0 | undefined | 51.2 | undefined |" in text


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("/data/sts/2014", ["STS 2014 OnWN", "STS 2014 deft-news"]),
        ("/data/2014/OnWN.tsv", ["STS 2014 OnWN"]),
        ("2014/deft-news.tsv", ["STS 2014 deft-news"]),
        ("/data/sick", ["SICK train", "SICK trial"]),
        ("SICK_trial.txt", ["SICK trial"]),
        ("/2014/captions/pairs.tsv", []),
    ],
)
@pytest.mark.parametrize("use", ["development", "auto", "rounds", "none"])
def test_data_that_chose_an_epoch_deciles_or_a_round(path: str, names: list[str], use: str) -> None:
    sets = {"STS 2012": ["OnWN"], "STS 2014": ["OnWN", "deft-news"], "SICK": ["train", "trial"]}
    values = settings(NATIVE, development=[path]) if use == "development" else settings(NATIVE)
    select = {"by": "auto" if use == "auto" else "unigram_f1", "labelled": ["x.tsv", path]}
    loop = {"labelled": [50.0, 60.0], "data_sets": 1, "pairs": 1, "best": 2}
    stages = {"loop": loop} if use == "rounds" else {}
    text, index = evaluated(sets, {"word-avg": 50.0}, values, select, **stages)
    used = names if use != "none" else []
    said = f"choose its epoch, round or pairs: {', '.join(used)}.\n" in text
    assert said == bool(used)
    tests = {result["dataset"]["name"] for result in index}
    assert {f"{group} {name}" for group, of in sets.items() for name in of} - tests == set(used)


def test_data_that_chose_the_deciles_of_a_named_selection() -> None:
    named = {"x": {"by": "auto", "labelled": "/data/2014/OnWN.tsv"}}
    found = {"pairs": 1, "models": {"word-avg": {"pearson": 50.0, "spearman": None}}}
    groups = {"STS 2014": {"data_sets": {"OnWN": found}}}
    config = {
        "score": {"scorers": ["unigram_f1"]},
        "select": {"by": "unigram_f1", "named": named},
        "embeddings": {"selection": "x"},
    }
    stages = {"evaluate": {"results": {"models": ["word-avg"], "groups": groups}}}
    record = record_of({"config": config, "stages": stages})
    text = card.encoder_card(record, settings(NATIVE), corpus=record.derived("selections/x"))
    assert "choose its epoch, round or pairs: STS 2014 OnWN.\n" in text


@pytest.mark.parametrize(("exclude", "tasks"), [(False, None), (True, ["STS14"])])
def test_the_training_data_sets_are_known_without_evaluation_sentences(
    exclude: bool, tasks: list[str] | None
) -> None:
    stages = {"exclude": {"data_sets": {"sts/2012": 9}}} if exclude else {}
    values = settings(NATIVE, development=["/data/2014/OnWN.tsv"])
    text, _ = evaluated({"STS 2014": ["OnWN", "images"]}, {"word-avg": 50.0}, values, **stages)
    assert yaml.safe_load(text.split("---\n")[1]).get("training_datasets") == tasks
