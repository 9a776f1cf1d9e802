"""configs/paranmt.yaml, on some pairs of the sample."""

from pathlib import Path

import yaml

from tests.run_helpers import Patch
from tests.sample import ROOT

CONFIG = ROOT / "configs" / "paranmt.yaml"


def test_it_is_the_recipe_of_the_paper(monkeypatch: Patch, tmp_path: Path) -> None:
    monkeypatch.setenv("PARALOOM_DATA", str(tmp_path))
    config = yaml.safe_load(CONFIG.read_text())
    sections = {name: config[name] for name in ("select", "embeddings")}
    assert sections["select"]["size"] == 5_000_000 and sections["select"]["max_tokens"] == 30
    auto = {"model": "lstm-avg", "pairs": 1_000_000, "seeds": 1, "score": "paragram_similarity"}
    assert sections["select"]["auto"] == auto and config["nmt"]["beam"] == 12
    assert sections["select"]["labelled"].endswith("sts/2017")
    training = sections["embeddings"]
    assert (training["scramble"], training["mega_batch"], training["epochs"]) == (0.3, 40, 5)
    assert training["negatives"] == "both" and "paragram-sl999" in training["initial_vectors"]
    assert (training["batch_size"], training["margin"], training["learning_rate"]) == (
        *(100, 0.4, 0.001),
    )
