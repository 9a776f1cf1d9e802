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

from paraloom.models.embeddings.export.folder import read_tensors
from paraloom.models.embeddings.export.layout import Layout
from paraloom.models.embeddings.ragged_columns import RaggedIds

TOLERANCE = 1e-6  # of a component, for vectors whose components are at most 1
SENTENCES = 4000  # of the corpus

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


class Agreement(NamedTuple):
    """How an exported folder agrees with the encoder."""

    exact: bool
    """Equal tokens, and vectors within `TOLERANCE`, of all sentences."""
    largest_difference: float
    """Between components of vectors, where both are finite."""
    not_finite: int
    """Sentences with a component there that is not finite."""
    equal_sentences: float
    """The share of sentences with equal tokens."""
    sentences: int


def sentences_of(texts: Iterable[pa.StringArray], *, longest: int) -> pa.StringArray:
    """`ODD`, one sentence of `longest` words, and the first `SENTENCES` of the texts."""
    rows = (row for text in texts for row in text.drop_null().to_pylist())
    words = (f"{chr(97 + number % 26)}{number}" for number in range(longest))
    return pa.array([*ODD, " ".join(words), *islice(rows, SENTENCES)], pa.string())


def agreement(
    folder: Path, layout: Layout, text: pa.StringArray, ids: RaggedIds, ours: NDArray[np.float32]
) -> Agreement:
    """Compare the ids and vectors of the sentences `text` with those of the folder."""
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    found = [encoding.ids for encoding in tokenizer.encode_batch(text.to_pylist())]
    wanted = np.split(ids.ids, ids.offsets[1:-1])
    equal = [a == b.tolist() for a, b in zip(found, wanted, strict=True)]
    theirs = _static(folder, layout, found) if len(layout.modules) == 1 else _modules(folder, found)
    difference = np.abs(theirs - ours)
    finite = np.isfinite(difference)
    largest = float(difference[finite].max(initial=0))
    scale = max(1.0, float(np.abs(ours[np.isfinite(ours)]).max(initial=0)))
    exact = all(equal) and bool(finite.all()) and largest <= TOLERANCE * scale
    not_finite = int((~finite).any(axis=1).sum())
    share = sum(equal) / len(equal)
    return Agreement(exact, float(f"{largest:.0e}"), not_finite, share, len(equal))


def _static(folder: Path, layout: Layout, ids: list[list[int]]) -> NDArray[np.float32]:
    """What `StaticEmbedding` computes; the package takes seconds to import."""
    (file,) = layout.weights
    (matrix,) = read_tensors(folder / file).values()
    flat = torch.tensor([number for row in ids for number in row], dtype=torch.long)
    offsets = torch.tensor(np.cumsum([0, *map(len, ids[:-1])]))
    return embedding_bag(flat, matrix, offsets, mode="mean").numpy()


def _modules(folder: Path, ids: list[list[int]]) -> NDArray[np.float32]:
    """The vectors of WordEmbeddings, LSTM and Pooling."""
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    vectors = np.empty((len(ids), model.get_embedding_dimension() or 0), np.float32)
    order = sorted(range(len(ids)), key=lambda row: len(ids[row]))
    for start in range(0, len(order), 64):
        rows = order[start : start + 64]
        lengths = torch.tensor([len(ids[row]) for row in rows])
        padded = torch.zeros(len(rows), max(1, int(lengths.max())), dtype=torch.long)
        for line, row in zip(padded, rows, strict=True):
            line[: len(ids[row])] = torch.tensor(ids[row], dtype=torch.long)
        mask = (torch.arange(padded.shape[1]) < lengths[:, None]).long()
        features = {"input_ids": padded, "attention_mask": mask, "sentence_lengths": lengths}
        with torch.inference_mode():
            vectors[rows] = model(features)["sentence_embedding"].numpy()
    return vectors
