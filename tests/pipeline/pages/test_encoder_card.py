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
from tests.run_helpers import Capsys, manifest


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
    assert "sts/2012 is in evaluate.sts too" in capsys.readouterr().err
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
    assert "choose its epoch or its pairs: STS 2012 MSRpar.\n" in text
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
    (folder / ".README.md.abcd1234").write_text("of a killed process")
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
def test_a_card_of_a_person_stays(
    tmp_path: Path, arguments: list[str], whole: bool, capsys: Capsys
) -> None:
    assert train(*arguments) == 0
    path = tmp_path / "run" / "embeddings" / "README.md"
    marked, _, rest = path.read_text().partition("# Written by Paraloom")
    own = "My words.\n" if whole else marked + rest.partition("\n")[2]
    path.write_text(own)
    capsys.readouterr()
    assert train(*arguments) == 0
    error = capsys.readouterr().err
    assert path.read_text() == own and "embeddings …" not in error
    assert f"paraloom: {path}: is not Paraloom's, so it stays; remove it" in error


def test_a_run_in_object_storage(
    bucket: str, s3: list[str], arguments: list[str], capsys: Capsys
) -> None:
    arguments[arguments.index("--out") + 1] = f"{bucket}/run"
    assert train(*arguments, "--", *s3) == 0
    text = storage.read_bytes(f"{bucket}/run/embeddings/README.md").decode()
    assert "STS 2015 (mean of 2 data sets)" in text and "paraloom-" not in text
    capsys.readouterr()
    assert train(*arguments, "--set", "evaluate.sts=null", "--", *s3) == 0
    assert "…" not in capsys.readouterr().err
    assert b"was not evaluated" in storage.read_bytes(f"{bucket}/run/embeddings/README.md")
