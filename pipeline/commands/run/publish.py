"""`paraloom publish`: makes a release of a corpus, and uploads it."""

from pathlib import Path
from typing import Annotated

import typer
from pydantic import BaseModel

from paraloom.beam_jobs import storage
from paraloom.models.embeddings.applications.hard_negatives import Bounds
from paraloom.models.errors import UserError
from paraloom.models.printing import show
from paraloom.pipeline.commands.options import (
    JsonFile,
    Named,
    RunFolder,
    check_apart,
    check_unused,
    option,
    write_json,
)
from paraloom.pipeline.release.release import files_of, make_release, push
from paraloom.pipeline.release.triplets import KINDS, TripletOptions


class Published(BaseModel):
    """The JSON form of `paraloom publish`."""

    folder: str
    files: dict[str, int]  # size in bytes, by name
    rows: dict[str, int]  # number of rows by split
    sent: str | None  # address on the Hub, or None if the release was not uploaded


def command(
    context: typer.Context,
    run: RunFolder,
    selection: Named = "",
    out: Annotated[
        Path | None,
        option("DIR", "Folder of the release. Default: RUN/release or RUN/release-SELECTION."),
    ] = None,
    repo: Annotated[str | None, option("OWNER/NAME", "Name of the data set on the Hub.")] = None,
    send: Annotated[
        bool,
        typer.Option(
            "--push/--dry-run", help="Upload the release to the Hub, or only make the files."
        ),
    ] = False,
    held_out: Annotated[
        float,
        option(
            "N",
            "Size of the split `test`. 0: no such split. Below 1: a share of the references. 1 or "
            "more: about this number of rows.",
            min=0,
        ),
    ] = 0.01,
    license: Annotated[
        str | None, option("NAME", "Licence of the corpus. Default: `input.license`.")
    ] = None,
    license_link: Annotated[
        str | None, option("FILE", "File or URL of a licence that is not on the Hub's list.")
    ] = None,
    triplets: Annotated[
        str | None,
        option(
            "KINDS",
            f"Add triplets with negatives of these kinds: all, or some of {','.join(KINDS)}.",
        ),
    ] = None,
    triplets_model: Annotated[
        str | None,
        option(
            "DIR",
            "Kind near: an encoder or a sentence-transformers model that finds neighbours. "
            "Default: the run's encoder.",
        ),
    ] = None,
    triplets_cross_encoder: Annotated[
        str | None, option("DIR", "Kind near: a cross-encoder that checks the neighbours.")
    ] = None,
    min_score: Annotated[
        float, option("C", "Kind near: least cosine of a negative with the anchor.")
    ] = Bounds.min_score,
    max_score: Annotated[
        float, option("C", "Kind near: largest cosine of a negative with the anchor.")
    ] = Bounds.max_score,
    relative_margin: Annotated[
        float,
        option(
            "C",
            "Kind near: a negative's cosine with the anchor may be at most 1-C times the "
            "positive's cosine.",
        ),
    ] = Bounds.relative_margin,
    triplets_spacy: Annotated[
        str, option("NAME", "All kinds except near: a spaCy pipeline with a parser.")
    ] = "en_core_web_sm",
    triplets_wordnet: Annotated[
        str, option("DIR", "Kind antonym: folder of the WordNet files.")
    ] = "/usr/share/wordnet",
    json: JsonFile = None,
) -> None:
    """List the files of the release. With --push, upload the release.

    A release contains the data card, provenance, checksums, and Parquet files in the configurations
    full, pairs and, with --triplets, triplets. Rows with the same reference are in the same split.
    A data set that --push creates is private.
    """
    if send and repo is None:
        raise UserError("--push: needs a data set to upload to; give --repo OWNER/NAME")
    if triplets is None:
        bounds = ("min_score", "max_score", "relative_margin")
        own = ("model", "cross_encoder", "spacy", "wordnet")
        check_unused(context, "--triplets", *bounds, *(f"triplets_{name}" for name in own))
    if out is None:
        if storage.is_remote(run):
            raise UserError(f"{run}: is in an object store; name a local folder with --out")
        out = Path(run, f"release-{selection}" if selection else "release")
    check_apart(json, out, "--out")
    kinds = tuple(KINDS) if triplets == "all" else tuple((triplets or "").split(","))
    negatives = TripletOptions(
        kinds=kinds,
        model=triplets_model,
        cross_encoder=triplets_cross_encoder,
        spacy=triplets_spacy,
        wordnet=triplets_wordnet,
        bounds=Bounds(min_score=min_score, max_score=max_score, relative_margin=relative_margin),
    )
    splits = make_release(
        run,
        out,
        selection,
        held_out=held_out,
        license=license,
        license_link=license_link,
        repo=repo,
        triplets=negatives if triplets else None,
    )
    show(f"{out}: made\n")
    files = {name: (out / name).stat().st_size for name in files_of(out)}
    for name, size in files.items():
        show(f"{size:>16,}  {name}")
    show("rows: " + ", ".join(f"{name} {rows:,}" for name, rows in splits.items()))
    sent = push(out, repo) if send and repo else None
    nothing = "nothing was uploaded; --push --repo OWNER/NAME uploads these files"
    show(f"\n{f'uploaded to {sent}' if sent else nothing}")
    write_json(json, Published(folder=str(out), files=files, rows=splits, sent=sent))
