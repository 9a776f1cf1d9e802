"""The text form of a corpus, read back, has the pairs of the corpus."""

import gzip
import io
import itertools
from collections.abc import Sequence
from pathlib import Path

import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from paraloom.models.nmt.families.subwords import SentencePieces
from tests.run_helpers import Patch, WriteConfig, again, table

BREAKS = ("\n", "\t", "\r", "\0", "\x0b", "\x1c", "\x7f", "\x85", "\u2028", "\u2029")
Pair = tuple[str, str]


def read_tsv(path: Path) -> list[Pair]:
    """The pairs, read by two readers of lines."""
    data = gzip.decompress(path.read_bytes())
    parse = pacsv.ParseOptions(delimiter="\t", quote_char=False)
    read = pacsv.ReadOptions(column_names=["reference", "translation", "score"])
    columns = pacsv.read_csv(io.BytesIO(data), read, parse).to_pydict()
    rows = [line.split("\t") for line in data.decode().splitlines()]
    assert all(len(row) == 3 for row in rows)
    pairs = [(row[0], row[1]) for row in rows]
    assert pairs == list(zip(columns["reference"], columns["translation"], strict=True))
    return pairs


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
    rows = table(tmp_path, "corpus", "reference", "translation").to_pylist()
    pairs = [(row["reference"], row["translation"]) for row in rows]
    assert len(pairs) > 40
    assert read_tsv(run / "corpus.tsv.gz") == pairs
