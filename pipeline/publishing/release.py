"""Makes a release: a folder with the corpus, its card, its provenance and checksums."""

import json
import math
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel

from paraloom.beam_jobs.io import storage
from paraloom.beam_jobs.io.shards import Shard, read_shard, read_whole, receipts
from paraloom.models.errors import UserError
from paraloom.models.files import atomic_folder, lock, open_lock
from paraloom.models.licenses import HUB_LICENSES, license_name
from paraloom.models.structured import parse_json
from paraloom.pipeline.cards.data_card import data_card
from paraloom.pipeline.cards.data_card_metadata import Release
from paraloom.pipeline.manifest import Manifest
from paraloom.pipeline.publishing.check import check_card, check_rows
from paraloom.pipeline.publishing.files import FOLDERS, write_configurations
from paraloom.pipeline.publishing.provenance import (
    SUMS,
    check_no_traces,
    first_change,
    public,
    read_sums,
    write_sums,
)
from paraloom.pipeline.records import PairsRecord, RunRecord
from paraloom.pipeline.report.final_view import check_current, current

VERSION = 2
"""Bump when `ABOUT` has other keys."""

ABOUT = "provenance/release.json"
"""The file that tells a release from other folders."""

LICENSE = "LICENSE"


class _UpToDateError(Exception):
    """The release that is there is equal to the one that was made."""


class _About(BaseModel):
    """What every version writes into `ABOUT`."""

    format: int
    splits: dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseOptions:
    """What a user says of a release.

    Attributes:
        held_out: share of the references in the split `test`, or from 1 on a number of rows.
        license: None takes `input.license` of the run.
        license_link: a file or an address; for a licence that is not on the Hub's list.
        repo: on the Hub, as `owner/name`.
    """

    held_out: float = 0.01
    license: str | None = None
    license_link: str | None = None
    repo: str | None = None


def make_release(run: str, out: Path, options: ReleaseOptions) -> bool:
    """Make the release of a run's corpus in the folder `out`; an equal one that is there stays.

    Returns:
        whether it is another one than was there.
    """
    record, out = public(finished_record(run)), out.resolve()
    shards = [s for r in receipts(storage.join(run, "corpus")) for s in r.shards if s.rows]
    rows = sum(shard.rows for shard in shards)
    corpus = record.find(PairsRecord, "corpus")
    if corpus is None or not rows:
        raise UserError(f"{run}: its corpus is empty; look at `paraloom status {run}`")
    if rows != corpus.rows_out:
        raise UserError(
            f"{run}: the corpus has {rows:,} rows, its manifest says {corpus.rows_out:,}; "
            "run `paraloom corpus` with its configuration again"
        )
    license, link = _license(run, record, options)
    share = _share(options.held_out, rows)
    there = _check_replaceable(out) if out.exists() else None
    remove_temporary(out)
    # A run from elsewhere may hold a release that claims anything: only one made again tells.
    with suppress(_UpToDateError), atomic_folder(out) as folder:
        columns = _columns(shards[0])
        tables = _read(shards, columns)
        found, total = write_configurations(folder, tables, columns, share, record.config.seed)
        release = Release(
            license=license,
            license_link=link,
            repo=options.repo,
            seed=record.config.seed,
            configurations=found,
        )
        _check_splits(release, share, rows)
        if link == LICENSE and options.license_link:
            shutil.copyfile(options.license_link, folder / LICENSE)
        card = data_card(record, sum(split.size for split in release.splits), release)
        _write_texts(folder, release, record, card, {"held_out": share, "rows": rows})
        check_card(card)
        check_rows(folder, release, share, rows, total)
        if write_sums(folder) == there:
            raise _UpToDateError
        return True
    return False


@contextmanager
def alone(out: Path) -> Iterator[None]:
    """Keep a second process away from the folder of a release, and from what it is made in.

    The lock is a file beside the folder, which is replaced as a whole; it is removed at the end.
    """
    out = out.resolve()
    path = out.parent / f".{out.name}.lock"
    with open_lock(path) as stream:
        try:
            lock(stream, path, wait=False)
            mine = os.path.samestat(os.fstat(stream.fileno()), path.stat())
        except (BlockingIOError, FileNotFoundError):
            mine = False
        if not mine:  # or it is of a process that has just ended, and removed it
            raise UserError(f"{out}: another paraloom publish is at work here; wait until it ends")
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def finished_record(run: str) -> RunRecord:
    """The manifest of a run with a corpus, without the stages of earlier configurations."""
    record = Manifest(run).record
    check_current(run, record, "corpus", "select")
    if "corpus" not in (found := current(record)).stages:
        raise UserError(
            f"{run}: no run here that has a corpus; `paraloom corpus` or `paraloom select` makes it"
        )
    return found


def remove_temporary(out: Path) -> None:
    """Remove what a killed process left of a release (`paraloom.models.files.atomic_folder`)."""
    name = re.compile(rf"\.{re.escape(out.name)}\.(old\.)?[a-z0-9_]{{8}}")
    known = {*FOLDERS, "provenance", "README.md", LICENSE, SUMS, out.name}
    for path in out.parent.iterdir() if out.parent.is_dir() else ():
        if (
            name.fullmatch(path.name)
            and path.is_dir()
            and {p.name for p in path.iterdir()} <= known
        ):
            shutil.rmtree(path, ignore_errors=True)


def _license(run: str, record: RunRecord, options: ReleaseOptions) -> tuple[str, str | None]:
    """The licence in the user's words, and the link to it that the card has."""
    source = record.config.input
    license = " ".join((options.license or (source.license if source else None) or "").split())
    name = license_name(license)
    if not name:
        raise UserError(
            f"{run}: input.license is not set; say under which licence the corpus may be published "
            "with --license, such as --license cc-by-4.0"
        )
    link = options.license_link
    if name in HUB_LICENSES:
        if link:
            raise UserError(f"--license-link: {name} is on the Hub's list and needs no link")
        return license, None
    if not link:
        raise UserError(
            f"the licence {license!r} is not on the Hub's list "
            "(https://huggingface.co/docs/hub/repositories-licenses); choose one with --license, "
            "or give the address or the file of its text with --license-link"
        )
    if re.fullmatch(r"https?://[^\s<>\"\\|@]+", link):
        return license, link
    try:
        Path(link).open("rb").close()
    except (OSError, ValueError) as error:
        raise UserError(
            f"--license-link: {link} is no file and no address (https://…): "
            f"{getattr(error, 'strerror', None) or error}"
        ) from error
    return license, LICENSE


def _share(held_out: float, rows: int) -> float:
    if not math.isfinite(held_out) or held_out < 0 or held_out >= rows:
        raise UserError(
            f"--held-out: must be a share below 1, or a number of rows below the {rows:,} of the "
            f"corpus, not {held_out:g}"
        )
    return held_out if held_out < 1 else held_out / rows


def _check_splits(release: Release, share: float, rows: int) -> None:
    if len(release.splits) < (2 if share else 1):
        (split,) = release.splits
        raise UserError(
            f"--held-out: all {rows:,} rows are in the split {split.name}; hold out more or fewer "
            "(0: no split test)"
        )


def _check_replaceable(out: Path) -> str | None:
    """The checksums of the release in a folder, None if the folder is empty."""
    if out.is_dir() and not any(out.iterdir()):
        return None
    try:
        parse_json((out / ABOUT).read_bytes(), _About)
    except (OSError, ValueError) as error:
        raise UserError(
            f"{out}: exists and is no release; name another folder with --out"
        ) from error
    if changed := first_change(out):
        raise UserError(
            f"{out}/{changed}: is not as `paraloom publish` wrote it; move the folder away, or "
            "name another one with --out"
        )
    return read_sums(out)


def _columns(shard: Shard) -> pa.Schema:
    """The columns of a part file, which all others have, too; errors as `read_shard`."""
    read_shard(shard, ["id", "reference", "translation"])  # a release cannot be without
    with pq.ParquetFile(pa.BufferReader(read_whole(shard))) as file:
        return file.schema_arrow.remove_metadata()


def _read(shards: list[Shard], columns: pa.Schema) -> Iterator[pa.Table]:
    """The tables of the corpus, one at a time, with verified checksums."""
    for shard in shards:
        table = read_shard(shard)
        if not table.schema.equals(columns):
            raise UserError(
                f"{shard.path}: has other columns than the first part file; run `paraloom corpus` "
                "again"
            )
        yield table.replace_schema_metadata()


def _write_texts(
    folder: Path, release: Release, record: RunRecord, card: str, about: dict[str, Any]
) -> None:
    """Write the card and what stands in `provenance/`."""
    about = {
        "format": VERSION,
        "paraloom": metadata.version("paraloom"),
        "seed": release.seed,
        **about,
        "splits": {split.name: split.rows for split in release.splits},
    }
    (folder / "provenance").mkdir()
    texts = {"README.md": card}
    for name, values in ((ABOUT, about), ("provenance/manifest.json", record.json_values())):
        texts[name] = json.dumps(values, indent=1, ensure_ascii=False) + "\n"
    for name, text in texts.items():
        check_no_traces(name, text)
        (folder / name).write_text(text, encoding="utf-8")
