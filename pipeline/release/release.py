"""Makes and uploads a release of a corpus."""

import json
import re
from dataclasses import replace
from importlib import metadata
from pathlib import Path

from paraloom.beam_jobs import storage
from paraloom.beam_jobs.engine.shards import read_shard
from paraloom.beam_jobs.storage import remote
from paraloom.models.errors import UserError, in_one_line
from paraloom.models.files import atomic_folder, digest
from paraloom.models.printing import say
from paraloom.pipeline.judging.agreement import corpus_precisions
from paraloom.pipeline.pages.cards import data_card
from paraloom.pipeline.pages.metadata import HUB_LICENSES, Release, license_name
from paraloom.pipeline.pages.shown import shown_configuration
from paraloom.pipeline.release.files import TEST, TRAIN, write_configurations
from paraloom.pipeline.release.triplets import KINDS, NEAR, TripletOptions, write_triplets
from paraloom.pipeline.run.folder import current, finished_corpus, read_run, shards_of
from paraloom.pipeline.run.records import RunRecord

ABOUT = "provenance/release.json"
"""The path of the file that identifies a folder as a release."""

_ADDRESS = re.compile(r"https?://[^\s<>\"\\|@]+")
SUMS = "SHA256SUMS"
LICENSE = "LICENSE"
_SHARDS = [f"{at}/{split}-*" for at in ("data", "pairs", "triplets") for split in (TRAIN, TEST)]
"""Patterns of old files that a push deletes, because a new release may have fewer files."""


def make_release(
    run: str,
    out: Path,
    selection: str,
    *,
    held_out: float,
    license: str | None,
    license_link: str | None,
    repo: str | None,
    triplets: TripletOptions | None,
) -> dict[str, int]:
    """Make a release of a run's corpus or a named selection. Return the number of rows by split.

    An earlier release in `out` is replaced. The other arguments are options of `paraloom publish`.
    """
    found = read_run(run)
    record, out = finished_corpus(run, found, selection), out.resolve()
    shards = [of for of in shards_of(run, record.path("select")) if of.rows]
    record = record if selection else current(found).best
    rows, seed = sum(shard.rows for shard in shards), record.config.seed
    if not rows:
        raise UserError(f"{run}: its corpus is empty; look at `paraloom status {run}`")
    if not held_out < rows:
        raise UserError(f"--held-out: must be below the {rows:,} rows of the corpus")
    if repo is not None and not re.fullmatch(r"[\w.-]+/[\w.-]+", repo):
        raise UserError(f"--repo {repo}: must be OWNER/NAME")
    share = held_out if held_out < 1 else held_out / rows
    license, link = _license(run, record, license, license_link)
    terms = None if link is None or _ADDRESS.fullmatch(link) else Path(link).read_bytes()
    neighbours = triplets.neighbours() if triplets else ""
    if triplets:
        triplets.check(record.config.language)
        if NEAR in triplets.kinds:
            if not (triplets.model or "embeddings" in current(found).stages):
                raise UserError(
                    f"{run}: has no encoder, which --triplets {NEAR} needs; name an encoder with "
                    "--triplets-model, or train one with `paraloom train-embeddings`"
                )
            own = triplets.model or remote.localise(storage.join(run, "embeddings"))
            triplets = replace(triplets, model=own)
    if out.exists() and any(out.iterdir()) and not (out / ABOUT).exists():
        raise UserError(f"{out}: exists and is not a release; name another folder with --out")
    work = out.with_name(f".{out.name}.triplets")
    if work.exists() and not triplets:
        say(
            f"{work}: left by an interrupted `publish --triplets`; repeat that command, or remove "
            "the folder"
        )
    with atomic_folder(out) as folder:
        if terms is not None:
            (folder / LICENSE).write_bytes(terms)
            link = LICENSE
        columns = read_shard(shards[0]).schema.remove_metadata()
        tables = (read_shard(shard).replace_schema_metadata() for shard in shards)
        made = write_configurations(folder, tables, columns, share, seed)
        release = Release(license, link, repo, seed, made)
        splits = {split.name: split.rows for split in made[0].splits}
        if TRAIN not in splits:
            raise UserError(f"--held-out {held_out:g}: leaves no rows for the split {TRAIN}")
        about = {
            "paraloom": metadata.version("paraloom"),
            "seed": seed,
            "held_out": share,
            "rows": rows,
            "splits": splits,
            "configuration": shown_configuration(record),
            "versions": record.versions,
        }
        if triplets:
            added, counts = write_triplets(folder, made[0].splits, triplets, work, seed)
            release = release._replace(
                configurations=(*made, added),
                negatives=tuple((kind, KINDS[kind], counts[kind]) for kind in triplets.kinds),
                neighbours=neighbours,
            )
            about["triplets"] = {kind: counts[kind] for kind in triplets.kinds}
        size = sum(split.size for split in made[0].splits)
        place = record.place if selection else ""
        precision = corpus_precisions(run, current(found)).get(place, "")
        (folder / "README.md").write_text(data_card(record, size, release, precision), "utf-8")
        (folder / ABOUT).parent.mkdir()
        text = json.dumps(about, indent=1, ensure_ascii=False) + "\n"
        (folder / ABOUT).write_text(text, "utf-8")
        sums = "".join(f"{digest(folder / name)}  {name}\n" for name in files_of(folder))
        (folder / SUMS).write_text(sums, "utf-8")
    return splits


def files_of(folder: Path) -> list[str]:
    """Return the paths of all files of a release, sorted."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return sorted(path.relative_to(folder).as_posix() for path in files)


def push(folder: Path, repo: str) -> str:
    """Upload a release to the data set `repo` on the Hub, and return the address of the data set.

    A new data set is private. An existing data set must contain an earlier release, or no files
    but a README.
    """
    from huggingface_hub import HfApi

    api = HfApi(library_name="paraloom")
    with in_one_line(f"--push: {repo} was not uploaded completely; the same command resumes"):
        url = api.create_repo(repo, repo_type="dataset", private=True, exist_ok=True)
        there = set(api.list_repo_files(repo, repo_type="dataset"))
        if ABOUT not in there and there - {".gitattributes", "README.md"}:
            raise UserError(
                f"--repo {repo}: has files that `paraloom publish` did not upload; name another "
                "data set"
            )
        api.upload_folder(
            folder_path=folder,
            repo_id=repo,
            repo_type="dataset",
            commit_message="Release made with Paraloom",
            delete_patterns=_SHARDS,
        )
    return str(url)


def _license(
    run: str, record: RunRecord, given: str | None, link: str | None
) -> tuple[str, str | None]:
    """Return the licence as the user wrote it, and a link if the Hub does not list the licence."""
    source = record.config.input
    license = " ".join((given or (source.license if source else None) or "").split())
    name = license_name(license)
    if not name:
        raise UserError(
            f"{run}: input.license is not set; name the licence of the corpus with --license, such "
            "as --license cc-by-4.0"
        )
    if link and not (_ADDRESS.fullmatch(link) or Path(link).is_file()):
        raise UserError(f"--license-link {link}: is neither a file nor an http address")
    if name in HUB_LICENSES:
        return license, None
    if not link:
        raise UserError(
            f"the licence {license!r} is not on the Hub's list "
            "(https://huggingface.co/docs/hub/repositories-licenses); choose another licence with "
            "--license, or give the address or the file of the licence text with --license-link"
        )
    return license, link
