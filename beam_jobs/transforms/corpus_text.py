"""The corpus as text, in ParaNMT's release format."""

import gzip
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pyarrow as pa
import pyarrow.compute as pc

from paraloom.beam_jobs import storage
from paraloom.beam_jobs.engine.shards import Measurements, Receipt, read_shard

_TEXT = "_text"  # folder with each shard's compressed text, before the texts are joined


def tsv_path(output: str) -> str:
    """Return the path of the TSV file of a corpus."""
    return f"{output.rstrip('/')}.tsv.gz"


def tsv_state(path: str) -> str:
    """Return the size and the last 8 bytes of the TSV file, which reveal damage."""
    with storage.open_file(path) as stream:
        size = stream.seek(0, os.SEEK_END)
        stream.seek(max(size - 8, 0))
        return f"{size}-{stream.read(8).hex()}"


class TextMeasurements(Measurements):
    """The checksum of a shard's text."""

    text: str = ""


def write_member(output: str, name: str, table: pa.Table, score: str) -> TextMeasurements:
    """Write the text of a shard as a gzip member. The launcher appends it to the TSV file."""
    member = _member(table, score)
    storage.write_bytes(_path(output, name), member)
    return TextMeasurements(text=storage.digest(member))


def export_tsv(output: str, receipts: Sequence[Receipt], score: str, threads: int = 1) -> None:
    """Write the reference, translation and score of each pair into the compressed TSV file.

    The file consists of the gzip members of `write_member`. Missing or changed members are computed
    again. The texts contain no tabs or line ends.
    """

    def member(receipt: Receipt) -> bytes:
        with suppress(storage.MissingError):
            data = storage.read_bytes(_path(output, receipt.name))
            if storage.digest(data) == receipt.measured(TextMeasurements).text:
                return data
        return _member(read_shard(receipt.shards[0], ["reference", "translation", score]), score)

    filled = [receipt for receipt in receipts if receipt.rows_out]
    with ThreadPoolExecutor(threads) as pool, storage.writing(tsv_path(output)) as stream:
        for at in range(0, len(filled), threads):
            stream.writelines(pool.map(member, filled[at : at + threads]))
        if not filled:
            stream.write(gzip.compress(b"", mtime=0))
    storage.clear(storage.join(output, _TEXT))


def _path(output: str, name: str) -> str:
    return storage.join(output, _TEXT, f"{name}.gz")


def _member(table: pa.Table, score: str) -> bytes:
    values = table[score].cast(pa.string())
    lines = pc.binary_join_element_wise(table["reference"], table["translation"], values, "\t")
    lines = lines.combine_chunks()
    whole = pa.LargeListArray.from_arrays(pa.array([0, len(lines)], pa.int64()), lines)
    text = pc.binary_join(whole, "\n")[0].as_buffer()  # releases the GIL, as gzip does
    return gzip.compress(text.to_pybytes() + b"\n", 6, mtime=0)
