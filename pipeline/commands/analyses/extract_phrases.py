"""`paraloom extract-phrases`: the phrase table of a run's corpus, in PPDB's text form."""

from typing import Annotated

import typer

from paraloom.beam_jobs.analysis import phrase_table
from paraloom.beam_jobs.io import storage
from paraloom.beam_jobs.io.shards import receipts, units
from paraloom.models.errors import UserError
from paraloom.models.printing import show
from paraloom.pipeline.commands.options import RunFolder, beam_options
from paraloom.pipeline.manifest import Manifest, as_made


def command(
    context: typer.Context,
    run: RunFolder,
    min_count: Annotated[
        int,
        typer.Option(
            metavar="N", help="Leave out phrase pairs that occur less often in the whole corpus."
        ),
    ] = 2,
    out: Annotated[
        str | None, typer.Option(metavar="FILE", help="Default: RUN/phrases.txt.gz.")
    ] = None,
) -> None:
    """Write the phrase pairs by which the two sides of a run's sentence pairs differ, with counts.

    Workers on other machines need a shared folder for temporary files; set TMPDIR to it.
    """
    if min_count < 1:
        raise UserError(f"--min-count {min_count}: must be at least 1")
    shards = [s for receipt in receipts(storage.join(run, "corpus")) for s in receipt.shards]
    if not shards:
        raise UserError(f"{run}: no run with a corpus; `paraloom select` makes one")
    table = out or storage.join(run, "phrases.txt.gz")
    work = units(shards, "phrases")
    found = phrase_table.run(
        work,
        table,
        beam_options(context),
        min_count=min_count,
        language=as_made(Manifest(run).record, "corpus").language,
    )
    pairs = sum(shard.rows for shard in shards)
    if not found:
        storage.remove(table)
        raise UserError(
            f"{run}: no phrase pair occurs {min_count} times in {pairs:,} sentence pairs; lower "
            "--min-count or make a larger corpus"
        )
    show(f"{table}: {found:,} phrase pairs of {pairs:,} sentence pairs")
