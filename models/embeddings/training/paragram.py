"""PARAGRAM word vectors from phrase pairs: Word Avg with the margin loss (Wieting et al. 2016)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import torch

from models.embeddings.encoders import build_encoder, random_vectors, tables
from models.embeddings.options import ParagramOptions
from models.embeddings.training.data import Memory, learnable, stack
from models.embeddings.training.trainer import Trainer
from models.embeddings.vocabulary import Vocabulary
from models.errors import UserError
from models.files import opened
from models.text.vectors import write_vectors

Format = Literal["ppdb", "tsv", "lexicon"]

_ROWS = 20_000  # pairs tokenised at once


def train_paragram(
    phrases: Path | str,
    vectors: Path | str,
    options: ParagramOptions,
    *,
    seed: int,
    threads: int | None = None,
) -> dict[str, Any]:
    """Train word vectors on phrase pairs and write them in text form (`word v1 … vd`).

    Args:
        phrases: the pairs, plain or gzip; see `read_phrases`.
        vectors: the file to write; gzip if its name ends in .gz.
        options: how to train.
        seed: the same seed and phrases give the same vectors.
        threads: torch's threads; None leaves them as they are.

    Returns:
        pairs, identical, empty, steps, seconds, pairs_per_second, loss, words.

    Raises:
        UserError: the phrases cannot be read or give no pair, the vectors cannot be written.
    """
    if threads is not None:
        torch.set_num_threads(threads)
    columns = list(_columns(read_phrases(phrases, options.format)))
    words = Vocabulary.build(side for sides in columns for side in sides)
    pairs = stack([learnable(left, right, {"words": words}) for left, right in columns])
    if not len(pairs):
        raise UserError(f"{phrases}: no pair of different phrases to train on")
    chosen = options.training()
    encoder = build_encoder(chosen, {"words": random_vectors(len(words), options.dim, seed)})
    trainer = Trainer(encoder, Memory(pairs, str(phrases)), chosen, seed)
    trainer.fit()
    (table,) = tables(encoder).values()
    # Row 0 is the unknown word's: nothing was learnt for it, and readers of the file take zeros.
    write_vectors(vectors, words.words[1:], table.current().numpy()[1:])
    return {**trainer.metrics(), "words": len(words) - 1}


def read_phrases(
    path: Path | str, format: Literal["auto"] | Format = "auto"
) -> Iterator[tuple[str, str]]:
    """Pairs of phrases, one after the other.

    Formats, of which `auto` finds the right one by the first line:
        ppdb: fields between ` ||| `: phrase and paraphrase, behind the syntactic label (`[NP]`)
            that PPDB puts first; what follows is ignored.
        tsv: phrase and paraphrase between tabs; what follows is ignored.
        lexicon: a word and its paraphrases, all single words, between spaces.

    Raises:
        UserError: the file cannot be read, or a line does not have the format; names the line.
    """
    number = 0
    for number, line in enumerate(_lines(Path(path)), 1):
        line = line.strip(b" \r\n")  # what Unicode calls white space can be a word in PPDB
        if not line:
            continue
        try:
            text = line.decode()
        except UnicodeDecodeError as error:
            raise UserError(f"{path}: line {number} is not UTF-8") from error
        if format == "auto":
            format = "ppdb" if "|||" in text else "tsv" if "\t" in text else "lexicon"
        pairs = list(_parse(text, format))
        if not pairs or not all(left and right for left, right in pairs):
            raise UserError(f"{path}: line {number} holds no pair of phrases (format {format})")
        yield from pairs
    if number == 0:
        raise UserError(f"{path}: empty, no phrase pairs to train on")


def _columns(pairs: Iterator[tuple[str, str]]) -> Iterator[tuple[pa.StringArray, pa.StringArray]]:
    while rows := list(islice(pairs, _ROWS)):
        left, right = zip(*rows, strict=True)
        yield pa.array(left, pa.string()), pa.array(right, pa.string())


def _parse(text: str, format: Format) -> Iterable[tuple[str, str]]:
    if format == "lexicon":
        head, *paraphrases = text.split(" ")
        return [(head, paraphrase) for paraphrase in paraphrases if paraphrase]
    fields = [field.strip(" ") for field in text.split("|||" if format == "ppdb" else "\t")]
    if format == "ppdb" and fields[0].startswith("[") and fields[0].endswith("]"):
        fields = fields[1:]
    return [(fields[0], fields[1])] if len(fields) > 1 else []


def _lines(path: Path) -> Iterator[bytes]:
    with opened(path) as stream:
        yield from stream
