"""configs/paranmt.yaml, on some pairs of the sample."""

from pathlib import Path

import yaml

from paraloom.models.embeddings.model import load_encoder
from paraloom.pipeline.config import read_config
from paraloom.pipeline.manifest import Manifest
from paraloom.pipeline.records import AutoSelectRecord, PairsRecord
from tests.run_helpers import Capsys, Patch, WriteConfig, again
from tests.sample import LABELLED, ROOT

CONFIG = ROOT / "configs" / "paranmt.yaml"


def test_it_is_the_recipe_of_the_paper(monkeypatch: Patch, tmp_path: Path) -> None:
    monkeypatch.setenv("PARALOOM_DATA", str(tmp_path))
    config = yaml.safe_load(CONFIG.read_text())
    sections = {name: config[name] for name in ("select", "embeddings")}
    assert sections["select"]["size"] == 5_000_000 and sections["select"]["max_tokens"] == 30
    auto = {"model": "lstm-avg", "pairs": 1_000_000, "seeds": 1, "best": 2, "like_embeddings": True}
    assert sections["select"]["auto"] == auto and config["nmt"]["beam"] == 12
    assert sections["select"]["labelled"].endswith("sts/2017")
    training = sections["embeddings"]
    assert (training["scramble"], training["mega_batch"], training["epochs"]) == (0.3, 40, 5)
    assert training["negatives"] == "both" and "paragram-sl999" in training["initial_vectors"]
    assert (training["batch_size"], training["margin"], training["learning_rate"]) == (
        *(100, 0.4, 0.001),
    )


def test_it_runs(a_run: Path, write_config: WriteConfig, capsys: Capsys) -> None:
    """With the paper's sections; only paths and sizes are those of the sample."""
    vectors = a_run / "vectors.txt"
    words = ("a", "the", "man", "woman", "in", "he", "she", ".")
    rows = (f"{word} {i % 3} {i % 2} {-i % 5} 1\n" for i, word in enumerate(words))
    vectors.write_text("".join(rows))
    recipe = yaml.safe_load(CONFIG.read_text())
    select, embeddings = recipe["select"], recipe["embeddings"]
    labelled = a_run / "labelled.tsv"
    labelled.write_text("".join(LABELLED.open().readlines()[:40]))
    select |= {"labelled": str(labelled), "size": 15}
    select["auto"] |= {"pairs": 30}
    embeddings |= {"initial_vectors": str(vectors), "dim": 4}
    score = {"scorers": recipe["score"]["scorers"], "paragram": str(vectors)}
    path = write_config(a_run, score=score, embeddings=embeddings)
    config = yaml.safe_load(path.read_text()) | {"select": select}
    path.write_text(yaml.safe_dump(config))

    assert again("train-embeddings", a_run) == 0, capsys.readouterr().err
    record = Manifest(read_config(path).run).record
    found = record.find(AutoSelectRecord, "choice")
    corpus = record.find(PairsRecord, "corpus")
    assert found is not None and len(found.chosen.deciles) == 2 and len(found.scores) == 3
    assert corpus is not None and corpus.rows_out == 15
    assert load_encoder(a_run / "run" / "embeddings").embed(["a man"]).shape == (1, 4)
    capsys.readouterr()
    assert again("train-embeddings", a_run) == 0
    assert "choice …" not in capsys.readouterr().err
