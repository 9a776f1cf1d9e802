"""The corpus as text, in ParaNMT's release format."""

import gzip
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat

import pyarrow as pa
import pyarrow.compute as pc

from paraloom.beam_jobs import storage
from paraloom.beam_jobs.engine.shards import Receipt, Shard, read_shard


def tsv_path(output: str) -> str:
    """Path of the corpus in ParaNMT's release format."""
    return f"{output.rstrip('/')}.tsv.gz"


def tsv_state(path: str) -> str:
    """Size and final checksum of the TSV: they change if it is emptied, cut or zeroed. Raises a
    UserError if it is missing."""
    with storage.open_file(path) as stream:
        size = stream.seek(0, os.SEEK_END)
        stream.seek(max(size - 8, 0))
        return f"{size}-{stream.read(8).hex()}"


def export_tsv(receipts: Sequence[Receipt], path: str, score: str, threads: int = 1) -> None:
    """Write reference, translation and score, tab-separated, one pair per line, gzip.

    Each part file becomes one gzip member, so that several are compressed at once. Texts hold no
    tabs and line ends: `ingest` and the translators reject them.
    """
    shards = [shard for receipt in receipts for shard in receipt.shards if shard.rows]
    with ThreadPoolExecutor(threads) as pool, storage.writing(path) as stream:
        for at in range(0, len(shards), threads):
            for member in pool.map(_tsv_member, shards[at : at + threads], repeat(score)):
                stream.write(member)
        if not shards:
            stream.write(gzip.compress(b"", mtime=0))


def _tsv_member(shard: Shard, score: str) -> bytes:
    table = read_shard(shard, ["reference", "translation", score])
    values = table[score].cast(pa.string())
    lines = pc.binary_join_element_wise(table["reference"], table["translation"], values, "\t")
    lines = lines.combine_chunks()
    whole = pa.LargeListArray.from_arrays(pa.array([0, len(lines)], pa.int64()), lines)
    text = pc.binary_join(whole, "\n")[0].as_buffer()  # joins and compresses without the GIL
    return gzip.compress(text.to_pybytes() + b"\n", 6, mtime=0)
