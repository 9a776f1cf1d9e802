"""The sample in `pipeline/sample` as input of tests: all of it, or its first rows."""

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
SAMPLE = ROOT / "pipeline" / "sample"
PHRASES = SAMPLE / "phrases.tsv.gz"
SIMILARITY = SAMPLE / "similarity"
LABELLED = SIMILARITY / "sample" / "development.tsv"


def sample_config(**changes: Any) -> dict[str, Any]:
    """`configs/sample.yaml` with absolute paths; `changes` replace whole sections."""
    text = (ROOT / "configs" / "sample.yaml").read_text("utf-8")
    absolute = text.replace("pipeline/sample/", f"{SAMPLE}/")
    return {**yaml.safe_load(absolute), **changes}


def sample_rows() -> Iterator[bytes]:
    """The rows of the corpus as they stand in its files, without the line breaks."""
    for path in sorted(SAMPLE.glob("czeng16/*.gz")):
        with gzip.open(path) as lines:
            yield from (line.rstrip(b"\n") for line in lines)
