"""Makes a release: a folder with the corpus, its card, its provenance and checksums."""

import json
import re
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path

from paraloom.beam_jobs.io import remote, storage
from paraloom.beam_jobs.io.shards import read_shard
from paraloom.models.errors import UserError
from paraloom.models.files import atomic_folder, digest
from paraloom.pipeline.cards.data_card import data_card
from paraloom.pipeline.cards.licenses import HUB_LICENSES, license_name
from paraloom.pipeline.cards.metadata import Release
from paraloom.pipeline.cards.shown import public
from paraloom.pipeline.judging.agreement import corpus_precisions
from paraloom.pipeline.manifest import Manifest, current, finished_corpus, selection_view
from paraloom.pipeline.publishing.files import write_configurations
from paraloom.pipeline.publishing.negatives import KINDS, NEAR, TripletOptions
from paraloom.pipeline.publishing.triplets import write_triplets
from paraloom.pipeline.records import RunRecord
from paraloom.pipeline.stage import shards_of

ABOUT = "provenance/release.json"
"""The file that tells a release from other folders."""

_ADDRESS = re.compile(r"https?://[^\s<>\"\\|@]+")
SUMS = "SHA256SUMS"
LICENSE = "LICENSE"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseOptions:
    """What a user says of a release."""

    held_out: float = 0.01  # share of the references in the split `test`; from 1 on, rows
    license: str | None = None  # None takes `input.license` of the run
    license_link: str | None = None  # file or address of a licence that is not on the Hub's list
    repo: str | None = None  # name on the Hub, as `owner/name`
    triplets: TripletOptions | None = None  # None: no such configuration


def make_release(run: str, out: Path, options: ReleaseOptions, selection: str = "") -> None:
    """Make the release of a run's corpus, or of a named selection's, in the folder `out`.

    It takes the place of an earlier one."""
    found = Manifest(run).record
    stage = finished_corpus(run, found, selection)
    record, out = public(selection_view(current(found), selection)), out.resolve()
    shards = [shard for shard in shards_of(run, stage) if shard.rows]
    rows = sum(shard.rows for shard in shards)
    if not rows:
        raise UserError(f"{run}: its corpus is empty; look at `paraloom status {run}`")
    license, link = _license(run, record, options)
    share = _share(options.held_out, rows)
    triplets = _triplets(run, record, options.triplets)
    terms = Path(link).read_bytes() if link and not _ADDRESS.fullmatch(link) else None
    _check_replaceable(out)
    with atomic_folder(out) as folder:
        if terms is not None:
            (folder / LICENSE).write_bytes(terms)
        columns = read_shard(shards[0]).schema.remove_metadata()
        tables = (read_shard(shard).replace_schema_metadata() for shard in shards)
        seed = record.config.seed
        release = Release(
            license=license,
            license_link=link if terms is None else LICENSE,
            repo=options.repo,
            seed=seed,
            configurations=write_configurations(folder, tables, columns, share, seed),
        )
        if triplets:
            work = out.with_name(f".{out.name}.triplets")
            made, counts = write_triplets(folder, release.splits, triplets, work, seed)
            release = replace(
                release,
                configurations=(*release.configurations, made),
                negatives=tuple((kind, KINDS[kind], counts[kind]) for kind in triplets.kinds),
                neighbours=options.triplets.neighbours() if options.triplets else "",
            )
        size = sum(split.size for split in release.splits)
        precision = corpus_precisions(run, current(found)).get(selection, "")
        card = data_card(record, size, release, precision)
        about = {
            "paraloom": metadata.version("paraloom"),
            "seed": seed,
            "held_out": share,
            "rows": rows,
            "splits": {split.name: split.rows for split in release.splits},
        }
        if triplets:
            about["triplets"] = {kind: rows for kind, _, rows in release.negatives}
        (folder / "README.md").write_text(card, encoding="utf-8")
        (folder / "provenance").mkdir()
        for name, values in ((ABOUT, about), ("provenance/manifest.json", record.json_values())):
            text = json.dumps(values, indent=1, ensure_ascii=False) + "\n"
            (folder / name).write_text(text, encoding="utf-8")
        (folder / SUMS).write_text(_sums(folder), encoding="utf-8")


def files_of(folder: Path) -> list[str]:
    """The paths of all files of a release, sorted."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return sorted(path.relative_to(folder).as_posix() for path in files)


def _sums(folder: Path) -> str:
    """The checksums of all other files, in the form that `sha256sum -c` reads."""
    names = (name for name in files_of(folder) if name != SUMS)
    return "".join(f"{digest(folder / name)}  {name}\n" for name in names)


def _check_replaceable(out: Path) -> None:
    """Check that what is there is nothing, or a release that nobody has changed."""
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return
    if not (out / ABOUT).exists():
        raise UserError(f"{out}: exists and is no release; name another folder with --out")
    if not (out / SUMS).exists() or _sums(out) != (out / SUMS).read_text(encoding="utf-8"):
        raise UserError(
            f"{out}: is not as `paraloom publish` wrote it; move the folder away, or name another "
            "one with --out"
        )


def _triplets(run: str, record: RunRecord, options: TripletOptions | None) -> TripletOptions | None:
    """The options, checked, with the run's encoder if it finds neighbours."""
    if options is None:
        return None
    options.check(record.language)
    if options.model or NEAR not in options.kinds:
        return options
    if "embeddings" not in record.stages:
        raise UserError(
            f"{run}: has no encoder to find neighbours with; name one with --triplets-model, or "
            "train it with `paraloom train-embeddings`"
        )
    return replace(options, model=remote.localise(storage.join(run, "embeddings")))


def _license(run: str, record: RunRecord, options: ReleaseOptions) -> tuple[str, str | None]:
    """The licence in the user's words, and the link to it if it is not on the Hub's list."""
    source = record.config.input
    license = " ".join((options.license or (source.license if source else None) or "").split())
    name = license_name(license)
    if not name:
        raise UserError(
            f"{run}: input.license is not set; say under which licence the corpus may be published "
            "with --license, such as --license cc-by-4.0"
        )
    link = None if name in HUB_LICENSES else options.license_link
    if name not in HUB_LICENSES and not link:
        raise UserError(
            f"the licence {license!r} is not on the Hub's list "
            "(https://huggingface.co/docs/hub/repositories-licenses); choose one with --license, "
            "or give the address or the file of its text with --license-link"
        )
    return license, link


def _share(held_out: float, rows: int) -> float:
    if not 0 <= held_out < rows:
        raise UserError(
            f"--held-out: must be a share below 1, or a number of rows below the {rows:,} of the "
            f"corpus, not {held_out:g}"
        )
    return held_out if held_out < 1 else held_out / rows
