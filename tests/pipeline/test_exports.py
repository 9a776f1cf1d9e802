"""The text form of a corpus, read back, has the pairs of the corpus."""

import gzip
import itertools
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from paraloom.models.nmt.families.subwords import SentencePieces
from tests.run_helpers import Patch, WriteConfig, again, table

BREAKS = ("\n", "\t", "\r", "\0", "\x0b", "\x1c", "\x7f", "\x85", "\u2028", "\u2029")


def test_a_model_that_writes_control_characters(
    write_config: WriteConfig, tmp_path: Path, monkeypatch: Patch
) -> None:
    calls = itertools.count()
    decode = SentencePieces.decode

    def with_breaks(self: SentencePieces, pieces: Sequence[str]) -> str:
        text, call = decode(self, pieces), next(calls)
        return f"{text}{BREAKS[call // 5 % len(BREAKS)]}{text}" if call % 5 == 0 else text

    monkeypatch.setattr(SentencePieces, "decode", with_breaks)
    write_config(tmp_path, select={"deciles": None})
    assert again("select", tmp_path) == 0
    run = tmp_path / "run"
    rejected = pq.read_table(run / "back_translate" / "_rejected")["reason"].to_pylist()
    named = {reason.split(" in translation")[0] for reason in rejected if "U+" in reason}
    assert {int(name.split("U+")[1], 16) for name in named} == set(map(ord, BREAKS))
    rows = table(tmp_path, "corpus", "reference", "translation", "trigram_overlap").to_pylist()
    lines = gzip.decompress((run / "corpus.tsv.gz").read_bytes()).decode().splitlines()
    cells = (line.split("\t") for line in lines)
    found = [(one, other, np.float32(score)) for one, other, score in cells]
    assert found == [tuple(row.values()) for row in rows]
    assert len(rows) > 40
