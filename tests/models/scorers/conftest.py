import csv
import gzip
from itertools import pairwise

import numpy as np
import pytest


@pytest.fixture(scope="module")
def pairs(data):
    """Real pairs: paraphrases, and captions against others and against themselves, damaged."""
    with (data / "mrpc/msr-para-train.tsv").open(encoding="utf-8-sig", newline="") as stream:
        rows = [tuple(r[3:5]) for r in csv.reader(stream, delimiter="\t", quoting=csv.QUOTE_NONE)]
    captions = gzip.decompress((data / "multi30k/train.en.gz").read_bytes()).decode().splitlines()
    rng = np.random.default_rng(1)
    for caption, other in pairwise(captions[:3000]):
        words = np.array(caption.split())
        kept = words[rng.random(len(words)) < 0.8]
        rows += [
            (caption, other),
            (caption, " ".join(kept)),
            (caption, " ".join(rng.permutation(words))),
        ]
    return rows[1:]
