"""Compares an exported folder with the encoder: tokens and vectors of the same sentences."""

from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer
from torch.nn.functional import embedding_bag

from paraloom.models.embeddings.export.folder import WEIGHTS, read_tensors
from paraloom.models.embeddings.ragged_columns import RaggedIds

TOLERANCE = 1e-6  # of a component, for vectors whose components are at most 1
SENTENCES = 4000  # of the corpus
LONGEST = 10_000  # words

ODD = (
    *("", " ", "\t", ".", "...", "-", "--", "'", '"', "!?", "¿Qué?", "\u2028", "…", "a", "A."),
    "A dog runs.",
    "Mr. and Mrs. Smith met Dr. J. R. Brown at 5 p.m. on Jan. 3rd, No. 5, in the U.S. of A.",
    "I don't think it's John's; they'd've said 'no' in the '90s, or rock 'n' roll.",
    "\"Quotes,\" she said, “curly ones” and ‘single’, `back` and ``double''.",
    "1,000.5 km, 3-4, 10:30, 50%, $1,234,567.89, 1.2.3, v2.0, 3,a and ,5",
    "See http://a.b/c?d=1&e=2, www.example.com, me@example.org or C:\\file_name.txt",
    "😀 👍🏽 👨\u200d👩\u200d👧 🇨🇿 ❤️ great!!! :-) <3 #tag @name",
    "Žluťoučký kůň úpěl ďábelské ódy. İstanbul, ŒUVRE, STRASSE, straße, ǅ, ﬁ, Å, e\u0301",
    "Привет, мир. Γειά σου Κόσμε. 你好,世界。 こんにちは 안녕하세요 नमस्ते สวัสดี שלום مرحبا",
    "<unk> <s> </s> [UNK] [CLS] ##ing ▁word &amp; &#39; <b>bold</b> {x} | a|b",
    "one\u00a0two\u2003three\u200bfour\ufefffive\u0085six\x01seven\u00adeight",
    "wait...what.. no.... etc. Well-known -- and re-elected – or—so; e.g. this, i.e. that (p. 5).",
    "x" * 1000,
    "The cat sat on the mat, and the dog on the log. " * 8,
)
"""Sentences that tokenisers often see differently."""


class ExportCheck(NamedTuple):
    """How an exported folder agrees with the encoder."""

    exact: bool
    """Equal tokens, and vectors within `TOLERANCE`, of all sentences."""
    largest_difference: float
    """Between components of vectors."""
    equal_sentences: float
    """The share of sentences with equal tokens."""
    sentences: int


def sentences_of(texts: Iterable[pa.StringArray]) -> pa.StringArray:
    """`ODD`, one sentence of `LONGEST` words, and the first `SENTENCES` of the texts."""
    rows = (row for text in texts for row in text.drop_null().to_pylist())
    words = (f"{chr(97 + number % 26)}{number}" for number in range(LONGEST))
    return pa.array([*ODD, " ".join(words), *islice(rows, SENTENCES)], pa.string())


def compare(
    folder: Path, text: pa.StringArray, ids: RaggedIds, ours: NDArray[np.float32]
) -> ExportCheck:
    """Compare the ids and vectors of the sentences `text` with what the folder gives."""
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    found = [encoding.ids for encoding in tokenizer.encode_batch(text.to_pylist())]
    wanted = np.split(ids.ids, ids.offsets[1:-1])
    equal = [a == b.tolist() for a, b in zip(found, wanted, strict=True)]
    largest = float(np.abs(_static_embedding(folder, found) - ours).max(initial=0))
    exact = all(equal) and largest <= TOLERANCE * max(1.0, float(np.abs(ours).max(initial=0)))
    share = sum(equal) / len(equal)
    return ExportCheck(exact, float(f"{largest:.0e}"), share, len(equal))


def _static_embedding(folder: Path, ids: list[list[int]]) -> NDArray[np.float32]:
    """What `StaticEmbedding` computes; the package takes seconds to import."""
    (matrix,) = read_tensors(folder / WEIGHTS).values()
    flat = torch.tensor([number for row in ids for number in row], dtype=torch.long)
    offsets = torch.tensor(np.cumsum([0, *map(len, ids[:-1])]))
    return embedding_bag(flat, matrix, offsets, mode="mean").numpy()
