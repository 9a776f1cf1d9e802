"""The sample in `pipeline/sample` as input of tests: all of it, or its first rows."""

import gzip
import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("PARALOOM_DATA", ROOT.parent / "shared" / "data"))
"""The folder of real corpora, which may be missing (see `real_data`)."""
HOW_TO_GET_DATA = "PARALOOM_DATA to a folder of corpora (CONTRIBUTING.md, Tests)"
SAMPLE = ROOT / "pipeline" / "sample"
MODEL = SAMPLE / "cs-en"
"""A small translation model. Do not change it."""
PHRASES = SAMPLE / "phrases.tsv.gz"
SIMILARITY = SAMPLE / "similarity"
LABELLED = SIMILARITY / "sample" / "development.tsv"

ODD = (
    "{}.", "{} !!!", '"{}," he said.', "{}... {}", "( {} )", "{1}", "  {}\u00a0: ok", "`{}'",
    "I don't think {0}; it's 1,000.5 km", "* {} -- see http://a.b/c?d=1 & e@f.cz",
    "{} – žluťoučký kůň…", "Mr. K.: {}?",
)  # fmt: skip


def real_data(path: Path) -> Path:
    """Return a path of real data, or skip the test if the path does not exist."""
    if not path.exists():
        pytest.skip(f"no {path}: set {HOW_TO_GET_DATA}")
    return path


def sample_config(**changes: Any) -> dict[str, Any]:
    """Return the sample's configuration with absolute paths. `changes` replace sections."""
    text = (SAMPLE / "sample.yaml").read_text("utf-8")
    absolute = text.replace("${PARALOOM_SAMPLE}", str(SAMPLE))
    return {**yaml.safe_load(absolute), **changes}


def write_small_sample(folder: Path, rows: int, updates: int) -> None:
    """Write `sample.tsv` (the first rows) and `config.yaml` for a small run in `local`."""
    (folder / "sample.tsv").write_bytes(b"\n".join(islice(sample_rows(), rows)))
    config = sample_config(run="local", embeddings={"dim": 50, "epochs": 1})
    config["input"] |= {"paths": ["sample.tsv"], "shard_rows": 200}
    small = {"pieces": 600, "encoder_layers": 1, "dim": 64, "ffn": 128}
    small |= {"updates": updates, "warmup": updates // 3}
    config["nmt"] = {"beam": 4, "training": {**config["nmt"]["training"], **small}}
    config["score"]["training"] = {"dim": 50, "epochs": 1}
    config["score"]["scorers"] = ["translation_score", "paragram_similarity", "mean_idf"]
    config["select"] |= {"by": "paragram_similarity", "where": []}  # the model translates badly
    (folder / "config.yaml").write_text(yaml.safe_dump(config))


def english_sentences(count: int) -> list[str]:
    """Return the English sides of the first sound rows."""
    cells = (row.decode(errors="replace").split("\t") for row in sample_rows())
    sound = (row[3] for row in cells if len(row) == 4 and row[3].isprintable() and row[3].strip())
    return list(islice(sound, count))


def odd_sentences(count: int) -> list[str]:
    """Return English sentences with the odd spelling and punctuation of text from the web."""
    return [
        ODD[number % len(ODD)].format(text[:-1], text.upper())
        for number, text in enumerate(english_sentences(count))
    ]


def sample_rows() -> Iterator[bytes]:
    """Yield the unchanged rows of the corpus, without line breaks."""
    for path in sorted(SAMPLE.glob("czeng16/*.gz")):
        with gzip.open(path) as lines:
            yield from (line.rstrip(b"\n") for line in lines)
