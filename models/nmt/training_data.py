"""Training data for fairseq: held-out pairs, subwords and dictionaries."""

import hashlib
import heapq
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from sentencepiece import SentencePieceProcessor, SentencePieceTrainer

from paraloom.models.errors import UserError, in_one_line, one_line
from paraloom.models.nmt.families.fairseq import SENTENCEPIECE
from paraloom.models.nmt.options import NmtTrainingOptions

_COLUMNS = ["id", "source", "reference"]
_LONGEST = 200  # subwords per side; longer sides are rarely translations of each other
_SENTENCES_FOR_PIECES = 1_000_000  # maximum number of sentences on which SentencePiece is trained


@dataclass(frozen=True)
class HeldOut:
    """Held-out pairs. Pairs that share a sentence with held-out pairs are not used for training."""

    sources: list[str]
    references: list[str]


def hold_out(pairs: Sequence[Path], size: int) -> HeldOut:
    """Select up to `size` pairs, but at most a tenth of all pairs, by the hashes of their ids.

    The order of the pairs does not matter. No sentence occurs in two selected pairs.
    """
    rows = sum(batch.num_rows for batch in _batches(pairs))
    size = min(size, rows // 10)
    if size < 2:
        raise UserError(f"nmt.training: {rows} pairs are too few; training needs at least 20")
    smallest: list[tuple[bytes, str, str]] = []
    for batch in _batches(pairs):
        ids, sources, references = (batch[name].to_pylist() for name in _COLUMNS)
        hashes = (hashlib.blake2b(row.encode(), digest_size=8).digest() for row in ids)
        candidates = zip(hashes, sources, references, strict=True)
        smallest = heapq.nsmallest(4 * size, [*smallest, *candidates])
    chosen: dict[str, str] = {}
    seen: set[str] = set()
    for _, source, reference in smallest:
        keys = {_normal(source), _normal(reference)}
        if len(chosen) < size and not keys & seen:
            chosen[source] = reference
            seen |= keys
    return HeldOut(list(chosen), list(chosen.values()))


def prepare(
    pairs: Sequence[Path],
    held_out: HeldOut,
    out: Path,
    options: NmtTrainingOptions,
    languages: tuple[str, str],
) -> int:
    """Write the files for fairseq into the folder `out`. Return the number of training pairs."""
    texts = (out / "source.txt", out / "reference.txt")
    write_text(pairs, held_out, *texts)
    subwords = train_subwords(texts, out, options)
    train = (out / f"train.{languages[0]}", out / f"train.{languages[1]}")
    count = write_pieces(subwords, texts, train, options.batch_tokens)
    for language in languages:
        write_dictionary(subwords, out / f"dict.{language}.txt")
    return count


def write_text(pairs: Sequence[Path], held_out: HeldOut, source: Path, reference: Path) -> int:
    """Write the training pairs as text, a sentence per line. Return the number of pairs."""
    sources = pa.array(map(_normal, held_out.sources), pa.string())
    references = pa.array(map(_normal, held_out.references), pa.string())
    count = 0
    with source.open("w", encoding="utf-8") as left, reference.open("w", encoding="utf-8") as right:
        for batch in _batches(pairs):
            leak = pc.or_(
                pc.is_in(_normal_column(batch["source"]), value_set=sources),
                pc.is_in(_normal_column(batch["reference"]), value_set=references),
            )
            rest = batch.filter(pc.invert(leak))
            count += rest.num_rows
            for column, stream in (("source", left), ("reference", right)):
                lines = pc.replace_substring_regex(rest[column], r"\s+", " ").to_pylist()
                stream.writelines(f"{line}\n" for line in lines)
    if not count:
        raise UserError(f"{pairs[0]}: no pairs are left to train on besides the held-out pairs")
    return count


def train_subwords(
    texts: Sequence[Path], folder: Path, options: NmtTrainingOptions
) -> SentencePieceProcessor:
    """Train one SentencePiece model (BPE) on all texts, or on every k-th line of large texts. On
    small texts, the model has fewer pieces than `options.pieces`."""
    pieces, path = options.pieces, folder / SENTENCEPIECE
    # If SentencePiece read the files, it would draw random lines, and store paths and thread count.
    step = -(-sum(1 for _ in _lines(texts)) // _SENTENCES_FOR_PIECES)
    while True:
        try:
            with path.open("wb") as model:
                SentencePieceTrainer.train(
                    sentence_iterator=islice(_lines(texts), None, None, step),
                    model_writer=model,
                    model_type="bpe",
                    vocab_size=pieces,
                    character_coverage=1.0,
                    minloglevel=2,
                )
            return SentencePieceProcessor(model_file=str(path))
        except RuntimeError as error:
            if "too high" not in str(error) or pieces < 100:
                raise UserError(
                    f"nmt.training.pieces: SentencePiece cannot learn {pieces} pieces "
                    f"({one_line(error)})"
                ) from error
            pieces = pieces * 3 // 4


def _lines(texts: Sequence[Path]) -> Iterator[str]:
    for text in texts:
        with text.open(encoding="utf-8") as lines:
            yield from (line.rstrip("\n") for line in lines)


def write_pieces(
    subwords: SentencePieceProcessor, texts: tuple[Path, Path], out: tuple[Path, Path], longest: int
) -> int:
    """Write texts as subwords, without empty and overlong pairs. Return the number of pairs."""
    longest = min(longest, _LONGEST)
    count = 0
    with ExitStack() as stack:
        lines = [stack.enter_context(path.open(encoding="utf-8")) for path in texts]
        streams = [stack.enter_context(path.open("w", encoding="utf-8")) for path in out]
        for pair in zip(*lines, strict=True):
            sides = subwords.encode([side.rstrip("\n") for side in pair], out_type=str)
            if all(0 < len(side) < longest for side in sides):
                count += 1
                for side, stream in zip(sides, streams, strict=True):
                    stream.write(" ".join(side) + "\n")
    if not count:
        raise UserError(f"nmt.training: no pair has fewer than {longest} subwords on each side")
    return count


def write_dictionary(subwords: SentencePieceProcessor, path: Path) -> None:
    """Write the pieces as a fairseq dictionary, without the special symbols that fairseq adds."""
    pieces = (
        subwords.id_to_piece(index)
        for index in range(subwords.get_piece_size())
        if not (subwords.is_control(index) or subwords.is_unknown(index))
    )
    path.write_text("".join(f"{piece} 1\n" for piece in pieces), encoding="utf-8")


def _batches(pairs: Sequence[Path]) -> Iterator[pa.RecordBatch]:
    for path in pairs:
        with in_one_line(f"{path}: cannot be read"), pq.ParquetFile(path) as file:
            yield from file.iter_batches(columns=_COLUMNS)


def _normal(text: str) -> str:
    return str(_normal_column(pa.array([text]))[0])


def _normal_column(column: pa.Array) -> pa.Array:
    return pc.utf8_trim_whitespace(pc.replace_substring_regex(pc.utf8_lower(column), r"\s+", " "))
