"""`import paraloom`: what a notebook uses, as its documentation shows it."""

import doctest
import functools
import json
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import paraloom
from paraloom.pipeline import library
from paraloom.pipeline.stages import folder_of
from tests.run_helpers import ROOT, STAGES, Capsys, Patch, WriteConfig, refuses

PAGE = (ROOT / "docs" / "library.md").read_text("utf-8")


@pytest.fixture
def place(finished_run: Path, tmp_path: Path, monkeypatch: Patch) -> Path:
    """A folder that has a finished run, `runs/sample`, and a bitext, `pairs.tsv`."""
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "sample").symlink_to(finished_run / "run")
    (tmp_path / "pairs.tsv").write_text("Pes štěká.\tA dog barks.\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_examples_run(place: Path) -> None:
    found = doctest.testmod(library, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert found.failed == 0 and found.attempted > 5


def test_notebook_and_page_run(a_run: Path, write_config: WriteConfig, monkeypatch: Patch) -> None:
    """All cells in their order; their run is that of the tests, whose first stages are finished."""
    monkeypatch.chdir(a_run)
    monkeypatch.setenv("MPLBACKEND", "agg")
    vectors = "".join(f"{word} 1 {len(word)} 2\n" for word in ["a", "the", "."])
    (a_run / "vectors.txt").write_text(vectors)
    scorers = ["translation_score", "content_overlap", "paragram_similarity"]
    write_config(
        a_run,
        run="run",
        score={"scorers": scorers, "paragram": "vectors.txt"},
        select={"by": "translation_score", "deciles": None},
        embeddings={"dim": 3, "epochs": 1},
    )
    given = functools.partial(paraloom.run, "config.yaml", beam=["--direct_num_workers", "1"])
    monkeypatch.setattr(paraloom, "run", lambda name: given())
    names: dict[str, Any] = {}
    for cell in json.loads((ROOT / "docs" / "quickstart.ipynb").read_text("utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), "quickstart", "exec"), names)
    assert names["corpus"].num_rows == names["run"].record("corpus").rows_out > 50
    assert [axis.get_title() for axis in names["axes"]] == [
        f"{stage}: {names['run'].record(stage).rows_out:,} pairs" for stage in ("bucket", "corpus")
    ]
    (a_run / "runs").mkdir()
    (a_run / "runs" / "sample").symlink_to(a_run / "run")
    (block,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.M | re.S)
    exec(compile(block, "library.md", "exec"), names)
    assert len(names["frame"]) == names["corpus"].num_rows


def test_nothing_else_is_public() -> None:
    assert set(paraloom.__all__) == set(paraloom._HOMES)
    for name in paraloom.__all__:
        assert f"`{name}`" in PAGE or f"paraloom.{name}" in PAGE, name
        assert getattr(paraloom, name).__doc__
    with pytest.raises(AttributeError, match="no attribute 'models_'"):
        _ = paraloom.models_


def test_a_finished_run(place: Path) -> None:
    run = paraloom.open_run("runs/sample")
    assert run.stages == list(STAGES)
    for stage in STAGES:
        assert run.pairs(stage).count_rows() == run.record(stage).rows_out  # type: ignore[attr-defined]
        read = pd.read_parquet(place / "runs" / "sample" / folder_of(stage))  # as others read it
        assert read["id"].tolist() == run.pairs(stage).to_table()["id"].to_pylist()
    table = run.pairs("bucket").to_table()
    sides = (table[side].combine_chunks() for side in ("reference", "translation"))
    scores = paraloom.score(*sides)
    assert scores["trigram_overlap"].equals(table["trigram_overlap"])


def test_what_is_not_there_is_said(place: Path) -> None:
    run = paraloom.open_run("runs/sample")
    with pytest.raises(paraloom.UserError, match="is not finished; finished stages: ingest, "):
        run.encoder()
    for opening in (run.record, run.pairs):
        with refuses("is not finished; finished stages: ingest, "):
            opening("")
    with pytest.raises(paraloom.UserError, match="nothing: no run with a finished stage here"):
        paraloom.open_run("nothing")
    with pytest.raises(paraloom.UserError, match="scorer 'bleurt' is neither in Paraloom nor"):
        paraloom.score(["a"], ["b"], ["bleurt"])
    with pytest.raises(
        paraloom.UserError, match="translation_score: comes from the translation model"
    ):
        paraloom.score(["a"], ["b"], ["translation_score"])
    with pytest.raises(paraloom.UserError, match="where a list of texts is needed"):
        paraloom.score("a dog", "a cat")
    with pytest.raises(
        paraloom.UserError, match="language: cz is not a language code; Czech is cs"
    ):
        paraloom.score(["a"], ["b"], language="cz")
    with pytest.raises(paraloom.UserError, match="no resource 'paragrams': choose from "):
        paraloom.score(["a"], ["b"], paragrams="vectors.txt")
    with pytest.raises(paraloom.UserError, match="1 references but 2 translations"):
        paraloom.score(["a"], ["a", "b"])
    no_texts: list[tuple[Any, str]] = [
        (["a dog", float("nan")], "row 2 is nan, which is not a text"),
        (pa.array([3]), "row 1 is 3, which is not a text"),
        (["a \ud800"], r"row 1 is 'a \\ud800', which is not a text"),
        (pd.DataFrame({"reference": ["a dog"]}), "a DataFrame is given where a list of texts"),
        (None, "a NoneType is given where a list of texts is needed"),
        (3.5, "a float is given where a list of texts is needed"),
    ]
    for texts, message in no_texts:
        with refuses(message):
            paraloom.score(texts, ["a dog"])
    assert paraloom.score([], [])["trigram_overlap"].type == pa.float32()


def test_a_notice_if_no_word_has_a_vector(tmp_path: Path, capsys: Capsys) -> None:
    (tmp_path / "vectors.txt").write_text("Dog 1 2\nCat 2 1\n")

    def similarity(*texts: str) -> object:
        return paraloom.score(
            texts, texts, "paragram_similarity", paragram=tmp_path / "vectors.txt"
        )["paragram_similarity"].to_pylist()

    assert similarity("the bird") == [0]
    said = "paraloom: score: paragram_similarity of all pairs is 0; use word vectors for their lang"
    assert capsys.readouterr().err.startswith(said)
    (tmp_path / "vectors.txt").write_text("dog 1 2\ncat 2 1\n")
    assert similarity("the bird", "the dog") == [0, 1] and similarity() == []
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary("int32", "string")])
def test_a_missing_text_is_an_empty_text(kind: pa.DataType) -> None:
    texts = ["he met Bob", None, "he met Eva"]
    chunks = pa.chunked_array([pa.array(texts[:1], kind), pa.array(texts[1:], kind)])
    scores = paraloom.score(chunks, texts[::-1], "same_names")["same_names"]
    assert scores.to_pylist() == [0, 1, 0]
    assert paraloom.score(texts, ["he met Bob", "he met Bob", ""], ["same_names"])[
        2
    ].to_pylist() == [1, 0, 0]
