"""`paraloom mine`: finds paraphrases among the sentences of one language."""

import gzip
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import typer

from paraloom.beam_jobs import storage
from paraloom.beam_jobs.bitext import Bitext, find_bitext, read_bitext
from paraloom.beam_jobs.transforms.equal_texts import normalised, repeated, row_hash
from paraloom.models.errors import UserError
from paraloom.models.files import check_writable
from paraloom.models.printing import show
from paraloom.models.progress import meter
from paraloom.pipeline.commands.options import JsonFile, argument, check_apart, option, write_json
from paraloom.pipeline.config.input import MAX_CHARACTERS

_ROWS = 8192
_SEED = 1
_PAIRS = pa.schema(
    [(name, pa.string()) for name in ("reference", "translation")]
    + [(name, pa.float32()) for name in ("margin", "cosine")]
)


@dataclass
class Mining:
    """The JSON form of `paraloom mine`."""

    sentences: int  # number of usable lines
    distinct: int  # number of distinct sentences
    pairs: int
    rejected: dict[str, int]  # unusable lines by reason
    seconds: float


def command(
    files: Annotated[list[str], argument("FILE…", "Files or globs. Each line is a sentence.")],
    model: Annotated[str, option("DIR", "An encoder or a sentence-transformers model.")],
    output: Annotated[
        str, option("FILE", "Parquet file (*.parquet), compressed text (*.gz) or text.")
    ] = "mined.parquet",
    k: Annotated[int, typer.Option(min=1, max=32, help="Number of neighbours per sentence.")] = 4,
    margin: Annotated[
        float,
        typer.Option(
            min=0,
            help="Minimum ratio margin: the cosine of a pair, divided by the mean cosine of its "
            "sentences with their nearest neighbours. A higher minimum keeps fewer, better pairs.",
        ),
    ] = 1.2,
    json: JsonFile = None,
) -> None:
    """Lines that differ only in case and punctuation count as one sentence.

    A configuration with `input.format: pairs` makes a corpus from the output. Temporary files are
    written to the folder of the output, or to TMPDIR if the output is in an object store.
    """
    from paraloom.models.embeddings.applications.hard_negatives import Neighbours, write_vectors
    from paraloom.models.embeddings.applications.mining import mine, write_texts
    from paraloom.models.embeddings.applications.opened import open_model

    check_apart(json, output, "--output")
    local = None if storage.is_remote(output) else Path(output)
    if local:
        check_writable(local)
    bitexts = find_bitext("text", files)
    if local and local.resolve() in {Path(of.paths[0]).resolve() for of in bitexts}:
        raise UserError(f"--output {output}: is also an input file; name another file")
    opened, started = open_model(model), time.monotonic()
    rejected = Counter[str]()
    hashes = [row_hash(normalised(text)) for text in _sentences(bitexts, rejected)]
    rows = np.arange(sum(map(len, hashes)))
    kept = ~repeated(np.concatenate(hashes), np.zeros_like(rows), rows)
    del hashes
    unused = ", ".join(f"{count:,} {why}" for why, count in rejected.most_common())
    unused = unused and f"; left out: {unused}"
    if (n := int(kept.sum())) < 2:
        some = f"{n} distinct sentence{'s' * (n != 1)}"
        raise UserError(f"{files[0]}: {some}; give two or more{unused}")
    with tempfile.TemporaryDirectory(".tmp", "mine-", local and local.absolute().parent) as folder:
        work = Path(folder)
        texts = write_texts(work / "texts", _kept(bitexts, kept))
        with meter("embed", n, "sentences") as progress:

            def blocks() -> Iterator[pa.StringArray]:
                for at in range(0, n, _ROWS):
                    # `slice` would keep an offset, with which Arrow's kernels fail after a cast.
                    yield texts.take(pa.array(np.arange(at, min(at + _ROWS, n)))).cast(pa.string())
                    progress.set(min(at + _ROWS, n))

            vectors = write_vectors(work / "vectors", opened.evaluated.embed, blocks())
        with meter("find pairs", n, "sentences") as progress:
            index = Neighbours(vectors, _SEED, work / "index")
            found = mine(vectors, index, work, k=k, least=margin, tell=progress.set)
        with meter("write", len(found.first), "pairs") as progress, ExitStack() as stack:
            stream: Any = stack.enter_context(storage.writing(output))
            if parquet := output.endswith(".parquet"):
                writer = stack.enter_context(pq.ParquetWriter(stream, _PAIRS, compression="zstd"))
            elif output.endswith(".gz"):
                stream = stack.enter_context(gzip.GzipFile("", "wb", 6, stream, mtime=0))
            for at in range(0, len(found.first), _ROWS):
                first, second, *values = (pa.array(of[at : at + _ROWS]) for of in found)
                sides = [texts.take(side).cast(pa.string()) for side in (first, second)]
                if parquet:
                    writer.write_table(pa.table([*sides, *values], schema=_PAIRS))
                else:
                    text = pa.array([f"{of:.4f}" for of in values[0].to_pylist()])
                    lines = pc.binary_join_element_wise(text, *sides, "\t")
                    stream.write("".join(f"{line}\n" for line in lines.to_pylist()).encode())
                progress.set(at + len(first))
    seconds = time.monotonic() - started
    write_json(json, Mining(len(rows), n, len(found.first), dict(rejected), seconds))
    pairs = f"{output}: {len(found.first):,} pair{'s' * (len(found.first) != 1)}"
    show(f"{pairs} of {n:,} distinct sentences ({len(rows):,} lines{unused})")


def _sentences(bitexts: list[Bitext], rejected: Counter[str]) -> Iterator[pa.StringArray]:
    done = 0
    with meter("read", unit="sentences") as progress:
        for bitext in bitexts:
            for block in read_bitext(bitext, rows=_ROWS, max_characters=MAX_CHARACTERS):
                why = pc.replace_substring(block.rejected["reason"], " in reference", "")
                why = pc.replace_substring(why, "reference", "line")
                rejected.update(why.to_pylist())
                yield block.pairs["reference"]
                done += len(block.pairs)
                progress.set(done)


def _kept(bitexts: list[Bitext], kept: np.ndarray) -> Iterator[pa.StringArray]:
    at = 0
    for block in _sentences(bitexts, Counter()):
        yield block.filter(pa.array(kept[at : at + len(block)]))
        at += len(block)
