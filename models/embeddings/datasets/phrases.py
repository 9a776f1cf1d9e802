"""Reader of phrase pairs."""

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

import pyarrow as pa

from paraloom.models.embeddings.datasets.lines import numbered_lines
from paraloom.models.errors import UserError

_ROWS = 20_000  # pairs per block


def read_phrases(path: Path | str) -> Iterator[tuple[str, str]]:
    """Yield the phrase pairs of a file. The first line with text decides the format:

    - ppdb: an optional syntactic label (`[NP]`), a phrase and its paraphrase, separated by ` ||| `.
    - tsv: a phrase and its paraphrase, separated by a tab. Further fields are ignored, as in ppdb.
    - lexicon: a word and its paraphrases, which are single words, separated by spaces.
    """
    format = ""
    for number, line in numbered_lines(Path(path)):
        text = line.strip(" \r\n")  # in PPDB, other Unicode white space can be a word
        if not text:
            continue
        if not format:
            format = "ppdb" if "|||" in text else "tsv" if "\t" in text else "lexicon"
        pairs = list(_parse(text, format))
        if not pairs or not all(left and right for left, right in pairs):
            raise UserError(f"{path}: line {number} has no pair of phrases (format {format})")
        yield from pairs
    if not format:
        raise UserError(f"{path}: empty, no phrase pairs")


def _parse(text: str, format: str) -> Iterable[tuple[str, str]]:
    if format == "lexicon":
        head, *paraphrases = text.split(" ")
        return [(head, paraphrase) for paraphrase in paraphrases if paraphrase]
    fields = [field.strip(" ") for field in text.split("|||" if format == "ppdb" else "\t")]
    if format == "ppdb" and fields[0].startswith("[") and fields[0].endswith("]"):
        fields = fields[1:]
    return [(fields[0], fields[1])] if len(fields) > 1 else []


def phrase_blocks(path: Path | str) -> Iterator[tuple[pa.StringArray, pa.StringArray]]:
    """Yield blocks of phrase pairs, each as an array of phrases and an array of paraphrases."""
    pairs = read_phrases(path)
    while rows := list(islice(pairs, _ROWS)):
        left, right = zip(*rows, strict=True)
        yield pa.array(left, pa.string()), pa.array(right, pa.string())
